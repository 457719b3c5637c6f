"""What nvidia-smi prints, read by pure functions, and asked through stand-ins for it."""

from __future__ import annotations

import json
import textwrap

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eagleops.remote import driver_faults, nvidia_smi
from eagleops.remote.context import Context
from eagleops.remote.gpu_facts import CLOCK_REASONS, clock_reasons, unread
from eagleops.remote.gpus import Gpus, parse_minor, read_minor
from eagleops.remote.nvidia_smi import ComputeApp, NvidiaSmi, parse_gpus, question

ABSENT = [
    "[N/A]",
    "N/A",
    "[Not Supported]",
    "Not Supported",
    "[Unknown Error]",
    "Unknown Error",
    "ERR!",
    "[Insufficient Permissions]",
    "[GPU is lost]",
    "[Requested functionality has been deprecated]",
    "[Something That A Later Driver Says]",
    "",
]


def test_the_captured_answer_of_two_gpus_is_read_whole(captured):
    """Every fact of the row arrives, in its own unit."""
    gpus, rest = parse_gpus(captured("query-gpu-two-workers.csv"), question())

    assert rest == []
    assert [gpu["index"] for gpu in gpus] == [0, 1]
    assert gpus[1] == {
        "index": 1,
        "uuid": "GPU-00000000-0000-4000-8000-000000000001",
        "name": "NVIDIA H200",
        "bus_id": "00000000:00:07.0",
        "minor": None,
        "driver_version": "580.159.04",
        "used_mib": 21959,
        "total_mib": 143771,
        "reserved_mib": 616,
        "temperature_c": 41,
        "power_w": 125.87,
        "power_limit_w": 700.0,
        "sm_clock_mhz": 1980,
        "mem_clock_mhz": 3201,
        "utilization_pct": 0,
        "throttle_reasons": [],
        "pcie_gen": 5,
        "pcie_width": 16,
        "processes": [],
    }


def test_the_captured_process_list_is_read(captured):
    """Header, process names and units are left out."""
    apps = nvidia_smi.parse_compute_apps(captured("compute-apps-two-workers.csv"))

    assert apps == [
        ComputeApp("GPU-00000000-0000-4000-8000-000000000000", 1006, 21950),
        ComputeApp("GPU-00000000-0000-4000-8000-000000000001", 1007, 21950),
    ]


@pytest.mark.parametrize("token", ABSENT)
def test_a_value_that_is_not_told_is_none_and_never_zero(token: str):
    """A GPU whose memory says "N/A" is not an idle GPU."""
    asked = question()
    row = ", ".join(["7"] + [token] * (len(asked) - 1))

    (gpu,), rest = parse_gpus(row, asked)

    assert rest == []
    assert {k: v for k, v in gpu.items() if v not in (None, [])} == {"index": 7}


@pytest.mark.parametrize("token", ABSENT)
def test_a_process_without_a_told_memory_is_still_a_process(token: str):
    """The list names who is there even where it cannot say how much."""
    apps = nvidia_smi.parse_compute_apps(f"GPU-1, 42, {token}")

    assert apps == [ComputeApp("GPU-1", 42, None)]


def test_unified_memory_is_told_by_no_number(captured):
    """Memory of a GB10 reads as not told; what it does tell is kept."""
    (gpu,), rest = parse_gpus(captured("query-gpu-unified-memory.csv"), question())

    assert rest == []
    assert (gpu["used_mib"], gpu["total_mib"], gpu["mem_clock_mhz"]) == (None, None, None)
    assert (gpu["temperature_c"], gpu["power_w"], gpu["sm_clock_mhz"]) == (41, 11.25, 208)
    assert gpu["throttle_reasons"] == ["gpu_idle"]


def test_a_name_with_commas_is_a_name():
    """The name is asked for last, so no comma in it can shift another value."""
    row = "0, GPU-1, 10, 20, Card, the second, of two"
    asked = [(f, f) for f in ("index", "uuid", "used_mib", "total_mib", "name")]

    (gpu,), _ = parse_gpus(row, asked)

    assert (gpu["name"], gpu["total_mib"]) == ("Card, the second, of two", 20)


