"""Facts of processes: parsers fed with any text, and the real /proc of own children."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eagleops.errors import OperationFailed
from eagleops.remote import device_files, process_table, processes
from eagleops.remote.cgroup import Cgroup, container_of, parse_cgroup
from eagleops.remote.context import Context
from eagleops.remote.gpu_facts import Reading, unread
from eagleops.remote.gpu_processes import read_processes
from parts import needs
from parts.poll import until

ID = "4f1c" * 16
V1 = "12:pids:{0}\n11:memory:{0}\n1:name=systemd:{0}\n0::/\n"


@pytest.mark.parametrize(
    ("text", "path", "container"),
    [
        ("0::/lxc/129/ns/system.slice/ssh.service\n", None, "129"),
        ("0::/lxc/129/.lxc\n", None, "129"),
        (V1.format("/lxc/129/ns"), "/lxc/129/ns", "129"),
        ("0::/lxc/1290/ns\n", None, "1290"),
        ("0::/lxc.monitor/129\n", None, None),
        ("0::/lxc.payload.box/init.scope\n", None, "box"),
        (V1.format("/lxc.payload/box"), "/lxc.payload/box", "box"),
        ("0::/lxc.monitor.box\n", None, None),
        (f"0::/system.slice/docker-{ID}.scope\n", None, ID[:12]),
        (V1.format(f"/docker/{ID}"), f"/docker/{ID}", ID[:12]),
        (f"0::/machine.slice/libpod-{ID}.scope/container\n", None, ID[:12]),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n", None, ID[:12]),
        (V1.format(f"/kubepods/burstable/pod1/{ID}"), f"/kubepods/burstable/pod1/{ID}", ID[:12]),
        # Docker inside of a container of Proxmox: the host knows the outer one.
        (f"0::/lxc/129/ns/docker/{ID}\n", None, "129"),
        ("0::/system.slice/docker.service\n", None, None),
        ("0::/user.slice/user-0.slice/session-1.scope\n", None, None),
        ("0::/\n", None, None),
        ("", "/", None),
        ("9:name=systemd:/\n4:memory:/some/where\n0::/\n", "/some/where", None),
    ],
)
def test_a_cgroup_tells_the_container(text: str, path: str | None, container: str | None):
    """Proxmox, LXC, LXD, Docker, Podman and Kubernetes, in cgroup v1 and v2."""
    expected = Cgroup(path or text.strip().rpartition(":")[2], container)

    assert parse_cgroup(text) == expected


@given(st.text())
@example("0::")
@example(":::::/lxc/")
def test_any_text_reads_as_some_cgroup(text: str):
    """A cgroup's path is whatever its maker called it, colons and all."""
    path, container = parse_cgroup(text)

    assert path == "/" or path in text
    assert container is None or (container in text and "/" not in container)
    assert container_of(text) is None or container_of(text)


STAT = "{pid} ({comm}) {state} 1 2 3 0 -1 4194304 " + "0 " * 10 + "{threads} 0 {start} 0 0\n"


@given(
    st.integers(1, 2**22),
    st.binary(min_size=0, max_size=15),
    st.sampled_from("RSDZTtXI"),
    st.integers(0, 2**64),
)
@example(7, b") R 1 (", "S", 5)
@example(7, b"tmux: server", "S", 5)
@example(7, b"a) Z 0", "S", 5)
def test_a_stat_line_is_read_whatever_the_name_holds(pid, comm, state, start):
    """The name may hold blanks, parentheses and bytes that are no text."""
    head, _, tail = STAT.partition("{comm}")
    line = head.format(pid=pid).encode() + comm
    line += tail.format(state=state, threads=4, start=start).encode()

    stat = process_table.parse_stat(line)

    assert (stat.pid, stat.state, stat.ppid, stat.pgid, stat.sid) == (pid, state, 1, 2, 3)
    assert (stat.start_ticks, stat.threads) == (start, 4)
    assert stat.comm == comm.decode("utf-8", "replace")


@given(st.binary())
@example(b"1 () S 1 2")
@example(b"1 (a) \xff 1 2")
def test_what_is_no_stat_line_is_a_value_error(content: bytes):
    """A process that goes while it is read gives part of a line, and no other exception."""
    with contextlib.suppress(ValueError):
        process_table.parse_stat(content)


@given(st.text())
@example("Uid:\t0\t0\t0\t0\nNSpid:\t4711\t12\n")
@example("Uid:\nNSpid:\n")
@example("Uid:\t²\n")
def test_any_text_reads_as_some_status(text: str):
    """What is not there is left out."""
    status = processes.parse_status(text)

    assert status.uid is None or status.uid >= 0
    assert all(pid >= 0 for pid in status.nspid)


