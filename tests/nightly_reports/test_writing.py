"""Reports are written whole or not at all, under names that stay; and a schema describes one."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest

from eagleops.errors import ReportsNotWritten, UsageError
from eagleops.nights.finding import Finding
from eagleops.render.console import document as json_document
from eagleops.render.nightly import writing
from eagleops.render.nightly.safe import presentable
from eagleops.render.nightly.writing import prune, ready, write_all
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.trend import TrendReport
from nightly_reports.examples import HOOK, SECRET, example, night, trend

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/json.md"
STAMP = "20261130T023000Z"
SCHEMA: dict[str, Any] = json.loads((files("eagleops") / "nightly.schema.json").read_text())


def quick(number: int) -> NightReport:
    """The report of that night without what takes its time to be drawn."""
    return attrs.evolve(example(number), trends=())


def document(folder: Path) -> Any:
    """The JSON report."""
    return json.loads((folder / "default-latest.json").read_text())


def test_each_night_has_its_own_files_and_the_last_one_a_name_that_stays(tmp_path: Path) -> None:
    """A link in a message holds for ever, and a CI server finds the last one."""
    folder, metrics = tmp_path / "reports", tmp_path / "eagleops.prom"

    places = write_all(quick(59), folder)
    assert "prometheus" not in places
    places = write_all(quick(60), folder, metrics)

    assert places == {
        "html": folder / f"default-{STAMP}.html",
        "junit": folder / f"default-{STAMP}.junit.xml",
        "json": folder / f"default-{STAMP}.json",
        "prometheus": metrics,
    }
    names = {path.name for path in folder.iterdir()}
    kinds = ("html", "junit.xml", "json")
    stems = (f"default-{STAMP}", "default-20261129T023000Z", "default-latest")
    assert names == {f"{stem}.{kind}" for stem in stems for kind in kinds}
    for kind in kinds:
        latest = (folder / f"default-latest.{kind}").read_bytes()
        assert latest == (folder / f"default-{STAMP}.{kind}").read_bytes()
    assert document(folder)["reports"] == {kind: str(place) for kind, place in places.items()}


def test_metrics_can_be_read_by_everybody_else(tmp_path: Path) -> None:
    """node_exporter is another user; whatever umask a timer has."""
    before = os.umask(0o077)
    try:
        write_all(quick(11), tmp_path / "reports", tmp_path / "eagleops.prom")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "eagleops.prom").stat().st_mode) == 0o644
    page = tmp_path / "reports" / "default-latest.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_reader_never_sees_a_part(tmp_path: Path, monkeypatch) -> None:
    """The old file stands until the new one is whole; what is in between no collector takes."""
    metrics = tmp_path / "eagleops.prom"
    write_all(quick(11), tmp_path / "reports", metrics)
    old, seen = metrics.read_bytes(), []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        if target == metrics:
            seen.append((metrics.read_bytes(), self.suffix, self.read_bytes()))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_all(quick(12), tmp_path / "reports", metrics)

    assert seen == [(old, ".new", metrics.read_bytes())]
    assert list(tmp_path.glob("**/.*")) == []


def test_a_bug_in_one_report_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the night: it is told as what it is."""

    def broken(_: NightReport) -> str:
        raise IndexError("3")

    monkeypatch.setitem(writing._TEXTS, "junit", broken)

    with pytest.raises(ReportsNotWritten, match="junit: internal error, a bug of eagleops: Index"):
        write_all(quick(60), tmp_path)

    assert {path.suffix for path in tmp_path.iterdir()} == {".html", ".json"}


@pytest.mark.parametrize("value", ["580.95", "", 0, -3, 7, 1e300, -2.5, 0.1, 123456.7, None])
def test_any_figure_that_a_check_may_have_is_written(
    tmp_path: Path, value: float | str | None
) -> None:
    """Numbers and words, in every report."""
    told = Finding("driver", "box1", "warn", "new", value, "MiB", value)
    report = quick(60)

    write_all(
        attrs.evolve(report, night=attrs.evolve(report.night, findings=(told,))),
        tmp_path,
        tmp_path / "eagleops.prom",
    )

    assert document(tmp_path)["checks"][0]["value"] == value


def test_one_report_that_cannot_be_written_costs_no_other(tmp_path: Path) -> None:
    """The error says which, why, and where the others are."""
    folder = tmp_path / "reports"
    missing = tmp_path / "not there" / "eagleops.prom"

    with pytest.raises(ReportsNotWritten) as raised:
        write_all(quick(60), folder, missing)

    assert str(raised.value) == (
        f"{folder}: not every report could be written: "
        f"prometheus: {missing}: No such file or directory"
    )
    assert raised.value.written == {
        "html": str(folder / f"default-{STAMP}.html"),
        "junit": str(folder / f"default-{STAMP}.junit.xml"),
        "json": str(folder / f"default-{STAMP}.json"),
    }
    assert len(list(folder.iterdir())) == 6


def test_what_cannot_be_written_is_told_before_the_night(tmp_path: Path) -> None:
    """A folder that is a file; a folder for the metrics that is not there."""
    ready(tmp_path / "a" / "b", tmp_path / "eagleops.prom")
    (tmp_path / "file").write_text("")

    with pytest.raises(UsageError, match="file: reports cannot be written there: it is no folder"):
        ready(tmp_path / "file" / "reports")
    with pytest.raises(UsageError, match="missing: reports cannot be written there: it is not th"):
        ready(tmp_path, tmp_path / "missing" / "eagleops.prom")
    assert not (tmp_path / "a").exists()


