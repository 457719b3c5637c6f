"""The box itself: its directory, its options, and that real GPUs are out of its reach."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eagleops.errors import UsageError
from eagleops.session import Session
from eagleops.sim.box import SimBox
from sim.simulated import SimServer

PREPARE = (
    "import sys; from pathlib import Path; from eagleops.sim.box import SimBox; "
    "print(SimBox.prepare(Path(sys.argv[1])).layout.identity().serial)"
)


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a folder: its mode and what it holds."""
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def test_preparing_twice_changes_nothing(box: SimBox) -> None:
    """A box that is there is left as it is."""
    before = tree(box.directory)

    again = SimBox.prepare(box.directory)

    assert again == box
    assert tree(box.directory) == before


def test_several_processes_may_prepare_one_box_at_once(tmp_path: Path) -> None:
    """All of them get the same box, and no half-written file is left."""
    folder = tmp_path / "box"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PREPARE, str(folder)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]

    serials = {process.communicate(timeout=60)[0] for process in processes}

    assert {process.returncode for process in processes} == {0}
    assert len(serials) == 1
    assert not list(folder.rglob(".*"))
    assert len(SimBox.prepare(folder).read_gpus()) == 8


def test_the_default_directory_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EAGLEOPS_SIM_DIR names it, else XDG_STATE_HOME holds it, else ~/.local/state."""
    monkeypatch.delenv("EAGLEOPS_SIM_DIR", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert SimBox.prepare().directory == tmp_path / ".local/state/eagleops/sim"

    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # to be ignored: XDG's specification
    assert SimBox.prepare().directory == tmp_path / ".local/state/eagleops/sim"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert SimBox.prepare().directory == tmp_path / "xdg/eagleops/sim"

    monkeypatch.setenv("EAGLEOPS_SIM_DIR", str(tmp_path / "named"))
    assert SimBox.prepare().directory == tmp_path / "named"


@pytest.mark.parametrize("folder", ["/dev/shm/box", "/proc/box", "/sys/box"])
def test_a_box_is_never_where_devices_are(folder: str) -> None:
    """Its device files are plain files, in no folder of the kernel's."""
    with pytest.raises(UsageError, match=f"no embedded box can be at {folder}: real devices"):
        SimBox.prepare(Path(folder))


def test_a_link_to_devices_is_seen_through(tmp_path: Path) -> None:
    """Nor by way of a symbolic link."""
    (tmp_path / "link").symlink_to("/dev/shm")

    with pytest.raises(UsageError, match="real devices are there"):
        SimBox.prepare(tmp_path / "link" / "box")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file in its way, a full disk: no bug of eagleops, and another folder can be named."""
    (tmp_path / "file").touch()

    with pytest.raises(UsageError) as refused:
        SimBox.prepare(tmp_path / "file" / "box")

    assert str(refused.value) == (
        f"no embedded box can be at {tmp_path}/file/box: Not a directory\n"
        "Name another folder by EAGLEOPS_SIM_DIR, or as `sim: {directory: PATH}` in hosts.yaml."
    )


def test_a_colon_in_the_folders_name_is_refused(tmp_path: Path) -> None:
    """PATH could not name its programs."""
    with pytest.raises(UsageError, match="a colon ends a folder's name on PATH"):
        SimBox.prepare(tmp_path / "a:b")


@pytest.mark.parametrize("gpus", [0, 33])
def test_a_box_has_one_to_32_gpus(tmp_path: Path, gpus: int) -> None:
    """Any other number is refused before anything is made."""
    with pytest.raises(UsageError, match=f"has 1 to 32 GPUs, not {gpus}"):
        SimBox.prepare(tmp_path / "box", gpus=gpus)
    assert not (tmp_path / "box").exists()


def test_the_number_of_gpus_may_change_later(box: SimBox) -> None:
    """The last one to prepare says how many there are; the GPUs' identity stays."""
    uuids = [gpu.uuid for gpu in box.read_gpus()]

    fewer = SimBox.prepare(box.directory, gpus=2)

    assert [gpu.uuid for gpu in fewer.read_gpus()] == uuids[:2]


