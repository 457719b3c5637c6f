"""The page of a night: read at eight in the morning, on a phone, on paper, without colours."""

from __future__ import annotations

import itertools
import re
from html import unescape
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleops.errors import UsageError
from eagleops.nights.faults import News, news
from eagleops.nights.finding import Finding
from eagleops.render.nightly import trend_page
from eagleops.render.nightly.headline import headline
from eagleops.render.nightly.html import page
from nightly_reports.examples import HOOK, SCHEDULER, SECRET, example, night, trend
from parts.pages import Tags, asked_for, colour_blocks, contrast, faint, own_colours, plain


@pytest.fixture(scope="module")
def text() -> str:
    """The page of night 60."""
    return page(example())


def verdict(written: str) -> str:
    """The sentence on top of a page."""
    found = re.search(r'<p class="verdict \w+">(.*?)</p>', written, re.DOTALL)
    assert found
    return unescape(plain(found[1]))


def section(written: str, name: str) -> str:
    """The words of one section."""
    return unescape(plain(written.partition(f'<h2 id="{name}">')[2].partition("<h2")[0]))


def test_it_is_one_file_that_asks_for_nothing(text) -> None:
    """No script, no style sheet, image or font of elsewhere: it opens without a network."""
    tags = Tags(text)

    assert tags.open == []
    assert {tag for tag, _ in tags.seen} & {"script", "link", "img", "iframe", "object"} == set()
    assert not any(name.startswith("on") for _, attributes in tags.seen for name in attributes)
    assert asked_for(text) == []


VERDICTS = {
    11: "All is well. Nothing is new. 102 of 102 checks on 3 hosts passed.",
    12: "Not well. New: throttling:baseline and throttling:eagle3-2step on box1. "
    "98 of 100 checks on 3 hosts passed, 2 could not be made.",
    20: "Not well. New: reach on box2. 68 of 69 checks on 3 hosts passed, 32 could not be made.",
    21: "All is well. Over: reach on box2. 102 of 102 checks on 3 hosts passed.",
    34: "Not well. New: speed:baseline on box1. Still there: engine-files (warning) on box1, "
    "since 2026-11-01. 100 of 102 checks on 3 hosts passed.",
    50: "Not well. Nothing is new. Still there: speed:baseline and engine-files (warning) on "
    "box1, the oldest since 2026-11-01. 100 of 102 checks on 3 hosts passed.",
}


@pytest.mark.parametrize("number", VERDICTS)
def test_one_sentence_tells_the_night(number: int) -> None:
    """What is new, what is over, what still stands and since when, how much was looked at."""
    told = headline(example(number))

    assert f"{told.word} {told.sentence}" == VERDICTS[number]


def test_what_is_new_stands_before_what_still_does(text) -> None:
    """Then the evidence: hosts, figures, checks, history, and the night itself."""
    headings = re.findall(r'<h2 id="(\w+)">', text)

    order = ["new", "standing", "hosts", "trends", "tonight", "history", "night"]
    assert headings == order


def test_what_is_new_says_what_to_type(text) -> None:
    """Each fault has its message, and a line for a shell."""
    new = section(text, "new")

    assert "box3: stale python3 (PID 2817, root) holds GPU 0 and belongs to no server." in new
    assert "eagleops reset-gpus --host box3 --dry-run" in new
    assert "box2: xid, tonight GPU 5 (0000:c1:00.0): Xid 13" in new
    assert "eagleops status --host box2" in new
    assert "box2: disk is well again" in new
    assert "It began 2026-11-22 and was seen in 8 nights: 8,912 MiB are free" in new


def test_what_still_stands_says_since_when(text) -> None:
    """With how many nights saw it, and what to type."""
    standing = section(text, "standing")

    assert "fail box1 speed:baseline 2026-11-01 30 nights 77.1 tok/s, -7.0 %" in standing
    assert "eagleops diff --run 311 --against 301" in standing
    assert "eagleops trend --profile baseline --host box1" in standing


