"""What a night says outside: short, whole, and without secrets."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.nights import slack
from eagleops.nights.fault import Fault
from eagleops.nights.faults import News, news
from eagleops.nights.finding import Finding
from eagleops.nights.message import SCHEMA, json_message, slack_message, worth_telling
from eagleops.nights.night import Night
from eagleops.nights.one_line import one_line
from eagleops.nights.summary import summary

BEGAN = "2026-10-02T02:30:00.000000Z"
REPORT = "/home/ann/.local/share/eagleops/reports/default/2026-10-02.html"
# https://docs.slack.dev/reference/block-kit/blocks
MOST_BLOCKS, MOST_CHARS, MOST_ELEMENTS = 50, 3000, 10


def fault(check: str = "disk", host: str = "llm", state: str = "fail", **more: Any) -> Fault:
    """A fault that began tonight."""
    told = {"worst": state, "began_utc": BEGAN, "seen_utc": BEGAN, "message": "12 MiB free", **more}
    return Fault(host=host, check=check, state=state, **told)


@pytest.fixture
def two_nights(make_night) -> tuple[Night, News]:
    """The second of two nights, in which much has changed."""
    first = make_night(
        0,
        {
            ("llm", "disk"): "warn",
            ("llm", "ecc"): "fail",
            ("pve", "reach"): "fail",
            ("pve", "stale"): "warn",
        },
    )
    second = make_night(
        1,
        {
            ("llm", "disk"): "fail",
            ("llm", "ecc"): "fail",
            ("llm", "speed:eagle3-2step"): "fail",
            ("llm", "xid"): "warn",
            ("pve", "reach"): "pass",
            ("pve", "stale"): "skip",
        },
        client="desk",
    )
    return second, news([first], second)


def test_the_summary_says_what_began_and_ended_where(two_nights) -> None:
    """One line, for a notification on a telephone."""
    assert summary(*two_nights) == (
        "Nightly default. New: speed:eagle3-2step on llm. Worse: disk on llm. "
        "Seen tonight: xid (warning) on llm. Over: reach on pve. 2 still stand."
    )


@pytest.mark.parametrize(
    ("told", "outcome", "expected"),
    [
        (News(), "done", "Nothing new on llm and pve. Nothing stands."),
        (News(standing=(fault(),)), "done", "Nothing new on llm and pve. 1 still stands."),
        (News(began=(fault(),)), "done", "New: disk on llm. Nothing else stands."),
        (News(ended=(fault(),)), "done", "Over: disk on llm. Nothing stands."),
        (
            News(began=tuple(fault(f"c{n}", host=f"h{n % 2}") for n in range(9))),
            "done",
            "New: 9 faults on h0 and h1. Nothing else stands.",
        ),
        (
            News(began=tuple(fault(host=f"h{n}") for n in range(9))),
            "time_limit",
            "The time limit ended the night early. New: 9 faults on 9 hosts. Nothing else stands.",
        ),
        (
            News(),
            "interrupted",
            "The night was interrupted. Nothing new on llm and pve. Nothing stands.",
        ),
    ],
)
def test_a_summary_of_much_counts(make_night, told, outcome, expected) -> None:
    """Few faults are named, many are counted, and a night that was cut short says so."""
    night = make_night(1, {}, hosts=("llm", "pve"), outcome=outcome)

    assert summary(night, told) == f"Nightly default. {expected}"


def test_news_is_worth_telling_and_a_standing_fault_is_not(make_night) -> None:
    """A night that its time limit cut short is; who pressed Ctrl-C knows."""
    done = make_night(1, {})
    limit, interrupted = (attrs.evolve(done, outcome=o) for o in ("time_limit", "interrupted"))

    assert not worth_telling(done, News(standing=(fault(),)))
    assert all(worth_telling(done, News(**{name: (fault(),)})) for name in ("began", "worsened"))
    assert all(worth_telling(done, News(**{name: (fault(),)})) for name in ("ended", "events"))
    assert worth_telling(limit, News())
    assert not worth_telling(interrupted, News())


def test_the_document_has_all_that_a_program_wants(two_nights) -> None:
    """Each fault with its history, the night, the worst state, the report's place."""
    night, told = two_nights
    document = json_message(night, told, report=REPORT)

    assert json.loads(json.dumps(document)) == document
    assert document == {
        "schema": SCHEMA,
        "event": "nightly",
        "suite": "default",
        "night": night.uuid,
        "began_utc": "2026-10-02T02:30:00Z",
        "ended_utc": night.ended_utc,
        "outcome": "done",
        "client": "desk",
        "hosts": ["llm", "pve"],
        "state": "fail",
        "changed": True,
        "summary": summary(night, told),
        "counts": {"pass": 1, "warn": 1, "fail": 3, "skip": 1},
        "began": [f.to_dict() for f in told.began],
        "worsened": [f.to_dict() for f in told.worsened],
        "ended": [f.to_dict() for f in told.ended],
        "events": [f.to_dict() for f in told.events],
        "standing": [f.to_dict() for f in told.standing],
        "report": REPORT,
    }
    assert document["worsened"][0]["began_utc"] == "2026-10-01T02:30:00Z"
    assert document["ended"][0]["ending"] == "passed"


