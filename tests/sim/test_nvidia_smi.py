"""The stand-in nvidia-smi, held against what the real one printed."""

from __future__ import annotations

import re
import statistics
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from eagleops.sim.box import SimBox
from eagleops.sim.nvidia_smi.fields import BY_NAME
from eagleops.sim.nvidia_smi.query import Format
from sim.simulated import DATA, SimServer

REAL = DATA / "nvidia-smi"
Ask = Callable[..., "tuple[int, str]"]


@pytest.fixture
def ask(box: SimBox) -> Ask:
    """``ask("-L")``: exit status and stdout."""
    transport = box.transport()

    def ask(*arguments: str) -> tuple[int, str]:
        answer = transport.run(["nvidia-smi", *arguments])
        assert answer.stderr == b""
        return answer.exit_status, answer.stdout.decode()

    return ask


def shape(line: str) -> str:
    """A table's line with its letters and digits taken out: what is left is the frame."""
    return re.sub(r"[^|+=-]", " ", line)


def test_the_table_has_the_real_frame(ask: Ask, launch: Callable[..., SimServer]) -> None:
    """Rules, columns and heads stand where the real one's stand, also with processes."""
    launch("--tp-size", "2")
    real = (REAL / "two-workers.txt").read_text().splitlines()

    status, text = ask()

    lines = text.splitlines()
    assert status == 0
    assert [line[:40] for line in lines[3:6]] == [line[:40] for line in real[3:6]]
    assert lines[4:8] == real[4:8]
    assert [shape(line) for line in lines[8:13]] == [shape(line) for line in real[8:13]]
    first, real_first = text.index("Processes:"), "\n".join(real).index("Processes:")
    assert text[first:].splitlines()[:4] == "\n".join(real)[real_first:].splitlines()[:4]
    row = next(line for line in lines if "scheduler_TP1" in line)
    real_row = next(line for line in real if "scheduler_TP1" in line)
    assert len(row) == len(real_row)
    assert row.split()[5:7] == real_row.split()[5:7]


def test_an_idle_table_says_so(ask: Ask) -> None:
    """In the real one's words, to the blank."""
    real = (REAL / "idle.txt").read_text()

    assert next(line for line in real.splitlines() if "No running" in line) in ask()[1]


@pytest.mark.parametrize("arguments", [(), ("-L",), ("--version",), ("-q", "-x")])
def test_each_view_says_that_it_is_simulated(ask: Ask, arguments: tuple[str, ...]) -> None:
    """Nobody can take it for a real machine."""
    assert "simulated" in ask(*arguments)[1]


def test_the_list_has_the_real_form(ask: Ask) -> None:
    """``GPU 0: NAME (UUID: GPU-...)``, a line for each."""
    lines = ask("-L")[1].splitlines()

    form = r"GPU (\d): NVIDIA RTX PRO 6000 Blackwell \(simulated\) \(UUID: GPU-[0-9a-f-]{36}\)"
    assert [re.fullmatch(form, line)[1] for line in lines] == list("01234567")


def test_topology_is_pcie_alone(ask: Ask) -> None:
    """No NVLink: the team's machine."""
    status, text = ask("topo", "-m")

    assert status == 0
    assert text.splitlines()[1].split("\t")[:9] == ["GPU0", " X ", *["NODE"] * 3, *["SYS"] * 4]
    assert "NV18" not in text


def test_fields_are_those_of_the_real_one() -> None:
    """Each spelling is one that the real help knows, or its tail that was cut off."""
    help_text = (DATA.parent / "gpus" / "help-query-gpu-580.txt").read_text()
    real = set(re.findall(r'"([A-Za-z_.0-9]+)"', help_text))
    cut_off = ("temperature.", "power.", "enforced.power", "clocks.", "mig.", "ecc.errors.unc")

    strangers = {name for name in set(BY_NAME) - real if not name.startswith(cut_off)}

    assert strangers == set()


def test_the_help_lists_each_field(ask: Ask) -> None:
    """In the real form: a quoted name, or two with ``or``, and a sentence."""
    status, text = ask("--help-query-gpu")

    assert status == 0
    assert text.startswith('List of valid properties to query for the switch "--query-gpu":\n')
    heads = re.findall(r'^("[\w.]+"(?: or "[\w.]+")?)$', text, re.MULTILINE)
    assert {name for head in heads for name in re.findall(r'"([^"]+)"', head)} == set(BY_NAME)


def test_csv_answers_with_the_newer_spelling(ask: Ask) -> None:
    """Old names are aliases: the header has the new one, with its unit."""
    status, text = ask(
        "--query-gpu=index,clocks_throttle_reasons.active,memory.used,power.draw,clocks.sm",
        "--format=csv",
        "-i",
        "2",
    )

    header, row = text.splitlines()
    assert status == 0
    assert header == (
        "index, clocks_event_reasons.active, memory.used [MiB], power.draw [W], "
        "clocks.current.sm [MHz]"
    )
    assert re.fullmatch(r"2, 0x0000000000000001, 0 MiB, \d+\.\d\d W, 180 MHz", row)


def test_nounits_leaves_bare_values(ask: Ask) -> None:
    """One row a GPU and nothing else."""
    text = ask("--query-gpu=index,memory.total", "--format=csv,noheader,nounits")[1]

    assert text == "".join(f"{index}, 97887\n" for index in range(8))


def test_a_deprecated_value_has_no_unit(ask: Ask) -> None:
    """``[Requested functionality has been deprecated]`` stands alone, as from driver 590 on."""
    text = ask("--query-gpu=clocks.applications.gr", "--format=csv,noheader", "-i", "0")[1]

    assert text == "[Requested functionality has been deprecated]\n"