def test_a_regression_is_told_with_what_else_changed() -> None:
    """On the morning on which nights have confirmed it, the patched file stands beside it."""
    new = section(page(example(34)), "new")

    assert "fail box1: speed:baseline, was a warning" in new
    told = f"What else changed then (2026-11-01): sglang: {SCHEDULER}: none → modified"
    assert told in new


def test_a_throttled_night_and_an_outlier_are_told_as_such(text) -> None:
    """The one was left out of the figures, the other is no change."""
    figures = section(text, "trends")

    hot = "Left out on 2026-10-13: GPU 3 throttled (SW thermal slowdown) for 71 % of the"
    assert hot in figures
    assert f"box3: baseline. {trend(60, 'box3', 'baseline').drift.words}" in figures
    assert figures.count("What else changed then") == 1


def test_a_dead_host_s_checks_were_skipped_and_not_failed() -> None:
    """One failure, and the rest are told as not made, in one place."""
    written = page(example(20))

    assert "32 checks of box2 could not be made" in section(written, "tonight")
    assert section(written, "new").count("fail") == 1


def test_history_reads_without_colours(text) -> None:
    """A strip's height tells the state, and the same stands in words beside it."""
    history = section(text, "history")

    assert "failed since 2026-11-04 (27 nights); warned 2026-11-01 to 2026-11-03" in history
    bars = dict(re.findall(r'<rect class="(\w+)" [^>]*? height="(\d+)"', text))
    assert bars == {"fail": "10", "warn": "6", "pass": "3", "skip": "1"}
    assert "Never at fault: reach" in history
    for name in ("fail", "warn", "pass"):
        assert f'<span class="state {name}">{name}</span>' in text


def test_a_single_night_among_hundreds_stays_a_mark() -> None:
    """A fault of one night is drawn no narrower than a hundred-and-twentieth of the strip."""
    from eagleops.render.nightly.strips import strip

    drawn = strip("reach", ["pass"] * 300 + ["fail"] + ["pass"] * 299, ["2026-10-01"] * 600)

    (left, width) = re.findall(r'class="fail" x="([\d.]+)" y="0" width="([\d.]+)"', drawn.svg)[0]
    assert (float(left), float(width)) == (298, 5)
    assert drawn.words == "failed on 2026-10-01"


def test_tables_are_read_aloud_in_order(text) -> None:
    """Each table has a caption, and every heading says what it heads."""
    tags = Tags(text).seen
    tables = [place for place, (tag, _) in enumerate(tags) if tag == "table"]
    headings = [attributes for tag, attributes in tags if tag == "th"]

    assert all(tags[place + 1][0] == "caption" for place in tables)
    assert all(heading.get("scope") in {"col", "row"} for heading in headings)
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_drawing_is_described_in_words(text) -> None:
    """Each SVG is an image with a label, and no id is used twice."""
    tags = Tags(text).seen
    ids = [attributes["id"] for _, attributes in tags if attributes.get("id")]

    assert len(ids) == len(set(ids))
    for image in (attributes for tag, attributes in tags if tag == "svg"):
        assert image["role"] == "img"
        labels = set((image.get("aria-labelledby") or "").split())
        assert image.get("aria-label") or labels <= set(ids)
    assert "60 runs, 2026-10-02 to 2026-11-30. the level now is 76.4 tok/s" in text
    assert "changed by -6.9 % on 2026-11-01" in text


@pytest.mark.parametrize("block", [0, 1, 2])
def test_colours_can_be_told_from_the_paper(text, block) -> None:
    """Light, dark and printed: every text has a contrast of 4.5 to 1, every bar of 3 to 1."""
    colours = colour_blocks(text)[block]

    assert faint(colours) == []
    opacity = float(re.findall(r"\.strip \.pass \{[^}]*opacity: ([\d.]+)", text)[0])
    assert contrast(mixed(colours["good"], colours["paper"], opacity), colours["paper"]) >= 3