def test_slack_s_message_reads_well(two_nights) -> None:
    """The summary first, then each piece of news in a line, then where the report is."""
    message = slack_message(*two_nights, report=REPORT)

    assert message["text"] == summary(*two_nights)
    *sections, context = message["blocks"]
    assert [block["text"]["text"] for block in sections] == [
        message["text"],
        "*New*",
        "• llm: speed:eagle3-2step, fail: speed:eagle3-2step on day 1: fail",
        "*Worse*",
        "• llm: disk, fail: disk on day 1: fail",
        "*Seen tonight*",
        "• llm: xid, warn: xid on day 1: warn",
        "*Over*",
        "• pve: reach, since 2026-10-01, seen in 1 night: reach on day 1: pass",
    ]
    assert [element["text"] for element in context["elements"]] == [
        "Night of 2026-10-02 02:30 UTC",
        "by desk",
        f"Report: {REPORT}",
    ]


def texts(message: dict[str, Any]) -> list[str]:
    """All texts of a message for Slack."""
    of_blocks = [block["text"]["text"] for block in message["blocks"] if "text" in block]
    of_context = [e["text"] for block in message["blocks"] for e in block.get("elements", ())]
    return [message["text"], *of_blocks, *of_context]


def test_slack_finds_nothing_of_its_own_in_what_machines_say(make_night) -> None:
    """No mention that wakes a whole channel, no link, no entity."""
    said = "<!channel> <https://evil.example|click> &amp; a<b>c & <@U012>"
    told = News(began=(fault(message=said),))
    message = slack_message(make_night(1, {}), told, report="/r/<!here>&co.html")

    for text in texts(message):
        assert "<" not in text
        assert ">" not in text
        assert re.findall(r"&(?!amp;|lt;|gt;)", text) == []
    assert "&lt;!channel&gt; &lt;https://evil.example|click&gt; &amp;amp; a&lt;b&gt;c" in str(
        message
    )
    assert "Report: /r/&lt;!here&gt;&amp;co.html" in str(message)


def test_slack_formats_nothing_that_machines_say(make_night) -> None:
    """Names of files and hosts keep their underscores and asterisks; no fence swallows a line."""
    said = "not as installed: __init__.py, *.so, ~/x~ `a` ```b :fire:"
    told = News(began=(fault(message=said, host="_h_*a*"), fault("b")))
    message = slack_message(make_night(1, {}), told, report="/r/_a_.html")

    objects = [block["text"] for block in message["blocks"] if "text" in block]
    objects += [one for block in message["blocks"] for one in block.get("elements", ())]
    formatted = [one["text"] for one in objects if one["type"] != "plain_text"]
    assert formatted == ["*New*"]
    assert all(one["emoji"] is False for one in objects if one["type"] == "plain_text")
    assert any(f"• _h_*a*: disk, fail: {said}" in one["text"] for one in objects)