def test_options_and_environment_name_the_box_alone(box: SimBox) -> None:
    """Device files, state and programs lie inside it, and NVML is not asked."""
    options = box.options

    assert options["device_prefix"] == f"{box.directory}/dev/nvidia"
    assert options["state_home"] == f"{box.directory}/state"
    assert options["nvml"] is False
    assert options["path"].split(":")[0] == f"{box.directory}/bin"
    assert box.environment["PYTHONPATH"] == f"{box.directory}/site"
    assert box.environment["EAGLEOPS_SIM_DIR"] == str(box.directory)


def test_its_transport_finds_its_own_nvidia_smi(box: SimBox) -> None:
    """Whatever is installed on this machine, the name means the stand-in."""
    answer = box.transport().run(["nvidia-smi", "-L"])

    assert answer.exit_status == 0
    assert answer.stdout.decode().count("(simulated)") == 8


def test_its_python_is_this_one(box: SimBox) -> None:
    """`python3` on its PATH is the interpreter that has what the stand-ins need."""
    answer = box.transport().run(["python3", "-c", "import sys; print(sys.executable)"])

    assert answer.stdout.decode().strip() == box.python == sys.executable


def test_a_session_opens_on_it(box: SimBox) -> None:
    """The remote package runs there as on any machine."""
    session = Session.open(box.transport(), options=box.options)

    assert session.where == "the embedded box"
    session.close()


def test_two_boxes_do_not_see_one_another(
    box: SimBox, launch: Callable[..., SimServer], tmp_path: Path
) -> None:
    """Each has GPUs and processes of its own."""
    other = SimBox.prepare(tmp_path / "other")
    launch("--tp-size", "2")

    assert [gpu.used_mib > 80_000 for gpu in box.read_gpus()] == [True] * 2 + [False] * 6
    assert [gpu.used_mib for gpu in other.read_gpus()] == [0] * 8
    assert not {gpu.uuid for gpu in box.read_gpus()} & {gpu.uuid for gpu in other.read_gpus()}


def test_a_stand_in_outside_a_box_refuses_to_start(box: SimBox) -> None:
    """It must never be taken for a real engine on a real machine."""
    environment = {**os.environ, "PYTHONPATH": box.environment["PYTHONPATH"]}
    environment.pop("EAGLEOPS_SIM_DIR", None)

    refused = subprocess.run(
        [sys.executable, "-m", "sglang.launch_server", "--model-path", "/m"],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert refused.returncode == 1
    assert "it runs in eagleops' embedded box alone" in refused.stderr


def test_workers_hold_files_of_the_box_and_no_device(
    box: SimBox, launch: Callable[..., SimServer]
) -> None:
    """Each keeps the plain files that stand for its GPU open."""
    server = launch("--tp-size", "2")

    folder = Path(f"/proc/{server.worker('sglang::scheduler_TP1')}/fd")
    held = {str(link.readlink()) for link in folder.iterdir()}

    devices = {f"{box.directory}/dev/{name}" for name in ("nvidiactl", "nvidia-uvm", "nvidia1")}
    assert devices <= held
    assert not {name for name in held if name.startswith("/dev/nvidia")}


def test_an_unknown_fault_is_refused(box: SimBox) -> None:
    """A typing error would show nothing, and nobody would know why."""
    with pytest.raises(ValueError, match="no such fault: temperatur"):
        box.break_gpu(3, temperatur=93)


def test_mending_ends_every_fault(box: SimBox) -> None:
    """The box is whole again."""
    box.break_gpu(3, temperature_c=93)
    box.break_nvidia_smi(error="no_devices")
    assert box.read_gpus()[3].temperature_c == 93

    box.mend()

    assert box.read_gpus()[3].temperature_c < 40
    assert box.transport().run(["nvidia-smi", "-L"]).exit_status == 0


def test_a_record_that_cannot_be_read_is_dropped(box: SimBox) -> None:
    """What another version or a full disk left behind does not break the box for good."""
    path = Path(f"{box.layout.holders}/1-1")
    path.write_text("1 1 boot 0 5 1 [52420, 41000]")

    assert [gpu.used_mib for gpu in box.read_gpus()] == [0] * box.gpus
    assert not path.exists()