def test_one_lost_gpu_does_not_lose_the_others(captured):
    """The rows that came are read, and the line in between is kept as what it is."""
    gpus, rest = parse_gpus(captured("query-gpu-one-lost.txt"), question())

    assert [gpu["index"] for gpu in gpus] == [0, 4]
    assert rest == ["Unable to determine the device handle for GPU3: 0000:04:00.0: Unknown Error"]


def test_the_captured_help_names_every_spelling(captured):
    """The help, as far as it was captured, knows the fields that are asked for first."""
    known = nvidia_smi.parse_known_fields(captured("help-query-gpu-580.txt"))

    asked = [field for _, field in question()]
    # The capture ends before temperatures, power and clocks.
    late = [f for f in asked if f.startswith(("temperature", "power", "clocks."))]
    assert [field for field in asked if field not in known] == late
    assert {"clocks_event_reasons.active", "clocks_throttle_reasons.active"} <= known


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('Field "memory.reserved" is not a valid field to query.\n', "memory.reserved"),
        ("clocks.sm is not a valid field", ""),
        ("0, GPU-1", None),
    ],
)
def test_a_refused_field_is_named(text: str, field: str | None):
    """The name is taken from the message where it stands there."""
    assert nvidia_smi.parse_unknown_field(text) == field


def test_a_refused_field_is_asked_by_its_later_name_or_left_out():
    """One fact at most is lost with it."""
    asked = (
        ("index", "index"),
        ("reserved_mib", "memory.reserved"),
        ("pcie_gen", "pcie.link.gen.current"),
    )

    renamed = nvidia_smi.without(asked, "pcie.link.gen.current")
    assert renamed == (*asked[:2], ("pcie_gen", "pcie.link.gen.gpucurrent"))
    assert nvidia_smi.without(renamed, "pcie.link.gen.gpucurrent") == asked[:2]
    assert nvidia_smi.without(asked, "memory.reserved") == (asked[0], asked[2])


def test_fields_are_asked_by_the_spelling_that_the_driver_knows():
    """An old name that went is asked by its new one; a fact without a name is left out."""
    known = frozenset({"index", "gpu_uuid", "memory.used", "clocks_event_reasons.active", "name"})

    assert question(known) == (
        ("index", "index"),
        ("uuid", "gpu_uuid"),
        ("used_mib", "memory.used"),
        ("throttle_reasons", "clocks_event_reasons.active"),
        ("name", "name"),
    )


def test_clock_reasons_have_nvidia_smis_names():
    """Each documented bit has its name, and one that came later stands as its number."""
    assert clock_reasons(0) == []
    assert clock_reasons(0x4 | 0x40) == ["sw_power_cap", "hw_thermal_slowdown"]
    assert clock_reasons(0x1 | 0x400) == ["gpu_idle", "0x400"]
    assert list(CLOCK_REASONS) == [1 << n for n in range(9)]


def test_each_whole_command_failure_is_told_with_its_cause_and_the_way_out(captured):
    """Each known failure is a sentence of what it means and what helps."""
    for case in json.loads(captured("failures.json")):
        lines = case["output"].splitlines()

        told = nvidia_smi.problem_of(case["exit_status"], lines, "570.86.10")

        assert told == case["problem"]


def test_an_answer_without_a_fault_is_no_problem():
    """Exit status 0 and nothing beside the rows."""
    assert nvidia_smi.problem_of(0, []) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Rel\nGCC 12",
            "580.159.04",
        ),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\nGCC 12.2.0",
            "535.183.01",
        ),
        ("", None),
        ("something else 1.2.3", None),
    ],
)
def test_the_loaded_kernel_modules_version_is_read(text: str, version: str | None):
    """Both flavours of the module write their line differently."""
    assert driver_faults.parse_module_version(text) == version


def test_the_device_files_number_is_read_from_proc():
    """The index of a GPU and the number of its device file need not agree."""
    text = "Model: \t\t NVIDIA H200\nBus Location: \t 0000:00:06.0\nDevice Minor: \t 3\n"

    assert parse_minor(text) == 3
    assert parse_minor("Device Minor: \t none") is None
    assert read_minor("no bus id") is None
    assert read_minor("0000FFFF:FF:1F.7") is None


