"""The verdicts on the GPUs' health: on an embedded box that falls ill, and on every gap."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.machine import Machine
from eagleops.nights.catalogue import KINDS as CATALOGUE
from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule
from eagleops.remote.health_facts import parse
from eagleops.sim.box import SimBox
from eagleops.workflows.nightly.gpu_health import (
    KINDS,
    REST_LIMIT_S,
    judge_health,
    known_gpus,
    read_rested,
)
from eagleops.workflows.nightly.gpu_look import named
from eagleops.workflows.nightly.report import CANNOT_TELL

Health = Callable[..., dict[str, Any]]
Judged = Callable[..., dict[str, Finding]]


def test_a_sound_box_passes_each_check(health: Health, judged: Judged) -> None:
    """In the catalogue's order, with the figures that were seen."""
    found = judged(health())

    assert list(found) == [kind for kind in CATALOGUE if kind in KINDS]
    assert {finding.state for finding in found.values()} == {"pass"}
    assert found["temperature"].message == "GPUs 0 to 3: 32 to 35 °C at rest"
    assert found["pcie"].message == "GPUs 0 to 3: 16 lanes, as wide as can be"
    assert (found["fan"].value, found["fan"].limit, found["fan"].unit) == (30, 95, "%")


@pytest.mark.parametrize(
    ("kind", "fault", "words"),
    [
        ("ecc", {"ecc_uncorrected": 2}, "GPU 2 has had 2 uncorrected ECC errors since"),
        ("rows", {"rows_pending": True}, "GPU 2 has memory rows that wait to be remapped."),
        ("rows", {"rows_failed": True}, "GPU 2 has a memory row that could not be remapped"),
        ("pcie", {"pcie_width": 4}, "GPU 2 has 4 of 16 PCIe lanes. Reseat the card"),
        ("pcie", {"lost": True}, "a GPU has fallen off the bus: see doctor:gpus"),
        (
            "idle-throttling",
            {"throttle_reasons": ["gpu_idle", "hw_power_brake_slowdown"]},
            "GPU 2 is slowed down at rest by the power brake.",
        ),
        ("temperature", {"temperature_c": 71}, "GPU 2 is at 71 °C at rest, above 60."),
        ("fan", {"fan_pct": 100}, "GPU 2 runs its fan at 100 % at rest, above 95."),
        ("fan", {"fan_pct": None}, "GPU 2 has a fan that cannot be read (Unknown Error)."),
        (
            "fan",
            {"fan_pct": 0, "temperature_c": 70},
            "GPU 2 is at 70 °C, and its fan stands still.",
        ),
        ("power", {"power_w": 333.0}, "GPU 2 draws 333 W at rest, above 200."),
        ("power", {"power_limit_w": 450.0}, "GPU 2 is limited to 450 W of 600 (nvidia-smi -pl)"),
    ],
)
def test_each_illness_is_told_with_its_gpu(
    box: SimBox, health: Health, judged: Judged, kind: str, fault: dict[str, Any], words: str
) -> None:
    """As severe as the catalogue says, and the way out follows."""
    box.break_gpu(2, **fault)

    found = judged(health())

    assert found[kind].state == CATALOGUE[kind].severity
    assert words in found[kind].message
    others = {other.state for other in found.values() if other.id != kind}
    assert others == ({"pass", "warn"} if "temperature_c" in fault and kind == "fan" else {"pass"})


def test_a_still_fan_on_a_cool_card_rests(box: SimBox, health: Health, judged: Judged) -> None:
    """Consumer cards stop their fans when they are cool."""
    box.break_gpu(0, fan_pct=0)

    assert judged(health())["fan"].state == "pass"


def test_an_idle_link_may_be_slow(box: SimBox, health: Health, judged: Judged) -> None:
    """The generation counts under load alone."""
    told = health()
    assert (told["gpus"][1]["pcie"]["gen"], judged(told)["pcie"].state) == (1, "pass")

    told["gpus"][1]["utilization_pct"] = 98

    message = judged(told, idle=False)["pcie"].message
    assert message.startswith("GPU 1 works over PCIe generation 1 of 5.")