def is_within_slack_s_limits(message: dict[str, Any]) -> bool:
    """Whether Slack takes it; characters counted as UTF-16 has them."""
    sizes = [len(text.encode("utf-16-le")) // 2 for text in texts(message)]
    contexts = [len(block["elements"]) for block in message["blocks"] if "elements" in block]
    return (
        len(message["blocks"]) <= MOST_BLOCKS
        and all(0 < size <= MOST_CHARS for size in sizes)
        and all(0 < count <= MOST_ELEMENTS for count in contexts)
        and len(json.dumps(message, ensure_ascii=False)) < 15_000
        and sum(sizes[1:]) < 13_000
    )


@pytest.mark.parametrize("piece", ["x", "&", "\U0001f980", "日", "a "])
@pytest.mark.parametrize("count", [1, 40, 300])
def test_no_night_is_too_much_for_slack(make_night, piece, count) -> None:
    """However many faults with however long texts: what does not fit is counted."""
    many = tuple(fault(f"c{n}", host=f"h{n}", message=piece * 1500) for n in range(count))
    night = make_night(1, {}, client=piece * 4000)
    message = slack_message(night, News(many, many, many, many), report=piece * 4000)

    assert is_within_slack_s_limits(message)
    shown = sum(text.count("• ") for text in texts(message))
    left = re.search(r"And (\d+) more: see the report\.", str(message))
    assert shown + (int(left[1]) if left else 0) == 4 * count
    assert shown >= min(4, 4 * count)


ANY = st.text(alphabet=st.characters(), max_size=80)


@given(ANY, ANY, ANY, st.integers(1, 200))
def test_any_text_gives_a_message(message: str, host: str, check: str, most: int) -> None:
    """Control characters, half surrogates, every script: Slack's limits and its JSON hold."""
    night = Night(suite=host, uuid="u", began_utc=BEGAN, hosts=(host,))
    told = News(began=(fault(check, host, message=message),))

    for made in (
        json_message(night, told, report=message),
        slack_message(night, told, report=message or None),
    ):
        json.dumps(made, ensure_ascii=False).encode("utf-8")
    assert is_within_slack_s_limits(slack_message(night, told, report=message or None))
    cut = slack.escaped(message, most)
    assert slack.width(cut) <= most
    assert re.findall(r"[<>]|&(?!amp;|lt;|gt;)", cut) == []


def test_no_message_holds_a_secret(make_night) -> None:
    """By its name, by its shape, or because it is known; also where a text would be cut."""
    known = "s3cr3tpathofawebhook"
    said = (
        f"exit 1: HF_TOKEN=hf_abcdefgh, see https://ann:passw0rd@git.example.com, "
        f"Authorization: Bearer abcdefghijk, {known}" + "x" * 1850
    )
    cut = f"{'y' * 1990}{known}"
    told = News(
        began=(fault(message=said), fault("command:x", message=cut)),
        ended=(fault(ended_message=said, value=known),),
    )
    night = make_night(1, {}, client="desk")

    for made in (
        json_message(night, told, report=f"/r/{known}", secrets=[known]),
        slack_message(night, told, report=f"/r/{known}", secrets=[known]),
    ):
        whole = json.dumps(made)
        for secret in ("hf_abcdefgh", "passw0rd", "abcdefghijk", known, known[:8]):
            assert secret not in whole
        assert "HF_TOKEN=" in whole


def test_a_text_of_a_fault_is_one_line(make_night) -> None:
    """A log's tail does not tear a list apart, and no terminal code gets through."""
    finding = Finding(
        "launch:a", "llm", "fail", "died:\n  \x1b[31mRuntimeError\x1b[0m\r\n\tat rank 3"
    )
    night = attrs.evolve(make_night(0, {}), findings=(finding,))

    (told,) = json_message(night, news([], night), report=None)["began"]

    assert told["message"] == "died: RuntimeError at rank 3"


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
def test_a_terminal_s_links_leave_their_words_alone(end: str) -> None:
    """Programs write links that only terminals read: OSC 8."""
    said = f"see \x1b]8;;https://example.com{end}here\x1b]8;;{end}, \x1b[31mred\x1b[0m"

    assert one_line(said, 99) == "see here, red"
