"""Metrics: what node_exporter's textfile collector takes, and what an alert can stand on."""

from __future__ import annotations

import re
import shutil
import subprocess

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.drift.metrics import METRICS
from eagleops.nights.catalogue import KINDS
from eagleops.nights.finding import Finding
from eagleops.render.nightly.prometheus import BASE_UNITS, FIGURES, text
from nightly_reports.examples import HOOK, SECRET, example, night

parser = pytest.importorskip(
    "prometheus_client.parser", reason="the [nightly] extra is not installed"
)
PREFIX = "eagleops_nightly_"


def samples(written: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample by its name, shortened, and its labels without the suite."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in parser.text_string_to_metric_families(written):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("suite") == "default"
            key = (sample.name.removeprefix(PREFIX), frozenset(labels.items()))
            assert key not in found, key
            assert sample.timestamp is None
            found[key] = sample.value
    return found


def value(written: str, name: str, **labels: str) -> float | None:
    """One sample."""
    return samples(written).get((name, frozenset(labels.items())))


def of(*findings: Finding, **changes: object):
    """The report of a night with these findings."""
    tonight = attrs.evolve(night(11), findings=findings, **changes)
    return attrs.evolve(example(11), night=tonight, trends=())


def test_a_check_is_one_series_a_state() -> None:
    """One of them is 1, the others are 0, so that an alert ends when the state changes."""
    written = text(example(60))

    for state, expected in (("fail", 1), ("warn", 0), ("pass", 0), ("skip", 0)):
        labels = {"host": "box1", "check": "speed:baseline", "state": state}
        assert value(written, "check_state", **labels) == expected
    per_check: dict[frozenset[tuple[str, str]], float] = {}
    for (name, labels), told in samples(written).items():
        if name == "check_state":
            check = frozenset(label for label in labels if label[0] != "state")
            per_check[check] = per_check.get(check, 0) + told
    assert len(per_check) == 102
    assert set(per_check.values()) == {1}


def test_silence_and_the_last_good_night_can_be_alerted_on() -> None:
    """When it last came to an end, when it last did without a failure, and how long it took."""
    written = text(example(60))

    assert value(written, "completion_timestamp_seconds") == 1796008277
    assert value(written, "success_timestamp_seconds") == 1793675537  # night 33
    assert value(written, "start_timestamp_seconds") == 1796005800
    assert value(written, "duration_seconds") == 2477
    assert value(written, "outcome", outcome="done") == 1
    assert value(written, "outcome", outcome="time_limit") == 0
    assert value(written, "exit_status") == 1
    assert value(written, "info", version="0.1", client="desk") == 1


def test_a_night_that_runs_still_keeps_the_last_one_s_end() -> None:
    """A night that was cut off is silence, not news."""
    cut = attrs.evolve(example(60), night=attrs.evolve(night(60), ended_utc=None))

    assert value(text(cut), "completion_timestamp_seconds") == 1795922057


def test_a_fault_that_stands_says_since_when() -> None:
    """The faults that are over, and those of one night, have no such series."""
    begun = {
        (dict(labels)["host"], dict(labels)["check"]): told
        for (name, labels), told in samples(text(example(60))).items()
        if name == "fault_start_timestamp_seconds"
    }

    assert begun == {
        ("box1", "speed:baseline"): 1793500200,
        ("box1", "engine-files"): 1793500200,
        ("box3", "stale"): 1796005800,
    }


def test_figures_are_in_base_units_at_the_end_of_a_name() -> None:
    """Bytes, ratios and seconds; a unit that is nobody's stays a label."""
    written = text(
        of(
            Finding("disk", "box1", "warn", "full", 8912, "MiB", 10240),
            Finding("throttling:baseline", "box1", "fail", "hot", 71.0, "%", 1),
            Finding("command:ib", "box1", "pass", "fast", 46.5, "furlongs"),
            Finding("driver", "box1", "warn", "new", "580.95", "", "570.1"),
        )
    )

    disk, hot = {"host": "box1", "check": "disk"}, {"host": "box1", "check": "throttling:baseline"}
    assert value(written, "check_value_bytes", **disk) == 8912 * 2**20
    assert value(written, "check_limit_bytes", **disk) == 10240 * 2**20
    assert value(written, "check_value_ratio", **hot) == pytest.approx(0.71)
    own = {"host": "box1", "check": "command:ib", "unit": "furlongs"}
    assert value(written, "check_value", **own) == 46.5
    assert "580" not in written


def test_every_unit_of_the_catalogue_is_known() -> None:
    """A new kind of check in a new unit gets a base unit too."""
    assert {kind.unit for kind in KINDS.values() if kind.unit} - set(BASE_UNITS) == set()


def test_every_figure_that_is_followed_has_its_metric() -> None:
    """As last measured, and the level of its history."""
    written = text(example(60))
    at = {"host": "box1", "profile": "baseline"}

    assert set(FIGURES) == set(METRICS)
    assert value(written, "decode_tokens_per_second", **at) == pytest.approx(77.06, abs=0.01)
    level = value(written, "expected_decode_tokens_per_second", **at)
    assert level == pytest.approx(76.4, abs=0.1)
    eagle = {"host": "box2", "profile": "eagle3-2step"}
    assert value(written, "accepted_tokens_per_cycle", **eagle) == 1.84


def test_names_are_as_prometheus_has_them() -> None:
    """Each has a help text and a type, no abbreviated unit, and no counter's ending."""
    written = text(example(60))
    names = set(re.findall(r"^# TYPE (\S+) gauge$", written, re.MULTILINE))

    assert names == set(re.findall(r"^# HELP (\S+) \S.*\.$", written, re.MULTILINE))
    assert all(re.fullmatch(r"eagleops_nightly_[a-z_]+", name) for name in names)
    assert [name for name in names if name.endswith(("_total", "_ms", "_mib", "_pct"))] == []
    promtool = shutil.which("promtool")
    if promtool is not None:  # nothing of ours needs it
        subprocess.run([promtool, "check", "metrics"], input=written.encode(), check=True)


@given(st.text(st.characters(codec=None, exclude_categories=()), min_size=1, max_size=40))
def test_whatever_a_check_is_called_is_one_label(name: str) -> None:
    """Quotes, backslashes, line ends, lone surrogates: the file is read, and no line is torn."""
    found = text(of(Finding("disk", "box1", "fail", "full"), Finding(name, "box1", "pass", name)))

    states = [key for key in samples(found) if key[0] == "check_state"]
    assert len(states) == (4 if name == "disk" else 8)
    whole = re.compile(r"# (HELP|TYPE) .*|eagleops_nightly_\w+\{.*\} \S+", re.DOTALL)
    assert [line for line in found.rstrip("\n").split("\n") if not whole.fullmatch(line)] == []


def test_of_a_check_that_was_made_twice_the_last_holds() -> None:
    """The collector takes no file with two samples of one series."""
    twice = of(Finding("disk", "box1", "fail", "full"), Finding("disk", "box1", "pass", "room"))

    labels = {"host": "box1", "check": "disk", "state": "pass"}
    assert value(text(twice), "check_state", **labels) == 1


def test_it_holds_no_secret() -> None:
    """A label is the only text in it."""
    told = of(Finding(f"command:{HOOK}", "box1", "fail", f"HF_TOKEN={SECRET}"))

    written = text(told, secrets=[HOOK])

    assert SECRET not in written
    assert HOOK not in written