@given(st.text(), st.integers(0, 17))
@example("0" + "," * 16, 16)
@example("٣, a", 1)
@example("0, " + "9" * 5000, 1)
def test_any_text_is_read_without_a_crash(text: str, width: int):
    """What is no row is handed back as a line, and no line is lost."""
    asked = question()[: max(width, 1)]

    gpus, rest = parse_gpus(text, asked)

    assert [gpu["index"] for gpu in gpus] == sorted({gpu["index"] for gpu in gpus})
    assert all(set(unread(0)) <= set(gpu) for gpu in gpus)
    assert len(gpus) + len(rest) <= len([line for line in text.splitlines() if line.strip()])


CELL = st.sampled_from(ABSENT) | st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,3})?", fullmatch=True)


@given(st.lists(CELL | st.text("0123456789abcxX[]/!. -"), min_size=17, max_size=17))
def test_any_cells_give_numbers_or_none(cells: list[str]):
    """Whatever stands in a numeric cell, the fact is a number or None."""
    gpus, _ = parse_gpus(",".join(["0", *cells[1:]]), question())

    for gpu in gpus:
        assert isinstance(gpu["used_mib"], int | None)
        assert isinstance(gpu["power_w"], float | None)
        assert isinstance(gpu["throttle_reasons"], list | None)


@given(st.text())
@example("a,1,")
@example('"a" or "b"\n')
def test_the_other_readers_take_any_text(text: str):
    """They find something or nothing, and never crash."""
    assert all(app.pid > 0 for app in nvidia_smi.parse_compute_apps(text))
    assert "" not in nvidia_smi.parse_known_fields(text)
    assert driver_faults.parse_module_version(text) is None or text
    assert isinstance(nvidia_smi.problem_of(1, text.splitlines()), str)
    assert isinstance(parse_minor(text), int | None)
    assert isinstance(read_minor(text), int | None)


# Through a stand-in program -------------------------------------------------------------


def reading_of(path: str):
    """What the GPUs read as with that PATH."""
    with Gpus(Context({"nvml": False, "path": path})) as gpus:
        return gpus.read()


@pytest.fixture(autouse=True)
def unlearned():
    """Each test begins without what another learned of its nvidia-smi."""
    NvidiaSmi._learned.clear()


def test_a_reading_joins_gpus_and_their_processes(fake_smi, captured, tmp_path):
    """Two questions, one reading; the driver's version is the machine's."""
    (tmp_path / "gpus").write_text(captured("query-gpu-two-workers.csv"))
    (tmp_path / "apps").write_text(captured("compute-apps-two-workers.csv"))
    path = fake_smi(f"case $1 in *apps*) cat {tmp_path}/apps;; *) cat {tmp_path}/gpus;; esac")

    reading = reading_of(path)

    assert reading.problem is None
    assert reading.driver_version == "580.159.04"
    assert [gpu["processes"] for gpu in reading.gpus] == [
        [{"pid": 1006, "used_mib": 21950}],
        [{"pid": 1007, "used_mib": 21950}],
    ]


# Knows what a driver of 2016 knew, and refuses the first field that it does not.
OLD_DRIVER = """
    case $1 in
    --query-gpu=*) ;;
    *) exit 0;;
    esac
    IFS=,; row=
    for field in ${1#--query-gpu=}; do
        case $field in
        index) row=0;;
        uuid) row="$row, GPU-1";;
        memory.used) row="$row, 123";;
        power.draw) row="$row, 60.12";;
        clocks.current.sm) row="$row, 875";;
        name) row="$row, Tesla K80";;
        *) echo "Field \\"$field\\" is not a valid field to query."; echo; exit 2;;
        esac
    done
    echo "$row"
"""


def test_unknown_fields_do_not_lose_the_known_ones(fake_smi):
    """Each refused field is asked by its other name, or left out, and the rest is read."""
    reading = reading_of(fake_smi(OLD_DRIVER))

    (gpu,) = reading.gpus
    assert reading.problem is None
    assert (gpu["name"], gpu["used_mib"], gpu["power_w"]) == ("Tesla K80", 123, 60.12)
    assert (gpu["sm_clock_mhz"], gpu["temperature_c"], gpu["throttle_reasons"]) == (875, None, None)


def test_what_a_driver_knows_is_learned_once(fake_smi, tmp_path):
    """The second reading asks the right question at once."""
    path = fake_smi(f'echo "$1" >> {tmp_path}/asked\n' + textwrap.dedent(OLD_DRIVER))

    reading_of(path)
    first = (tmp_path / "asked").read_text().splitlines()
    reading_of(path)

    assert (tmp_path / "asked").read_text().splitlines()[len(first) :] == first[-2:]


