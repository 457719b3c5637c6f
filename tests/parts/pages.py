"""What a page that eagleops writes is held to: closed tags, ids of one's own, contrast."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Tags(HTMLParser):
    """Every tag, and whether each one is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def asked_for(text: str) -> list[str]:
    """What a page would ask for from elsewhere."""
    return re.findall(r'(?:src|href)="([^"#][^"]*)"|url\((?!#)|@import', text)


def plain(text: str) -> str:
    """The words of a page; those of two cells, items or paragraphs are apart."""
    apart = re.sub(r"<br>|</(?:td|th|p|li|pre|h\d|summary)>", " ", text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", apart))


def colour_blocks(text: str) -> list[dict[str, str]]:
    """The colours of a page: light, dark and printed."""
    blocks = re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def faint(colours: dict[str, str]) -> list[str]:
    """Those that cannot be told from the paper or a card: WCAG asks for 4.5 to 1."""
    spoken = set(colours) - {"paper", "card", "grid"}
    grounds = (colours["paper"], colours["card"])
    return [name for name in spoken if min(contrast(colours[name], on) for on in grounds) < 4.5]


def own_colours(text: str) -> set[str]:
    """The colours of its drawings that are not the page's."""
    drawn = " ".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    return set(re.findall(r"#[0-9a-f]{6}\b", drawn))