def test_no_secret_is_in_any_file(tmp_path: Path) -> None:
    """Not in a message, nor in what a check tells besides."""
    finding = Finding(
        "command:smoke", "box1", "fail", f"HF_TOKEN={SECRET} to {HOOK}", facts={"api_key": SECRET}
    )
    told = attrs.evolve(night(60), findings=(*night(60).findings, finding))
    report = attrs.evolve(example(), night=told, trends=())

    write_all(report, tmp_path / "reports", tmp_path / "eagleops.prom", secrets=[HOOK])

    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 7
    assert not any(SECRET in text or HOOK in text for text in written)


def test_reports_of_old_nights_are_removed(tmp_path: Path) -> None:
    """Those of the suite alone, and never the one with the name that stays."""
    for number in (1, 2, 3):
        write_all(quick(number), tmp_path)
    others = ("default-notes.html", "default-x-20260101T000000Z.html", f"other-{STAMP}.html")
    for name in others:
        (tmp_path / name).write_text("mine")

    removed = prune(tmp_path, "default", 2)

    assert {path.name.partition(".")[0] for path in removed} == {"default-20261002T023000Z"}
    assert len(removed) == 3
    assert all((tmp_path / name).exists() for name in others)
    assert (tmp_path / "default-latest.html").exists()
    assert prune(tmp_path / "missing", "default", 2) == ()


def strict(schema: Any) -> Any:
    """The schema with nothing allowed that it does not name."""
    if isinstance(schema, dict):
        closed = {key: strict(value) for key, value in schema.items()}
        if "properties" in schema:
            closed["additionalProperties"] = False
        return closed
    return [strict(item) for item in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("number", [1, 12, 20, 34, 60])
def test_the_schema_describes_the_document(number: int) -> None:
    """Every key of it is in the schema, and no required one is missing."""
    told = json.loads(json_document("nightly", presentable(example(number)).to_dict()))

    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(told)


def test_the_schema_refuses_what_is_no_night() -> None:
    """A state that is none, or a night without its checks."""
    validator = jsonschema.Draft202012Validator(SCHEMA)

    assert not validator.is_valid({"schema": 1, "command": "nightly", "ok": True, "host": None})
    assert validator.is_valid(
        {
            "schema": 1,
            "command": "nightly",
            "ok": False,
            "host": None,
            "error": {"type": "NightsHeld", "problem": "another process runs this suite"},
        }
    )


def test_numbers_that_json_lacks_are_null(tmp_path: Path) -> None:
    """The document can be read by whatever reads JSON."""
    finding = Finding("command:smoke", "box1", "pass", "odd", float("nan"), facts={"x": 1e999})
    report = attrs.evolve(
        example(11), night=attrs.evolve(night(11), findings=(finding,)), trends=()
    )

    write_all(report, tmp_path)

    check = document(tmp_path)["checks"][0]
    assert (check["value"], check["facts"]) == (None, {"x": None})


@pytest.mark.alone
def test_hundreds_of_nights_are_written_in_seconds(tmp_path: Path) -> None:
    """400 nights of five hosts: a page of a megabyte or so, all of it within 15 seconds."""
    hosts = tuple(f"box{number}" for number in range(1, 6))
    trends: list[TrendReport] = []
    for host in hosts:
        trends += [trend(400, host, "baseline"), trend(400, host, "eagle3-2step")]
        trends.append(trend(400, host, "eagle3-2step", "accept_length"))
    report = attrs.evolve(example(400, hosts), trends=tuple(trends))

    began_s = time.monotonic()
    places = write_all(report, tmp_path, tmp_path / "eagleops.prom")
    took_s = time.monotonic() - began_s

    assert took_s < 15
    assert places["html"].stat().st_size < 2_000_000
    assert places["json"].stat().st_size < 2_000_000
    assert places["prometheus"].stat().st_size < 200_000


def described(schema: Any) -> set[str]:
    """Every key that a schema names."""
    if isinstance(schema, dict):
        own = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
        return own.union(*(described(value) for value in schema.values()))
    return set().union(*map(described, schema)) if isinstance(schema, list) else set()


def test_every_key_of_the_schema_is_on_the_page() -> None:
    """What a program reads a person can look up."""
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    own = dict(zip(parts[1::2], parts[2::2], strict=True))
    told = "".join(own[name] for name in ("nightly", "trend", "The nightly message", "An error"))
    told += parts[0] + own["diff"]

    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", told))))
    assert described(SCHEMA) - words == set()


def test_a_folder_that_cannot_even_be_looked_at_is_refused_before_the_night(
    tmp_path: Path,
) -> None:
    """A name that is too long, a loop of links, a file on the way."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    for place in ("a" * 300, "loop", "file"):
        with pytest.raises(UsageError, match="reports cannot be written there"):
            ready(tmp_path / place / "reports")
        with pytest.raises(UsageError, match="reports cannot be written there"):
            ready(tmp_path, tmp_path / place / "eagleops.prom")