def mixed(colour: str, paper: str, opacity: float) -> str:
    """What a colour of that opacity looks like on the paper."""
    pairs = ((int(colour[i : i + 2], 16), int(paper[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(opacity * c + (1 - opacity) * p):02x}" for c, p in pairs)


def test_no_stand_in_colour_is_left(text) -> None:
    """Every colour of a plot is one of the page's, or none."""
    assert own_colours(text) == set()


def telling(message: str):
    """The report of a night in which a check of the user's own said that."""
    tonight = night(60)
    finding = Finding("command:smoke", "box1", "fail", message)
    told = attrs.evolve(tonight, findings=(*tonight.findings, finding))
    return attrs.evolve(
        example(), night=told, news=news((night(59),), told), history=(night(59),), trends=()
    )


def test_it_holds_no_secret() -> None:
    """Neither one that a name gives away, nor one that the caller knows."""
    report = telling(f"HF_TOKEN={SECRET} Authorization: Bearer {SECRET}; posted to {HOOK}")

    written = page(report, secrets=[HOOK])

    assert SECRET not in written
    assert HOOK not in written
    assert "HF_TOKEN=&lt;redacted&gt;" in written


@settings(max_examples=40)  # each is a page
@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=40))
def test_whatever_a_check_says_is_text(message: str) -> None:
    """Markup, escapes, and characters that no document may hold: the page stays a page."""
    written = page(attrs.evolve(telling(message), history=()))

    assert Tags(written).open == []
    assert written.encode("utf-8").decode("utf-8") == written
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]", written)


def test_markup_stays_a_text(text) -> None:
    """What a machine says is shown, and not obeyed."""
    written = page(telling("<script>alert(1)</script> & \x1b[31mred\x1b[0m\x07"))

    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; red\\x07" in written


def test_a_first_night_has_a_page_too() -> None:
    """No history, no figures: it says what there is."""
    first = attrs.evolve(example(1), trends=())

    written = page(first)

    assert Tags(written).open == []
    assert verdict(written) == "All is well. Nothing is new. 102 of 102 checks on 3 hosts passed."
    assert "Figures over time" not in written


def test_a_night_that_was_cut_off_says_so() -> None:
    """No green verdict over what was not looked at."""
    cut = attrs.evolve(night(11), outcome="time_limit", findings=night(11).findings[:4])

    written = page(attrs.evolve(example(11), night=cut, news=News(), trends=()))

    assert verdict(written) == (
        "Look at it. The time limit ended the night early. "
        "Nothing is new. 4 of 4 checks on 3 hosts passed."
    )
    assert "Nothing was looked at." in written


def test_notices_and_messages_that_failed_are_told() -> None:
    """What a person should know besides stands under the verdict; deliveries at the end."""
    told = {"slack 1": {"ok": False, "problem": "hooks.example.com: 503, 4 attempts"}}
    report = attrs.evolve(example(11), notice="A damaged night was set aside.", deliveries=told)

    written = page(report)

    assert '<p class="note">A damaged night was set aside.</p>' in written
    assert "Message to slack 1 not sent: hooks.example.com: 503, 4 attempts" in plain(written)


def test_the_same_report_is_the_same_page(text) -> None:
    """Nothing in it is drawn at random, and nothing depends on when it was written."""
    assert page(example()) == text


def test_a_figure_has_a_page_of_its_own() -> None:
    """The verdict, the plot, what else changed, and every run."""
    shown = trend(60, "box1", "baseline")

    written = trend_page.page(shown)

    assert Tags(written).open == []
    assert asked_for(written) == []
    words = unescape(plain(written))
    assert "Decode speed of baseline on box1" in words
    assert shown.drift.words in words
    assert f"sglang: {SCHEDULER}: none → modified" in words
    assert "601 2026-11-30 02:30 77.1" in words


def test_a_figure_s_page_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    """A file; a folder that is not there is told."""
    trend_page.write(trend(34, "box1", "baseline"), tmp_path / "trend.html")

    assert (tmp_path / "trend.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="the report cannot be written there"):
        trend_page.write(trend(34, "box1", "baseline"), tmp_path / "missing" / "trend.html")