HELP_ALONE = """
    case $1 in
    --help-query-gpu) printf '"index"\\n\\n"uuid" or "gpu_uuid"\\n\\n"memory.used"\\n\\n"name"\\n';;
    *apps*) ;;
    --query-gpu=index,uuid,memory.used,name) echo '0, GPU-1, 123, Tesla K80';;
    *) echo 'That is not a valid field to query.'; exit 2;;
    esac
"""


def test_where_a_refusal_names_no_field_the_help_tells(fake_smi):
    """The fields that the help lists are asked for."""
    reading = reading_of(fake_smi(HELP_ALONE))

    assert [(g["name"], g["used_mib"]) for g in reading.gpus] == [("Tesla K80", 123)]


def test_where_the_help_is_no_use_the_oldest_fields_are_asked(fake_smi):
    """A driver that words its help otherwise still tells memory and name."""
    reading = reading_of(
        fake_smi(
            """
            case $1 in
            --help-query-gpu) echo nothing;;
            *apps*) ;;
            --query-gpu=index,uuid,memory.used,memory.total,name) echo '0, GPU-1, 5, 9, K80';;
            *) echo 'That is not a valid field to query.'; exit 2;;
            esac
            """
        )
    )

    assert [(g["name"], g["used_mib"], g["total_mib"]) for g in reading.gpus] == [("K80", 5, 9)]


def test_a_program_that_refuses_everything_is_given_up(fake_smi):
    """The tries have an end, and the problem says what happened."""
    reading = reading_of(fake_smi("echo 'That is not a valid field to query.'; exit 2"))

    assert reading.gpus == []
    assert reading.problem == "nvidia-smi refuses every question after 34 tries"


def test_a_lost_gpu_is_told_beside_those_that_answer(fake_smi, captured, tmp_path):
    """On stderr or stdout, with any exit status: the rows hold and the problem is told."""
    whole = captured("query-gpu-one-lost.txt").splitlines(keepends=True)
    (tmp_path / "lost").write_text(whole[0])
    (tmp_path / "rows").write_text("".join(whole[1:]))
    path = fake_smi(f"cat {tmp_path}/lost >&2; case $1 in *apps*) ;; *) cat {tmp_path}/rows;; esac")

    reading = reading_of(path)

    assert [gpu["index"] for gpu in reading.gpus] == [0, 4]
    assert reading.problem is not None
    assert reading.problem.count("GPU3: 0000:04:00.0: Unknown Error: a GPU does not answer") == 1


def test_a_damaged_inforom_is_a_warning_beside_valid_figures(fake_smi, captured, tmp_path):
    """Exit status 14 comes with figures that hold."""
    (tmp_path / "rows").write_text(captured("query-gpu-damaged-inforom.txt"))
    path = fake_smi(f"case $1 in *apps*) ;; *) cat {tmp_path}/rows;; esac; exit 14")

    reading = reading_of(path)

    assert [gpu["throttle_reasons"] for gpu in reading.gpus] == [["sw_power_cap"]]
    assert "the other figures hold" in (reading.problem or "")


def test_an_nvidia_smi_that_hangs_is_given_up(fake_smi, monkeypatch):
    """A driver in trouble can keep it for ever; the limit is ours."""
    monkeypatch.setattr(nvidia_smi, "LIMIT_S", 0.2)
    smi = NvidiaSmi(Context({}), fake_smi("sleep 60").split(":")[0] + "/nvidia-smi")

    reading = smi._ask(question(), 0.2)

    assert reading is not None
    assert reading.gpus == []
    assert reading.problem is not None
    assert "did not answer within 0.2 s: the driver hangs. Look for Xid" in reading.problem


def test_a_machine_without_any_driver_says_what_was_looked_for(tmp_path):
    """No library asked, no program found: no GPUs, and why."""
    with Gpus(Context({"nvml": False, "path": str(tmp_path)})) as gpus:
        assert (gpus.source, gpus.driver_found) == ("none", False)
        assert gpus.read().problem == "no nvidia-smi on PATH"


def test_an_empty_answer_is_a_problem(fake_smi):
    """No row and no message is not "no GPU"."""
    assert reading_of(fake_smi("exit 0")).problem == "nvidia-smi listed no GPU: no output"
