"""The reports of real nights on the embedded box."""

from __future__ import annotations

import json
from html import unescape

import jsonschema
import pytest

from nightly.boxes import Boxes
from nightly_reports.test_writing import SCHEMA, strict
from parts.pages import Tags, plain

parser = pytest.importorskip(
    "prometheus_client.parser", reason="the [nightly] extra is not installed"
)
junitparser = pytest.importorskip("junitparser", reason="the [nightly] extra is not installed")

SUITE = "profiles: [baseline], prometheus: eagleops.prom, reports: reports, history_nights: 5"


def test_a_night_leaves_every_report_and_its_schema_holds(boxes: Boxes) -> None:
    """A GPU that fell ill after the first night stands on top, and in each of the files."""
    boxes.night(SUITE)
    boxes.box().log_xid(0, 79, "GPU has fallen off the bus")

    report = boxes.night(SUITE)

    folder = boxes.folder / "reports"
    document = json.loads((folder / "default-latest.json").read_text())
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(document)
    assert dict(report.reports) == document["reports"]
    assert document["counts"] == report.counts
    (event,) = document["news"]["events"]
    assert (event["check"].partition(":")[0], event["state"]) == ("xid", "fail")

    page = (folder / "default-latest.html").read_text()
    assert Tags(page).open == []
    words = unescape(plain(page))
    assert "New: xid" in words
    assert "eagleops status --host sim" in words
    assert "<redacted>" not in words

    whole = junitparser.JUnitXml.fromfile(str(folder / "default-latest.junit.xml"))
    assert (whole.tests, whole.failures) == (sum(report.counts.values()), report.counts["fail"])

    metrics = (boxes.folder / "eagleops.prom").read_text()
    names = {family.name for family in parser.text_string_to_metric_families(metrics)}
    assert "eagleops_nightly_decode_tokens_per_second" in names
    assert 'state="fail",suite="default"} 1.0' in metrics
    assert (boxes.folder / "eagleops.prom").stat().st_mode & 0o777 == 0o644


def test_reports_beyond_those_to_be_kept_are_removed(boxes: Boxes) -> None:
    """As the nights are: of three nights two stay, and the name that stays."""
    for _ in range(3):
        boxes.night("reports: reports, keep_nights: 2")

    pages = sorted(path.name for path in (boxes.folder / "reports").glob("*.html"))
    assert len(pages) == 3
    assert pages[-1] == "default-latest.html"