def test_one_unknown_field_fails_the_whole_query(ask: Ask) -> None:
    """With the real one's words, on stdout, and exit status 2."""
    status, text = ask("--query-gpu=index,cuda_version", "--format=csv")

    assert (status, text) == (2, 'Field "cuda_version" is not a valid field to query.\n\n')


def test_compute_apps_have_the_real_form(ask: Ask, launch: Callable[..., SimServer]) -> None:
    """A row for each worker: UUID, PID, title, memory."""
    server = launch("--tp-size", "2")
    real_header = (REAL / "two-workers.txt").read_text().splitlines()[-3]

    text = ask("--query-compute-apps=gpu_uuid,pid,name,used_memory", "--format=csv")[1]

    header, *rows = text.splitlines()
    assert header == real_header
    cells = [row.split(", ") for row in rows]
    assert [row[2] for row in cells] == ["sglang::scheduler_TP0", "sglang::scheduler_TP1"]
    assert int(cells[1][1]) == server.worker("sglang::scheduler_TP1")
    assert all(re.fullmatch(r"8\d{4} MiB", row[3]) for row in cells)


def test_xml_is_a_part_of_the_real_tree(ask: Ask, launch: Callable[..., SimServer]) -> None:
    """Every path that the stand-in tells is one that the real document has."""
    launch()

    def paths(element: ET.Element, prefix: str = "") -> set[str]:
        here = f"{prefix}/{element.tag}"
        return {here}.union(*(paths(child, here) for child in element))

    document = ET.fromstring(ask("-q", "-x")[1])
    real = ET.fromstring((REAL / "q.xml").read_text())

    assert paths(document) - paths(real) == set()
    gpus = document.findall("gpu")
    assert [gpu.findtext("minor_number") for gpu in gpus] == list("01234567")
    assert gpus[0].findtext("processes/process_info/process_name") == "sglang::scheduler"


def test_a_lost_gpu_is_told_in_its_place(box: SimBox, ask: Ask) -> None:
    """The others' rows stay; the exit status is NVML's 15."""
    box.break_gpu(3, lost=True)

    status, text = ask("--query-gpu=index,memory.used", "--format=csv,noheader,nounits")

    lines = text.splitlines()
    assert (status, len(lines)) == (15, 8)
    lost = (
        "Unable to determine the device handle for GPU3: 0000:31:00.0: GPU is lost.  Reboot the "
        "system to recover this GPU"
    )
    assert lines[2:5] == ["2, 0", lost, "4, 0"]


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        ("driver_mismatch", 18, "Failed to initialize NVML: Driver/library version mismatch"),
        ("not_loaded", 9, "couldn't communicate with the NVIDIA driver"),
        ("no_devices", 6, "No devices were found"),
        ("unknown_error", 255, "Failed to initialize NVML: Unknown Error"),
    ],
)
def test_it_fails_as_a_whole_on_demand(
    box: SimBox, ask: Ask, error: str, status: int, words: str
) -> None:
    """On stdout, with NVML's code as exit status."""
    box.break_nvidia_smi(error=error)

    told, text = ask("--query-gpu=index", "--format=csv")

    assert told == status
    assert words in text


def test_faults_show_in_the_figures(box: SimBox, ask: Ask) -> None:
    """A hot, throttled GPU on a narrow link, and another with memory of nobody's."""
    box.break_gpu(1, throttle_reasons=["hw_thermal_slowdown"], temperature_c=93, pcie_width=4)
    box.break_gpu(2, foreign_mib=5000)
    fields = (
        "clocks_throttle_reasons.active,clocks_event_reasons.hw_thermal_slowdown,temperature.gpu,"
        "pcie.link.width.current,memory.used"
    )

    rows = ask(f"--query-gpu={fields}", "--format=csv,noheader,nounits")[1].splitlines()

    assert rows[1] == "0x0000000000000040, Active, 93, 4, 0"
    assert rows[2].split(", ")[-1] == "5009"


def test_an_unknown_flag_is_refused(ask: Ask) -> None:
    """A stand-in that answered anything would hide a mistake."""
    status, text = ask("--gpu-reset=0")

    assert status == 2
    assert text.startswith("Invalid combination of input arguments.")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("csv", Format(header=True, units=True)),
        ("csv,noheader", Format(header=False, units=True)),
        ("noheader,csv,nounits", Format(header=False, units=False)),
        ("noheader", None),
        ("csv,json", None),
    ],
)
def test_formats_are_read_in_any_order(text: str, form: Format | None) -> None:
    """And none is guessed."""
    assert Format.parse(text) == form


@pytest.mark.alone
def test_one_query_takes_well_under_100_ms(ask: Ask) -> None:
    """The real one takes 36 ms; a poll of the drain must not wait for its stand-in."""
    times = []
    for _ in range(15):
        began = time.perf_counter()
        ask("--query-gpu=index,memory.used", "--format=csv,noheader,nounits")
        times.append(time.perf_counter() - began)

    assert statistics.median(times) < 0.1


def test_it_works_from_any_folder(box: SimBox, tmp_path: Path) -> None:
    """Its program holds every path that it needs, blanks and all."""
    (tmp_path / "elsewhere").mkdir()
    script = (box.directory / "bin" / "nvidia-smi").read_text()

    assert script.startswith("#!/bin/sh\n# Simulated")
    assert "' '" not in script
    answer = box.transport().run(["sh", "-c", f"cd '{tmp_path}/elsewhere' && nvidia-smi -L"])
    assert answer.exit_status == 0