def test_a_status_tells_uid_and_the_pid_in_each_namespace():
    """Real uid first; PIDs from the reader's namespace inwards."""
    text = "Name:\tpython3\nUid:\t1000\t0\t0\t0\nNSpid:\t4711\t12\nThreads:\t3\n"

    assert processes.parse_status(text) == processes.Status(1000, [4711, 12])
    assert processes.parse_status("Name:\tx\n") == processes.Status(None, [])


@given(st.text())
@example("pid:[4026531836]")
@example("pid:[]")
def test_any_link_reads_as_a_namespace_or_none(link: str):
    """The inode is all that is told of a namespace."""
    assert isinstance(processes.parse_namespace(link), int | None)


@pytest.mark.parametrize(
    ("file", "matches", "minor"),
    [
        ("/dev/nvidia0", True, 0),
        ("/dev/nvidia15", True, 15),
        ("/dev/nvidia3 (deleted)", True, 3),
        ("/dev/nvidiactl", True, None),
        ("/dev/nvidia-uvm", True, None),
        ("/dev/nvidia-uvm-tools", True, None),
        ("/dev/nvidia-modeset", True, None),
        ("/dev/nvidia-caps/nvidia-cap12", True, None),
        ("/dev/nvidia", False, None),
        ("/dev/nvidia0.log", False, None),
        ("/dev/nvidia-caps/", False, None),
        ("/mnt/dev/nvidia0", False, None),
        ("/dev/nvidianet0", False, None),
    ],
)
def test_device_files_are_told_from_other_files(file: str, matches: bool, minor: int | None):
    """Only what the driver makes counts, and only a GPU's own file has a number."""
    pattern = device_files.device_pattern("/dev/nvidia")

    assert bool(pattern.fullmatch(file)) is matches
    assert device_files.minor_of(pattern, file) == minor


@given(st.text())
def test_a_prefix_is_taken_literally(prefix: str):
    """A simulated machine's folder may have any name."""
    pattern = device_files.device_pattern(prefix)

    assert device_files.minor_of(pattern, prefix + "7") == 7
    assert device_files.minor_of(pattern, prefix + "ctl") is None


# Real processes -------------------------------------------------------------------------


@pytest.fixture
def devices(tmp_path: Path) -> str:
    """A folder of files that stand for device files; returns their prefix."""
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in ("nvidia0", "nvidia5", "nvidiactl", "nvidia-uvm", "other"):
        (folder / name).touch()
    return str(folder / "nvidia")


HOLD = """
files = [open(name) for name in sys.argv[1:]]
print("ready", flush=True)
time.sleep(600)
"""


def test_a_holder_is_found_with_all_that_is_told_of_it(open_session, start, devices):
    """Its device files, its GPUs, whose it is, and what names it for good."""
    held = [devices + name for name in ("5", "0", "ctl", "0")]
    child = start(HOLD, *held, f"{Path(devices).parent}/other")

    seen = open_session(device_prefix=devices).call("snapshot")

    (process,) = seen["processes"]
    assert process["pid"] == child.pid
    assert process["start_ticks"] == child.target["start_ticks"]
    assert process["device_files"] == sorted({*held})
    assert process["gpu_devices"] == [0, 5]
    assert (process["uid"], process["ppid"], process["sid"]) == (
        os.getuid(),
        os.getpid(),
        child.pid,
    )
    assert (process["state"], process["wchan"], process["server"]) == ("S", None, None)
    assert process["pid_ns"] == seen["machine"]["pid_ns"]
    assert process["nspid"] == [child.pid]
    assert process["title"].endswith(f"{devices}0 {Path(devices).parent}/other")
    assert process["gpu_mib"] == {}
    assert set(seen) == {
        "machine",
        "gpu_source",
        "gpu_problem",
        "driver_found",
        "driver_version",
        "gpus",
        "processes",
        "servers",
    }


def test_a_closed_or_foreign_file_makes_no_holder(open_session, start, devices):
    """A process that only has other files open is not there at all."""
    start(HOLD, f"{Path(devices).parent}/other")

    assert open_session(device_prefix=devices).call("snapshot")["processes"] == []


def test_the_minor_of_a_device_file_is_mapped_to_the_gpus_index(start, devices):
    """A GPU that is index 0 here may be /dev/nvidia5: the map is the driver's, not a guess."""
    child = start(HOLD, devices + "5")
    gpu = {**unread(0), "minor": 5, "uuid": "GPU-5"}

    found, unreadable = read_processes(Context({"device_prefix": devices}), Reading([gpu]))

    assert [(p["pid"], p["gpu_devices"]) for p in found] == [(child.pid, [0])]
    assert unreadable >= 0


