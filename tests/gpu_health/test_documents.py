"""What the documents of different drivers and GPUs tell of health."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.health_facts import parse

DATA = Path(__file__).parents[1] / "data" / "gpus"


def gpu(inside: str) -> dict[str, Any]:
    """The facts of a document's only GPU."""
    text = f"<nvidia_smi_log><gpu id='00000000:01:00.0'>{inside}</gpu></nvidia_smi_log>"
    (only,) = parse(text)[0].gpus
    return only


def test_a_real_document_is_read_whole() -> None:
    """Two H200s of driver 580, each with a process."""
    document, rest = parse((DATA / "health-h200-580.xml").read_text())

    first, second = document.gpus
    assert (document.driver_version, rest) == ("580.159.04", [])
    assert first == {
        "index": 0,
        "uuid": "GPU-00000000-0000-4000-8000-000000000000",
        "name": "NVIDIA H200",
        "bus_id": "00000000:00:06.0",
        "state": "P0",
        "recovery_action": "None",
        "ecc": {
            "mode": "Enabled",
            "volatile": {"corrected": 0, "uncorrected": 0},
            "aggregate": {"corrected": 0, "uncorrected": 0},
            "threshold_exceeded": False,
            "repair_pending": False,
            "unrepairable": False,
        },
        "retired_pages": {"single_bit": None, "double_bit": None, "pending": None},
        "remapped_rows": {
            "correctable": 0,
            "uncorrectable": 0,
            "pending": False,
            "failure": False,
        },
        "pcie": {"gen": 5, "max_gen": 5, "width": 16, "max_width": 16, "replays": 2},
        "fan_pct": None,
        "fan_problem": None,
        "power_w": 132.98,
        "power_limit_w": 700,
        "default_power_limit_w": 700,
        "temperature_c": 40,
        "memory_temperature_c": 37,
        "utilization_pct": 0,
        "sm_clock_mhz": 1980,
        "throttle_reasons": [],
    }
    assert (second["index"], second["uuid"][-1]) == (1, "1")


def test_before_turing_errors_are_counted_by_bits_and_pages_retired() -> None:
    """As a V100 of driver 418 tells it."""
    told = gpu(
        "<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode><ecc_errors>"
        "<volatile><single_bit><device_memory>3</device_memory><total>4</total></single_bit>"
        "<double_bit><device_memory>1</device_memory><total>2</total></double_bit></volatile>"
        "<aggregate><single_bit><total>40</total></single_bit>"
        "<double_bit><total>N/A</total></double_bit></aggregate></ecc_errors>"
        "<retired_pages><multiple_single_bit_retirement><retired_count>5</retired_count>"
        "</multiple_single_bit_retirement><double_bit_retirement><retired_count>6</retired_count>"
        "</double_bit_retirement><pending_retirement>Yes</pending_retirement></retired_pages>"
        "<remapped_rows>N/A</remapped_rows>"
        "<clocks_throttle_reasons><clocks_throttle_reason_gpu_idle>Active"
        "</clocks_throttle_reason_gpu_idle><clocks_throttle_reason_hw_slowdown>Not Active"
        "</clocks_throttle_reason_hw_slowdown></clocks_throttle_reasons>"
        "<power_readings><power_draw>38.21 W</power_draw><power_limit>300.00 W</power_limit>"
        "<default_power_limit>300.00 W</default_power_limit>"
        "<enforced_power_limit>250.00 W</enforced_power_limit></power_readings>"
    )

    assert told["ecc"]["volatile"] == {"corrected": 4, "uncorrected": 2}
    assert told["ecc"]["aggregate"] == {"corrected": 40, "uncorrected": None}
    assert told["retired_pages"] == {"single_bit": 5, "double_bit": 6, "pending": True}
    assert set(told["remapped_rows"].values()) == {None}
    assert told["throttle_reasons"] == ["gpu_idle"]
    assert (told["power_w"], told["power_limit_w"], told["default_power_limit_w"]) == (
        38.21,
        250,
        300,
    )


def test_a_consumer_card_has_fans_and_no_ecc() -> None:
    """As GeForce cards tell it; and a draw in the tag of drivers around 535."""
    told = gpu(
        "<fan_speed>30 %</fan_speed><ecc_mode><current_ecc>N/A</current_ecc></ecc_mode>"
        "<ecc_errors><volatile><dram_correctable>N/A</dram_correctable></volatile></ecc_errors>"
        "<gpu_power_readings><power_draw>7.17 W</power_draw></gpu_power_readings>"
    )

    assert (told["fan_pct"], told["fan_problem"], told["power_w"]) == (30, None, 7.17)
    assert told["ecc"]["mode"] is None
    assert told["ecc"]["volatile"] == {"corrected": None, "uncorrected": None}


def test_parity_and_secded_are_added() -> None:
    """Drivers since 550 tell uncorrected errors of SRAM in two parts."""
    told = gpu(
        "<ecc_errors><volatile><sram_correctable>1</sram_correctable>"
        "<sram_uncorrectable_parity>2</sram_uncorrectable_parity>"
        "<sram_uncorrectable_secded>3</sram_uncorrectable_secded>"
        "<dram_correctable>10</dram_correctable><dram_uncorrectable>4</dram_uncorrectable>"
        "</volatile></ecc_errors>"
    )

    assert told["ecc"]["volatile"] == {"corrected": 11, "uncorrected": 9}


@pytest.mark.parametrize("word", ["Unknown Error", "ERR!", "[Unknown Error]"])
def test_a_fan_that_cannot_be_read_is_no_passive_card(word: str) -> None:
    """Both have no figure; one of them is broken."""
    assert gpu(f"<fan_speed>{word}</fan_speed>")["fan_problem"] == word
    assert gpu("<fan_speed>N/A</fan_speed>")["fan_problem"] is None
    assert gpu("")["fan_problem"] is None


def test_complaints_beside_the_document_are_kept() -> None:
    """The driver says them on the same stream, before and after."""
    document, rest = parse(
        'Unable to determine the device handle for GPU3\n<?xml version="1.0" ?>\n'
        "<nvidia_smi_log><gpu id='x'></gpu></nvidia_smi_log>\nWARNING: infoROM is corrupted\n"
    )

    assert len(document.gpus) == 1
    assert rest == [
        "Unable to determine the device handle for GPU3",
        "WARNING: infoROM is corrupted",
    ]


@given(st.text(), st.text())
def test_no_text_stops_it(before: str, inside: str) -> None:
    """A driver that breaks off in the middle tells no GPU, and its words are kept."""
    document, _ = parse(f"{before}<nvidia_smi_log><gpu>{inside}</nvidia_smi_log>")

    assert document.gpus == []


LAUGHS = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))


TYPE = f'<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>'
GPU = "<nvidia_smi_log><gpu id='0'><uuid>&j;</uuid></gpu></nvidia_smi_log>"


@pytest.mark.parametrize(
    "text",
    [
        f'<?xml version="1.0"?>{TYPE}{GPU}',
        "<?xml" * 100_000,
        "<nvidia_smi_log>" * 100_000,
        "</nvidia_smi_log>" * 100_000 + "<nvidia_smi_log>",
        f"<nvidia_smi_log>{'<a>' * 100_000}{'</a>' * 100_000}</nvidia_smi_log>",
    ],
)
@pytest.mark.alone
def test_no_document_takes_long(text: str) -> None:
    """Entities within entities, and heads that never end, are refused at once."""
    began = time.perf_counter()

    document, _ = parse(text)

    assert document.gpus == []
    assert time.perf_counter() - began < 2
