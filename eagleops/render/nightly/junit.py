"""The night as JUnit XML: a suite for each host, a case for each check.

A failure is a ``failure`` and what nobody could look at is ``skipped``. JUnit has no word for a
warning: its case passes, as the night's exit status does, and says so in its output. A night that
did not get to its end has an ``error`` of its own, for what was not looked at is in no case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree import ElementTree as ET

from eagleops.comparison.loading import load
from eagleops.nights.finding import Finding
from eagleops.nights.night import instant
from eagleops.render.nightly.commands import commands
from eagleops.render.nightly.safe import presentable
from eagleops.render.nightly.words import figures, took_s
from eagleops.workflows.nightly.report import NightReport


def document(report: NightReport, secrets: Iterable[str] = ()) -> str:
    """The report as one XML document.

    Args:
        report: What the night came to.
        secrets: Values to be left out, whatever name they stand under.

    Raises:
        UsageError: if junitparser is not installed.
    """
    report = presentable(report, secrets)
    junit = load("junitparser")
    whole = junit.JUnitXml(f"eagleops nightly: {report.night.suite}")
    for host, findings in report.by_host.items():
        suite = _suite(junit, report, host)
        suite.hostname = host
        for finding in findings:
            suite.add_testcase(_case(junit, report, finding))
        whole.add_testsuite(suite)
    if report.night.cut_short:
        whole.add_testsuite(_unfinished(junit, report))
    whole.update_statistics()
    whole.time = took_s(report.night) or 0.0
    # Jenkins' schema knows this sum of a suite alone.
    root = ET.fromstring(whole.tostring())  # noqa: S314 - written a line above
    root.attrib.pop("skipped", None)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(junit: Any, report: NightReport, name: str) -> Any:
    night = report.night
    suite = junit.TestSuite(name)
    # Readers of JUnit take a date without a zone; every time of eagleops is in UTC.
    suite.timestamp = f"{instant(night.began_utc):%Y-%m-%dT%H:%M:%S}"
    for key in ("suite", "uuid", "outcome", "client", "user", "eagleops"):
        suite.add_property(key, str(getattr(night, key)))
    return suite


def _case(junit: Any, report: NightReport, finding: Finding) -> Any:
    case = junit.TestCase(finding.id, classname=f"{report.night.suite}.{finding.host}")
    case.time = 0.0
    text = "\n".join(_lines(report, finding))
    if finding.state == "fail":
        case.result = [_result(junit.Failure, finding.message, finding.kind, text)]
    elif finding.state == "skip":
        case.result = [_result(junit.Skipped, finding.message, None, "")]
    else:
        case.system_out = text
    return case


def _result(kind: Any, message: str, type_: str | None, text: str) -> Any:
    made = kind(message, type_)
    if text:
        made.text = text
    return made


def _lines(report: NightReport, finding: Finding) -> Iterator[str]:
    yield f"{finding.state}: {finding.message}"
    if told := figures(finding):
        yield told
    if finding.run_id is not None:
        yield f"run {finding.run_id}"
    if finding.bad:
        yield from commands(report, finding)


def _unfinished(junit: Any, report: NightReport) -> Any:
    suite = _suite(junit, report, "the night itself")
    case = junit.TestCase("finished", classname=report.night.suite)
    case.time = 0.0
    case.result = [_result(junit.Error, report.night.cut_short, report.night.outcome, "")]
    suite.add_testcase(case)
    return suite
