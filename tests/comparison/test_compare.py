"""The protocol, on real servers of the embedded box in fast mode."""

from __future__ import annotations

import json

import attrs
import pytest

from comparison.examples import SECRET
from eagleops.errors import LinkLost, ProfileError, UsageError
from eagleops.gpu import Gpu
from eagleops.ledger import Ledger
from eagleops.library.compare import compare, plan
from eagleops.workflows import compare as workflow
from eagleops.workflows.compare_plan import Protocol
from eagleops.workflows.cool_down import Band, cool_down
from eagleops.workflows.progress import Step

pytest.importorskip("scipy", reason="the [stats] extra is not installed")

QUICK = Protocol(restarts=2, runs=2, tokens=64, warmups=0, cool_down_s=5.0)
PROFILES = ("baseline", "eagle3-2step")


def headings(steps: list[Step]) -> list[str]:
    """The restarts as they were begun."""
    return [step.stage for step in steps if step.stage.startswith("$")]


@pytest.mark.alone  # the box's clock runs ten times as fast, and a busy machine cannot follow
def test_each_restart_is_a_server_of_its_own(open_library) -> None:
    """ABBA: four launches, each measured and recorded with its environment, then one answer."""
    library = open_library()
    steps: list[Step] = []

    result = compare(library.host("sim"), PROFILES, QUICK, progress=steps.append)

    assert headings(steps) == [
        "$ compare: baseline, restart 1 (1 of 4)",
        "$ compare: eagle3-2step, restart 1 (2 of 4)",
        "$ compare: eagle3-2step, restart 2 (3 of 4)",
        "$ compare: baseline, restart 2 (4 of 4)",
    ]
    baseline, eagle = result.restarts
    # Fast mode: ten times the profile's speed.
    assert baseline.mean_tok_s == pytest.approx(822, rel=0.1)
    assert eagle.mean_tok_s == pytest.approx(10 * 1.84 / 0.0306, rel=0.1)
    ((name, told),) = result.break_even
    assert (name, told.pays, told.num_draft_tokens) == ("eagle3-2step", False, 3)
    assert told.needed_accept_length == pytest.approx(2.52, rel=0.1)
    assert result.ok
    ids = [trial.run_id for trial in result.trials]
    assert len(set(ids)) == 4
    with Ledger.open(library.inventory.ledger) as ledger:
        marks = [ledger.run(run_id).part("comparison") for run_id in ids]
    assert {mark["id"] for mark in marks} == {result.id}
    assert "Simulated: these figures come from the embedded box." in result.notes


def test_an_interrupted_comparison_is_taken_up_where_it_was(open_library) -> None:
    """What was measured before the interruption is kept, and only the rest is measured."""
    library = open_library()

    def interrupt(step: Step) -> None:
        if step.stage == "$ compare: eagle3-2step, restart 2 (3 of 4)":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(library.host("sim"), PROFILES, QUICK, progress=interrupt)
    steps: list[Step] = []
    result = compare(library.host("sim"), PROFILES, QUICK, resume=True, progress=steps.append)

    assert headings(steps) == [
        "$ compare: eagle3-2step, restart 2 (3 of 4)",
        "$ compare: baseline, restart 2 (4 of 4)",
    ]
    assert [len(one.trials) for one in result.restarts] == [2, 2]
    assert "2 restarts were measured before and are kept" in result.notes
    again = compare(library.host("sim"), PROFILES, QUICK, resume=True)
    assert (again.id, [t.run_id for t in again.trials]) == (
        result.id,
        [t.run_id for t in result.trials],
    )


def test_another_comparison_is_not_taken_up(open_library) -> None:
    """Other requests or other flags make another comparison."""
    library = open_library()
    host = library.host("sim")
    one = plan(host, PROFILES, QUICK)

    assert plan(host, PROFILES, attrs.evolve(QUICK, restarts=9)).identity == one.identity
    assert plan(host, PROFILES, attrs.evolve(QUICK, tokens=65)).identity != one.identity
    changed = host.profile("eagle3-2step").with_(env={"NCCL_PROTO": "Simple"})
    assert plan(host, ["baseline", changed], QUICK).identity != one.identity
    assert workflow.measured_before(library.inventory.ledger, one) is None


def test_a_profile_whose_server_dies_is_given_up(open_library) -> None:
    """After two deaths in a row it is tried no more; the rest of the comparison goes on."""
    library = open_library(eagle="fail: oom")
    protocol = attrs.evolve(QUICK, restarts=3, runs=1)
    steps: list[Step] = []

    result = compare(library.host("sim"), PROFILES, protocol, progress=steps.append)

    tried = [line for line in headings(steps) if "eagle3" in line]
    assert len(tried) == 2
    assert len(result.restarts[0].counted) == 3
    assert result.exit_status == 3
    assert "eagle3-2step failed 2 times in a row and was given up" in result.notes
    assert "died before it was ready" in result.restarts[1].trials[0].excluded[0]


