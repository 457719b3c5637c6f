"""JUnit: what a CI server shows of a night."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.nights.finding import Finding
from eagleops.remote import redact
from eagleops.render.nightly.junit import document
from eagleops.render.nightly.safe import printable
from nightly_reports.examples import HOOK, SECRET, example, night

junitparser = pytest.importorskip("junitparser", reason="the [nightly] extra is not installed")

# What Jenkins' junit-10.xsd lets stand in each element: attributes, then children.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
        {"properties", "testcase"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": (
        {"name", "time", "classname"},
        {"skipped", "error", "failure", "system-out"},
    ),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}


def of(*findings: Finding, **changes: object):
    """The report of a night with these findings."""
    tonight = attrs.evolve(night(11), findings=findings, **changes)
    return attrs.evolve(example(11), night=tonight, trends=())


def test_each_host_is_a_suite_and_each_check_a_case() -> None:
    """Their counts are those of the night."""
    whole = junitparser.JUnitXml.fromstring(document(example(20)))

    suites = {suite.name: suite for suite in whole}
    assert list(suites) == ["box1", "box2", "box3"]
    assert (whole.tests, whole.failures, whole.errors, whole.time) == (101, 1, 0, 2477.0)
    box2 = suites["box2"]
    assert (box2.tests, box2.failures, box2.skipped) == (33, 1, 32)
    assert (box2.hostname, box2.timestamp) == ("box2", "2026-10-21T02:30:00")
    assert {p.name: p.value for p in box2.properties()}["suite"] == "default"


def test_it_is_what_jenkins_reads() -> None:
    """No attribute and no element that its schema does not know."""
    for report in (example(60), example(20), of(outcome="interrupted")):
        for element in ET.fromstring(document(report)).iter():
            attributes, children = ALLOWED[element.tag]
            assert set(element.attrib) <= attributes, element.tag
            assert {child.tag for child in element} <= children, element.tag


def test_a_failure_says_what_was_seen_and_what_to_type() -> None:
    """The message alone in the list, the figures and commands in the text."""
    (case,) = next(iter(junitparser.JUnitXml.fromstring(document(stale("fail")))))
    (failure,) = case.result

    assert (case.name, case.classname) == ("stale", "default.box1")
    assert isinstance(failure, junitparser.Failure)
    assert (failure.message, failure.type) == ("a process holds GPU 0", "stale")
    assert failure.text.splitlines() == [
        "fail: a process holds GPU 0",
        "seen 1 processes, limit 0 processes",
        "eagleops reset-gpus --host box1 --dry-run",
    ]


def stale(state: str):
    """The report of a night with one finding, of that state, on one host."""
    finding = Finding("stale", "box1", state, "a process holds GPU 0", 1, "processes", 0)
    return of(finding, hosts=("box1",))


def test_a_warning_passes_and_says_so() -> None:
    """As the night's exit status does."""
    (case,) = next(iter(junitparser.JUnitXml.fromstring(document(stale("warn")))))

    assert case.result == []
    assert case.system_out.startswith("warn: a process holds GPU 0\n")


def test_what_could_not_be_looked_at_is_skipped_with_the_reason() -> None:
    """Neither green nor red."""
    (case,) = next(iter(junitparser.JUnitXml.fromstring(document(stale("skip")))))
    (skipped,) = case.result

    assert isinstance(skipped, junitparser.Skipped)
    assert skipped.message == "a process holds GPU 0"


@pytest.mark.parametrize("outcome", ["time_limit", "interrupted", "running"])
def test_a_night_that_was_cut_off_is_an_error(outcome: str) -> None:
    """What was not looked at is in no case: a green page would say that all is well."""
    whole = junitparser.JUnitXml.fromstring(document(of(outcome=outcome)))

    assert whole.errors == 1


def test_of_a_check_that_was_made_twice_the_last_holds() -> None:
    """A night that was taken up again has one case a check."""
    twice = of(
        Finding("disk", "box1", "fail", "full"), Finding("disk", "box1", "pass", "there is room")
    )

    whole = junitparser.JUnitXml.fromstring(document(twice))

    assert (whole.tests, whole.failures) == (1, 0)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
def test_whatever_a_check_says_is_xml(message: str) -> None:
    """Control characters, lone surrogates, markup: the document is well-formed and whole."""
    text = document(of(Finding("command:smoke", "box1", "fail", message)))

    root = ET.fromstring(text.encode("utf-8"))
    (failure,) = root.iter("failure")
    assert failure.attrib.get("message", "") == printable(redact.text(message))


def test_a_control_character_is_named() -> None:
    """It can be read, and it is no control character any more."""
    text = document(of(Finding("command:smoke", "box1", "fail", "a\x00b\x1b[31mc\ud800d\r\ne")))

    message = next(ET.fromstring(text).iter("failure")).attrib["message"]
    assert message == "a\\x00bc\\ud800d\ne"


def test_it_holds_no_secret() -> None:
    """Neither one that a name gives away, nor one that the caller knows."""
    told = f"HF_TOKEN={SECRET} posted to {HOOK}"

    text = document(of(Finding("command:smoke", "box1", "fail", told)), secrets=[HOOK])

    assert SECRET not in text
    assert HOOK not in text
