"""A night in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eagleops.nights.fault import Fault
from eagleops.nights.faults import News
from eagleops.nights.night import Night

CUT_SHORT = {
    "time_limit": "Cut short by its time limit",
    "interrupted": "Interrupted",
    "running": "Not finished",
}
MOST_NAMES = 3
MOST_CHARS = 500
# ECMA-48's control sequences (colours, above all) and operating system commands (links, titles).
TERMINAL_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def summary(night: Night, news: News) -> str:
    """What began and ended, and where, and how much still stands."""
    groups = {
        "New": news.began,
        "Worse": news.worsened,
        "Seen": news.events,
        "Over": news.ended,
    }
    parts = [CUT_SHORT[night.outcome]] if night.outcome in CUT_SHORT else []
    parts += [f"{word}: {_named(faults)}" for word, faults in groups.items() if faults]
    if not news.changed:
        parts.append(f"Nothing new on {_joined(night.hosts) or 'no host'}")
    parts.append(_standing(news))
    return clean(f"Nightly {night.suite}. {'. '.join(parts)}.", MOST_CHARS)


def clean(text: str, most: int) -> str:
    """A text on one line, without characters that no reader can show, cut at ``most``."""
    whole = TERMINAL_CODE.sub("", text).encode("utf-8", "replace").decode("utf-8")
    line = " ".join("".join(c if c.isprintable() else " " for c in whole).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _named(faults: Sequence[Fault]) -> str:
    if len(faults) > MOST_NAMES:
        hosts = list(dict.fromkeys(fault.host for fault in faults))
        return f"{len(faults)} faults on {_joined(hosts)}"
    return ", ".join(
        f"{fault.check} on {fault.host}" + (" (warning)" if fault.state == "warn" else "")
        for fault in faults
    )


def _joined(hosts: Sequence[str]) -> str:
    return ", ".join(hosts) if len(hosts) <= MOST_NAMES else f"{len(hosts)} hosts"


def _standing(news: News) -> str:
    count = len(news.standing)
    if count:
        return f"{count} still stand{'s' if count == 1 else ''}"
    return "Nothing else stands" if news.began or news.worsened else "Nothing stands"