def test_a_listed_process_is_joined_with_what_the_driver_tells(
    open_session, start, fake_smi, devices
):
    """A PID in a GPU's list is looked up here; it need not hold a device file here."""
    child = start()
    path = fake_smi(
        f"case $1 in *apps*) echo 'GPU-1, {child.pid}, 21950'; echo 'GPU-1, 4194304, 7';;"
        " *) echo '0,GPU-1,,,21959,9,,,,,,,,,,,K80';; esac"
    )

    seen = open_session(path=path, device_prefix=devices).call("snapshot")

    (process,) = seen["processes"]
    assert (process["pid"], process["gpu_mib"]) == (child.pid, {"GPU-1": 21950})
    assert (process["device_files"], process["gpu_devices"]) == ([], [])
    assert [p["pid"] for p in seen["gpus"][0]["processes"]] == [child.pid, 4194304]


def test_a_title_that_a_process_gave_itself_is_its_title(open_session, start, devices):
    """Setproctitle pads with NUL bytes, which are no part of the title."""
    child = start(
        """
        import setproctitle
        file = open(sys.argv[1])
        setproctitle.setproctitle("sglang::scheduler_TP0")
        print("ready", flush=True)
        time.sleep(600)
        """,
        devices + "0",
    )

    (process,) = open_session(device_prefix=devices).call("snapshot")["processes"]

    assert (process["pid"], process["title"]) == (child.pid, "sglang::scheduler_TP0")


def test_secrets_and_control_characters_stay_out_of_a_title(open_session, start, devices):
    """A title is shown and recorded: an API key in it would be too."""
    child = start(
        "files = [open(sys.argv[1])]; print('ready', flush=True); time.sleep(600)",
        devices + "0",
        "--api-key",
        "hunter2-hunter2",
        "\x1b[31mred\n",
    )

    (process,) = open_session(device_prefix=devices).call("snapshot")["processes"]

    assert process["pid"] == child.pid
    assert "hunter2" not in process["title"]
    assert process["title"].endswith("--api-key <redacted>  [31mred")


def test_a_process_without_a_command_line_is_named_by_its_short_name(session, start):
    """A zombie has no title any more."""
    child = start()
    os.kill(child.pid, 9)
    until(lambda: child.state() == "Z")

    facts = processes.facts(child.pid)

    assert facts is not None
    assert (facts["title"], facts["state"]) == (f"[{facts['comm']}]", "Z")


def test_a_process_that_vanishes_has_no_facts(start):
    """Between a list of PIDs and a look at one, it may have gone."""
    child = start()
    child.process.kill()
    child.process.wait()

    assert processes.facts(child.pid) is None
    with pytest.raises(OSError, match="No such file"):
        device_files.open_files(str(child.pid), device_files.device_pattern("/dev/nvidia"))


def test_holders_of_other_users_are_counted_where_they_cannot_be_read(
    open_session, start, devices, tmp_path
):
    """Who is not root learns that something may be hidden."""
    needs.root("another user")
    setpriv = needs.program("setpriv", "util-linux")
    python = needs.program("/usr/bin/python3", "python3")
    child = start(HOLD, devices + "0")
    wrapper = Path("/tmp") / f"eagleops-test-user-{os.getpid()}"
    wrapper.write_text(
        f'#!/bin/sh\nexec {setpriv} --reuid=65534 --regid=65534 --clear-groups {python} "$@"\n'
    )
    wrapper.chmod(0o755)

    try:
        seen = open_session(python=str(wrapper), device_prefix=devices).call("snapshot")
    finally:
        wrapper.unlink()

    assert child.pid not in [process["pid"] for process in seen["processes"]]
    assert seen["machine"]["unreadable_processes"] > 0
    assert seen["machine"]["user"] == "nobody"


def test_a_proc_of_another_namespace_is_refused(open_session, tmp_path):
    """PIDs read there would be signalled here: nothing is done by such a /proc."""
    needs.root("a PID namespace")
    unshare = needs.program("unshare", "util-linux")
    wrapper = tmp_path / "python3"
    wrapper.write_text(f'#!/bin/sh\nexec {unshare} --fork --pid /usr/bin/python3 "$@"\n')
    wrapper.chmod(0o755)
    session = open_session(python=str(wrapper))

    for operation, arguments in (("snapshot", {}), ("kill", {"targets": []})):
        with pytest.raises(OperationFailed, match="/proc shows another PID namespace") as caught:
            session.call(operation, **arguments)
        assert caught.value.kind == "foreign_proc"


def test_a_holder_in_a_namespace_below_has_its_pid_in_each(open_session, start, devices):
    """From above both numbers are told, and the namespace is not the looker's."""
    needs.root("a PID namespace")
    unshare = needs.program("unshare", "util-linux")
    child = start(HOLD, devices + "0", prefix=(unshare, "--fork", "--pid", "--mount-proc"))

    seen = open_session(device_prefix=devices).call("snapshot")

    (process,) = seen["processes"]
    assert process["ppid"] == child.pid
    assert process["nspid"] == [process["pid"], 1]
    assert process["pid_ns"] != seen["machine"]["pid_ns"]
