"""How the GPUs are set up, as nvidia-smi tells it in XML."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagleops.remote.gpu_settings import parse, without_colours

DATA = Path(__file__).parents[1] / "data" / "installation"


def test_a_real_document_is_read() -> None:
    """Two H200s of driver 580: limits, modes, firmware, clocks and links."""
    document = parse((DATA / "nvidia-smi-q-two-h200.xml").read_text())

    assert (document.driver_version, document.cuda_version) == ("580.159.04", "13.0")
    first, second = document.gpus
    assert first == {
        "index": 0,
        "uuid": "GPU-00000000-0000-4000-8000-000000000000",
        "name": "NVIDIA H200",
        "bus_id": "00000000:00:06.0",
        "vbios": "96.00.A5.00.1A",
        "gsp_firmware": "580.159.04",
        "persistence": "Enabled",
        "ecc": "Enabled",
        "mig": "Disabled",
        "compute_mode": "Default",
        "virtualization": "Pass-Through",
        "total_mib": 143771,
        "power_limit_w": 700,
        "default_power_limit_w": 700,
        "max_power_limit_w": 700,
        "max_sm_clock_mhz": 1980,
        "max_mem_clock_mhz": 3201,
        "application_sm_clock_mhz": 1980,
        "application_mem_clock_mhz": 3201,
        "max_pcie_gen": 5,
        "max_pcie_width": 16,
    }
    assert second["uuid"] == "GPU-00000000-0000-4000-8000-000000000001"


def test_what_is_not_told_is_null() -> None:
    """Older tags are read, and N/A and the like are never 0."""
    document = parse(
        "<nvidia_smi_log><driver_version>N/A</driver_version><gpu id='x'>"
        "<ecc_mode><current_ecc>[Not Supported]</current_ecc></ecc_mode>"
        "<power_readings><power_limit>250.50 W</power_limit></power_readings>"
        "<max_clocks><sm_clock>N/A</sm_clock></max_clocks></gpu></nvidia_smi_log>"
    )

    (gpu,) = document.gpus
    assert (document.driver_version, document.cuda_version) == (None, None)
    assert (gpu["power_limit_w"], gpu["ecc"], gpu["max_sm_clock_mhz"]) == (250.5, None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no output"),
        ("Failed to initialize NVML: Unknown Error\n", "Failed to initialize NVML: Unknown Error"),
        ("<a><b></a>", "<a><b></a>"),
        (
            "<nvidia_smi_log><b></nvidia_smi_log>",
            "broken XML: mismatched tag: line 1, column 21",
        ),
        ("x" * 9000, "x" * 500),
    ],
)
def test_what_is_no_document_is_refused(text: str, said: str) -> None:
    """A failure that is printed on stdout is no empty machine: it is told, to its beginning."""
    with pytest.raises(ValueError, match="gave no XML") as refused:
        parse(text)

    assert str(refused.value) == f"nvidia-smi -q -x gave no XML: {said}"


def test_complaints_beside_the_document_cost_no_setting() -> None:
    """The driver says them on the same stream, before and after."""
    document = parse(
        'Unable to determine the device handle for GPU3\n<?xml version="1.0" ?>\n'
        "<nvidia_smi_log><cuda_version>13.0</cuda_version></nvidia_smi_log>\n"
        "WARNING: infoROM is corrupted at gpu 0000:01:00.0\n"
    )

    assert document.cuda_version == "13.0"


def test_no_entity_of_a_document_type_is_believed() -> None:
    """Entities within entities grow without end: the prolog is never read."""
    prolog = '<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "13.0">]>'
    inside = "<nvidia_smi_log><cuda_version>&a;</cuda_version></nvidia_smi_log>"

    with pytest.raises(ValueError, match="broken XML: undefined entity"):
        parse(prolog + inside)


def test_the_topology_is_text_without_underlines() -> None:
    """``topo -m`` underlines its head even where nobody sees it."""
    text = without_colours((DATA / "topo-two-h200.txt").read_text())

    assert text.splitlines()[:2] == [
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID",
        "GPU0\t X \tNV18\t0-31\t0\t\tN/A",
    ]
    assert "\x1b" not in text