def test_what_holds_of_idle_gpus_is_not_asked_of_others(
    box: SimBox, health: Health, judged: Judged
) -> None:
    """Where something works nothing is known of them; the rest is judged all the same."""
    box.break_gpu(
        1, temperature_c=88, power_w=590.0, throttle_reasons=["hw_thermal_slowdown"], fan_pct=99
    )
    told = health()

    found = judged(told, idle=False)

    assert {f.id: f.state for f in found.values() if f.state != "pass"} == {
        "idle-throttling": "skip",
        "temperature": "skip",
        "power": "skip",
    }
    assert not any(finding.facts.get(CANNOT_TELL) for finding in found.values())


def test_a_gpu_that_somebody_unseen_uses_is_not_at_rest(health: Health, judged: Judged) -> None:
    """Its utilization tells of another container's work."""
    told = health()
    told["gpus"][3].update(utilization_pct=97, temperature_c=85, power_w=500.0)

    found = judged(told)

    assert found["temperature"].message == "GPUs 0 to 2: 32 to 34 °C at rest; GPU 3: at work"
    assert {found[kind].state for kind in ("temperature", "power", "idle-throttling")} == {"pass"}


def test_corrected_errors_are_counted_from_the_last_night(
    box: SimBox, health: Health, judged: Judged
) -> None:
    """What was there before is no news; a driver that was loaded anew counts from nought."""
    box.break_gpu(0, ecc_corrected=5000)
    before = health()
    assert judged(before)["ecc-corrected"].state == "pass"  # GPUs 1 to 3
    assert "GPU 0: no last night to compare with" in judged(before)["ecc-corrected"].message

    assert judged(health(), before)["ecc-corrected"].value == 0
    box.break_gpu(0, ecc_corrected=6500)
    grown = judged(health(), before)["ecc-corrected"]
    assert (grown.state, grown.value) == ("warn", 1500)
    assert grown.message.startswith("GPU 0 corrected 1,500 ECC errors since the last night.")

    box.break_gpu(0, ecc_corrected=40)
    assert judged(health(), before)["ecc-corrected"].value == 40


def test_a_loaded_driver_does_not_hide_what_the_gpu_remembers(
    health: Health, judged: Judged
) -> None:
    """The count that the GPU keeps is the better witness then."""
    before, now = health(), health()
    for told, volatile, aggregate in ((before, 500, 10_000), (now, 3, 12_000)):
        told["gpus"][0]["ecc"]["volatile"]["corrected"] = volatile
        told["gpus"][0]["ecc"]["aggregate"]["corrected"] = aggregate

    assert judged(now, before)["ecc-corrected"].value == 2000


def test_replays_are_counted_by_the_minute(health: Health, judged: Judged) -> None:
    """A handful a night is normal; more than eight a minute all night long is a bad contact."""
    before, now = health(), health()
    before["time_utc"], now["time_utc"] = "2026-11-30T02:00:00.000Z", "2026-12-01T02:00:00.000Z"
    now["gpus"][1]["pcie"]["replays"] = 8 * 1440

    assert judged(now, before)["pcie"].state == "pass"

    now["gpus"][1]["pcie"]["replays"] = 100 * 1440
    message = judged(now, before)["pcie"].message
    assert message.startswith("GPU 1 repeated 100 PCIe packets a minute since the last night.")


def test_ecc_that_is_off_is_no_fault_and_no_proof(
    box: SimBox, health: Health, judged: Judged
) -> None:
    """A workstation card ships with it off: nothing is known, and nobody is blind."""
    for index in range(4):
        box.break_gpu(index, ecc=False)

    found = judged(health())

    assert (found["ecc"].state, found["ecc"].message) == ("skip", "GPUs 0 to 3: ECC is off")
    assert found["ecc-corrected"].state == "skip"
    assert not found["ecc"].facts
    assert found["rows"].state == "pass"


def test_gpus_that_tell_nothing_are_named_beside_those_that_pass(
    box: SimBox, health: Health, judged: Judged
) -> None:
    """A pass says of whom."""
    box.break_gpu(1, ecc=False)

    message = judged(health())["ecc"].message

    assert message == (
        "GPUs 0, 2, 3: no uncorrected ECC error since the driver was loaded; GPU 1: ECC is off"
    )


def test_a_lost_gpu_is_told_while_it_is_lost(box: SimBox, health: Health, judged: Judged) -> None:
    """The others keep their numbers, and a pass does not speak for it."""
    before = health()
    box.break_gpu(1, lost=True)
    box.break_gpu(3, temperature_c=80)
    told = health(before)

    found = judged(told, before)

    assert [gpu["index"] for gpu in told["gpus"]] == [0, 2, 3]
    assert found["pcie"].state == "fail"
    assert found["pcie"].message == "a GPU has fallen off the bus: see doctor:gpus."
    assert found["temperature"].message.startswith("GPU 3 is at 80 °C")
    assert found["rows"].message.endswith("; GPU 1: no longer there")
    assert judged(health(told), told)["pcie"].state == "fail"