def test_a_wrong_environment_is_not_measured(open_library) -> None:
    """A restart whose workers run with something else is left out, with the reason."""
    library = open_library()
    host = library.host("sim")
    # SGLang writes this one itself, whatever was set before.
    wrong = host.profile("baseline").with_(name="wrong", env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    protocol = attrs.evolve(QUICK, restarts=1, runs=1)

    result = compare(host, ["baseline", wrong], protocol)

    (trial,) = result.restarts[1].trials
    assert trial.excluded[0].startswith("environment: ")
    assert trial.excluded[1] == "not measured"
    assert result.exit_status == 3


def test_a_restart_without_a_figure_is_tried_again(open_library) -> None:
    """A wrong environment may be mended by now; what was measured is kept, and counts once."""
    host = open_library().host("sim")
    wrong = host.profile("baseline").with_(name="wrong", env={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})
    protocol = attrs.evolve(QUICK, restarts=1, runs=1)
    before = compare(host, ["baseline", wrong], protocol)
    steps: list[Step] = []

    result = compare(host, ["baseline", wrong], protocol, resume=True, progress=steps.append)

    assert headings(steps) == ["$ compare: wrong, restart 1 (2 of 2)"]
    assert result.restarts[0].trials[0].run_id == before.restarts[0].trials[0].run_id
    (trial,) = result.restarts[1].trials
    assert trial.excluded[0].startswith("environment: ")
    assert trial.run_id != before.restarts[1].trials[0].run_id


def test_a_server_that_dies_under_a_request_costs_its_restart_alone(open_library) -> None:
    """The baseline's restarts are measured all the same."""
    library = open_library(eagle="fail: serve")
    protocol = attrs.evolve(QUICK, restarts=1, runs=1)

    result = compare(library.host("sim"), PROFILES, protocol)

    assert [len(one.counted) for one in result.restarts] == [1, 0]
    assert result.restarts[1].trials[0].excluded != ()
    assert result.exit_status == 3


def test_an_error_on_the_way_says_how_to_go_on(open_library) -> None:
    """What was measured before a machine was lost is kept, and the way out says so."""
    library = open_library()

    def lose(step: Step) -> None:
        if step.stage.startswith("$ compare: eagle3-2step"):
            raise LinkLost(problem="the link broke", where="sim", host="sim")

    with pytest.raises(LinkLost) as lost:
        compare(library.host("sim"), PROFILES, QUICK, progress=lose)

    assert str(lost.value) == (
        "sim: the link broke\n"
        "What was measured is kept: the same command with --resume goes on from there."
    )


def test_without_a_baseline_the_comparison_is_aborted(open_library) -> None:
    """There is nothing to compare with, so nothing more is measured."""
    library = open_library(baseline="fail: oom", eagle="fail: ''")
    protocol = attrs.evolve(QUICK, restarts=3, runs=1)
    steps: list[Step] = []

    result = compare(library.host("sim"), PROFILES, protocol, progress=steps.append)

    assert result.aborted == (
        "baseline failed 2 times in a row and was given up; without a baseline there is nothing "
        "to compare with"
    )
    assert (result.ok, result.exit_status) == (False, 1)
    assert len(headings(steps)) == 4


def test_what_cannot_be_compared_is_refused_before_anything_is_touched(open_library) -> None:
    """One profile, the same one twice, an unknown one, or no restarts."""
    host = open_library().host("sim")

    with pytest.raises(UsageError, match="a comparison needs two profiles"):
        compare(host, "baseline")
    with pytest.raises(UsageError, match="there is no profile nope"):
        host.launch("nope")
    with pytest.raises(UsageError, match="a comparison needs two profiles"):
        compare(host, ["baseline"], QUICK)
    with pytest.raises(UsageError, match="baseline is named twice"):
        compare(host, ["baseline", "baseline"], QUICK)
    with pytest.raises(ProfileError, match="there is no profile eagle9"):
        compare(host, ["baseline", "eagle9"], QUICK)
    with pytest.raises(UsageError, match="--restarts: at least 1 is needed, not 0"):
        Protocol(restarts=0)


def test_too_few_restarts_are_told_before_they_are_measured(open_library) -> None:
    """The plan says how many it takes to show anything at all."""
    planned = plan(open_library().host("sim"), PROFILES, attrs.evolve(QUICK, restarts=3))

    assert planned.view().notes[0].text == (
        "3 restarts of each cannot show any difference: at least 4 are needed (--restarts 4)."
    )


class Cooling:
    """A machine whose GPU cools by two degrees a look."""

    name = "box"

    def __init__(self, temperature_c: int) -> None:
        self.temperature_c = temperature_c

    def call(self, op: str, **_args):
        self.temperature_c -= 2
        return {"gpus": [{"index": 0, "temperature_c": self.temperature_c}]}


def test_it_waits_until_the_gpus_are_where_they_started() -> None:
    """Three degrees above the start are the band's edge."""
    band = Band.around([Gpu(0, temperature_c=40, sm_clock_mhz=210)])
    machine = Cooling(61)
    waits: list[float] = []

    warm = cool_down(machine, band, limit_s=60, progress=lambda _: None, sleep=waits.append)

    assert (warm, machine.temperature_c, len(waits)) == ("", 43, 8)


def test_a_gpu_that_stays_warm_is_told() -> None:
    """After the limit the comparison goes on, and says so."""
    band = Band.around([Gpu(0, temperature_c=40, sm_clock_mhz=210)])

    warm = cool_down(Cooling(90), band, limit_s=1e-9, progress=lambda _: None)

    assert warm == "not cooled down within 1e-09 s: GPU 0 at 88 °C (band: 43)"
    assert list(band.above([Gpu(0, temperature_c=41, sm_clock_mhz=2600)])) == [
        "GPU 0 at 2600 MHz (band: 261)"
    ]


def test_nothing_is_looked_at_without_a_cool_down() -> None:
    """A limit of 0 waits for nothing."""
    band = Band.around([Gpu(0, temperature_c=40)])

    assert cool_down(Cooling(90), band, limit_s=0, progress=lambda _: None) == ""


def test_no_secret_reaches_the_document(open_library) -> None:
    """Neither the result nor the ledger's file holds the profile's token."""
    library = open_library()
    protocol = attrs.evolve(QUICK, restarts=1, runs=1)

    result = compare(library.host("sim"), PROFILES, protocol)

    assert SECRET not in json.dumps(result.to_dict())
    assert all(SECRET not in json.dumps(trial.parts) for trial in result.trials)