def test_a_gpu_that_is_gone_without_a_word_is_missed_night_after_night(
    health: Health, judged: Judged
) -> None:
    """After a reboot the driver may not know of it at all; two weeks later it was taken out."""
    told = health()
    gone = told["gpus"].pop(1)
    lost = dict(told)

    def night(day: int) -> dict[str, Any]:
        return {**lost, "time_utc": f"2027-01-{day:02}T04:30:00Z"}

    first = night(1)
    first["known"] = [{**gpu, "seen_utc": "2026-12-31T04:30:00Z"} for gpu in told["known"]]
    found = judged(first, health())["pcie"]
    assert found.state == "fail"
    assert found.message.startswith(f"GPU 1 at {gone['bus_id']} was not seen since 2026-12-31. Lo")

    every = {gpu["uuid"] for gpu in told["known"]}
    assert {gpu["uuid"] for gpu in known_gpus(night(10), first)} == every
    assert {gpu["uuid"] for gpu in known_gpus(night(15), first)} == every - {gone["uuid"]}

    replaced = {**first, "gpus": [*first["gpus"], {**gone, "uuid": "GPU-another"}]}
    assert judged(replaced, health())["pcie"].state == "pass"


def test_gpus_that_changed_places_are_held_against_themselves(
    health: Health, judged: Judged
) -> None:
    """A counter belongs to a GPU, not to its number."""
    before = health()
    before["gpus"][0]["ecc"]["volatile"]["corrected"] = 50_000
    told = copy.deepcopy(before)
    first, second, *others = told["gpus"]
    first["index"], second["index"] = 1, 0
    told["gpus"] = [second, first, *others]

    assert {f.state for f in judged(told, before).values()} == {"pass"}


def test_a_silent_driver_is_a_blind_witness(box: SimBox, health: Health, judged: Judged) -> None:
    """Nothing of the GPUs is known then; the kernel's log speaks for itself."""
    box.break_nvidia_smi(error="driver_mismatch")

    found = judged(health())

    of_gpus = [finding for finding in found.values() if finding.id != "xid"]
    assert {finding.state for finding in of_gpus} == {"skip"}
    assert not any(finding.facts for finding in of_gpus)
    assert "Driver/library version mismatch" in of_gpus[0].message
    assert found["xid"].state == "pass"


def test_limits_and_severities_are_the_suite_s(health: Health, judged: Judged) -> None:
    """And a check that is off is not made."""
    found = judged(
        health(),
        limits={"power": 20, "temperature": 30},
        severities={"power": "fail", "fan": "off"},
    )

    assert (found["power"].state, found["temperature"].state) == ("fail", "warn")
    assert found["power"].limit == 20
    assert "fan" not in found


def test_old_pages_count(judged: Judged) -> None:
    """Sixty retired pages are NVIDIA's own limit, and a page that waits wants a reload."""
    (gpu,) = parse("<nvidia_smi_log><gpu id='x'></gpu></nvidia_smi_log>")[0].gpus
    gpu["retired_pages"] = {"single_bit": 40, "double_bit": 20, "pending": True}

    message = judged(document(gpu))["rows"].message

    assert message.startswith(
        "GPU 0 has memory pages that wait to be retired and has retired 60 memory pages or more"
    )


# Xid errors.


@pytest.mark.parametrize(
    ("xid", "state", "words"),
    [
        (79, "fail", "GPU 1: Xid 79 (the GPU has fallen off the bus"),
        (63, "fail", "Reset the GPU so that the rows are remapped"),
        (31, "warn", "page fault of the GPU's memory, by "),
        (45, "pass", "no fault by itself: GPU 1: Xid 45 (channels of a program that was ended"),
        (999, "fail", "Xid 999 (not known here"),
    ],
)
def test_an_xid_is_a_fault_a_program_s_or_a_trace(
    box: SimBox, health: Health, judged: Judged, xid: int, state: str, words: str
) -> None:
    """By NVIDIA's catalogue; one that is not in it counts as a fault."""
    before = health()
    box.log_xid(1, xid, "Ch 00000008", pid=os.getpid())

    found = judged(health(before), before)["xid"]

    assert (found.state, words in found.message) == (state, True), found.message
    assert [one["xid"] for one in found.facts["xids"]] == [xid]


def test_an_xid_is_told_in_one_night_alone(box: SimBox, health: Health, judged: Judged) -> None:
    """The next night begins where this one looked."""
    first = health()
    box.log_xid(0, 119, "Timeout after 45s of waiting for RPC response from GPU0 GSP!")
    second = health(first)
    third = health(second)

    states = [judged(first)["xid"].state, judged(second, first)["xid"].state]
    assert [*states, judged(third, second)["xid"].state] == ["pass", "fail", "pass"]


def test_faults_stand_before_what_programs_did(box: SimBox, health: Health, judged: Judged) -> None:
    """However many of those there were before it."""
    for _ in range(30):
        box.log_xid(0, 13, "Graphics Exception")
    box.log_xid(2, 79, "GPU has fallen off the bus.")

    found = judged(health())["xid"]

    assert (found.state, found.value) == ("fail", 31)
    assert found.message.startswith("GPU 2: Xid 79")
    assert "GPU 0: Xid 13 30 times" in found.message


def test_a_recovery_that_is_no_longer_asked_for_is_none(health: Health, judged: Judged) -> None:
    """Xid 154 tells both ways."""
    told = health()
    told["xids"] = [
        xid_entry(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
    ]
    assert judged(told)["xid"].state == "pass"

    told["xids"][0]["text"] = "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot)"
    assert judged(told)["xid"].state == "fail"


def test_only_a_witness_that_has_become_blind_makes_a_night_that_cannot_tell(
    box: SimBox, health: Health, judged: Judged
) -> None:
    """One that never sees is told in the report, and is no alarm every morning."""
    sound = health()
    box.break_nvidia_smi(error="driver_mismatch")
    blind = health(sound)
    unread = {"source": "none", "problem": "denied", "from_utc": None, "lines": None}
    blind["kernel_log"] = unread

    first = judged(blind, sound)
    later = judged({**health(blind), "kernel_log": unread}, blind)

    assert {kind: f.facts for kind, f in first.items()} == {
        kind: {CANNOT_TELL: True} for kind in KINDS
    }
    assert {kind: f.facts for kind, f in later.items()} == {kind: {} for kind in KINDS}
    assert {f.state for f in (*first.values(), *later.values())} == {"skip"}


def test_what_was_said_while_the_log_could_not_be_read_is_told_later(
    box: SimBox, health: Health
) -> None:
    """Xids are asked for since the last night that could read."""
    sound = health()
    blind = {**health(sound), "kernel_log": {"source": "none", "problem": "denied"}}

    assert health(blind)["since_utc"] == sound["time_utc"]
    assert health(health(blind))["since_utc"] != sound["time_utc"]


def test_gpus_that_a_server_has_just_left_are_waited_for(box: SimBox, machine: Machine) -> None:
    """They cool down for a while; one that stays warm is judged as it is."""
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 3:
            box.break_gpu(1, temperature_c=40, power_w=80.0)

    box.break_gpu(1, temperature_c=80, power_w=400.0)
    told = read_rested(machine, None, Rule.of, pause)
    assert (told["gpus"][1]["temperature_c"], len(paused)) == (40, 3)

    box.break_gpu(1, temperature_c=80)
    told = read_rested(machine, None, Rule.of, paused.append)
    assert told["gpus"][1]["temperature_c"] == 80
    assert sum(paused[3:]) == REST_LIMIT_S


def test_a_log_that_cannot_be_read_proves_nothing(health: Health, judged: Judged) -> None:
    """Nor does one that does not reach back; what it tells of it is told."""
    told = health()
    told["kernel_log"] = {"source": "none", "problem": "denied", "from_utc": None, "lines": None}
    found = judged(told)["xid"]
    assert (found.state, found.facts) == ("skip", {})
    assert found.message == "the kernel's log cannot be read: denied"

    told["kernel_log"] = {"source": "kmsg", "problem": "it begins at noon", "from_utc": None}
    assert judged(told)["xid"].state == "skip"
    told["xids"] = [xid_entry(79, "GPU has fallen off the bus.")]
    assert judged(told)["xid"].state == "fail"
    assert "(it begins at noon)" in judged(told)["xid"].message


# Gaps.


def xid_entry(xid: int, text: str) -> dict[str, Any]:
    """As the operation tells one."""
    at_utc = "2026-11-30T02:30:00.000Z"
    return {
        "bus_id": "00000000:01:00.0",
        "xid": xid,
        "pid": None,
        "process": None,
        "text": text,
        "instance": "",
        "count": 1,
        "time_utc": at_utc,
        "last_utc": at_utc,
    }


def document(*gpus: dict[str, Any]) -> dict[str, Any]:
    """What the operation tells of such GPUs."""
    return {
        "time_utc": "2026-11-30T02:30:00.000Z",
        "source": "nvidia-smi",
        "problem": None,
        "gpus": list(gpus),
        "xids": [],
        "kernel_log": {"source": "kmsg", "problem": None, "from_utc": None, "lines": 1},
    }


def test_a_gpu_that_tells_nothing_passes_nothing(judged: Judged) -> None:
    """Every figure may be absent: then nothing is known, and that is what is said."""
    empty = parse("<nvidia_smi_log><gpu id='x'></gpu></nvidia_smi_log>")[0].gpus

    found = judged(document(*empty), document(*empty))

    assert {kind: finding.state for kind, finding in found.items()} == {
        "xid": "pass",
        **dict.fromkeys(KINDS[1:], "skip"),
    }
    assert all(finding.message for finding in found.values())


def leaves(tree: dict[str, Any], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of a GPU's figures."""
    found: list[tuple[str, ...]] = []
    for name, value in tree.items():
        if isinstance(value, dict):
            found += leaves(value, (*path, name))
        elif (*path, name) not in {("index",), ("uuid",)}:
            found.append((*path, name))
    return found


SOUND = document(
    *parse(
        "<nvidia_smi_log><gpu id='00000000:01:00.0'><uuid>GPU-1</uuid><fan_speed>30 %</fan_speed>"
        "<performance_state>P8</performance_state><gpu_recovery_action>None</gpu_recovery_action>"
        "<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode><ecc_errors><volatile>"
        "<dram_correctable>1</dram_correctable><dram_uncorrectable>0</dram_uncorrectable>"
        "</volatile><aggregate><dram_correctable>1</dram_correctable></aggregate></ecc_errors>"
        "<remapped_rows><remapped_row_pending>No</remapped_row_pending>"
        "<remapped_row_failure>No</remapped_row_failure></remapped_rows>"
        "<pci><pci_gpu_link_info><pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>1"
        "</current_link_gen></pcie_gen><link_widths><max_link_width>16x</max_link_width>"
        "<current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info>"
        "<replay_counter>0</replay_counter></pci><temperature><gpu_temp>30 C</gpu_temp>"
        "</temperature><utilization><gpu_util>0 %</gpu_util></utilization><gpu_power_readings>"
        "<instant_power_draw>20.00 W</instant_power_draw><current_power_limit>300.00 W"
        "</current_power_limit><default_power_limit>300.00 W</default_power_limit>"
        "</gpu_power_readings><clocks_event_reasons><clocks_event_reason_gpu_idle>Active"
        "</clocks_event_reason_gpu_idle></clocks_event_reasons></gpu></nvidia_smi_log>"
    )[0].gpus
)
LEAVES = leaves(SOUND["gpus"][0])


@given(st.sets(st.sampled_from(LEAVES)), st.sets(st.sampled_from(LEAVES)), st.booleans())
def test_no_gap_makes_a_fault_or_stops_a_verdict(
    now_gaps: set[tuple[str, ...]], before_gaps: set[tuple[str, ...]], idle: bool
) -> None:
    """A sound GPU of which anything may be untold, now or then, is well or unknown."""
    now, before = copy.deepcopy(SOUND), copy.deepcopy(SOUND)
    for told, gaps in ((now, now_gaps), (before, before_gaps)):
        for *path, last in gaps:
            place = told["gpus"][0]
            for name in path:
                place = place[name]
            place[last] = None

    found = list(judge_health("llm", now, before, Rule.of, idle=idle))

    assert [finding.id for finding in found] == list(KINDS)
    assert {finding.state for finding in found} <= {"pass", "skip"}
    assert all(finding.message for finding in found)


@given(st.sets(st.integers(0, 12), min_size=1))
def test_gpus_are_named_so_that_each_is_found(indices: set[int]) -> None:
    """Runs of three and more are told by their ends."""
    text = named(indices).partition(" ")[2]

    found: set[int] = set()
    for part in text.split(", "):
        first, _, last = part.partition(" to ")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == indices
