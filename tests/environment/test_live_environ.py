"""The live witness: what getenv finds in a real process, however the program is linked."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from eagleops.remote.memory import CannotRead, Memory, ProcessMemory
from eagleops.remote.process_environ import live_or_why
from environment.programs import (
    BLIND,
    LINKED,
    STRIPPED,
    as_nobody,
    c_worker,
    compiled,
    running,
    stripped,
    without_sections,
)
from parts import needs
from parts.poll import until

STEPS = ["set", "CHANGED", "new", "set", "ADDED", "here", "put", "PUT=by putenv", "unset", "GONE"]
GIVEN = {"KEPT": "kept", "CHANGED": "old", "GONE": "gone", "PATH": os.environ["PATH"]}
NAMES = ["KEPT", "CHANGED", "ADDED", "PUT", "GONE", "NEVER"]


def live(pid: int) -> dict[str, str]:
    """The live environment, as text."""
    found, why = live_or_why(pid)
    assert found is not None, why
    return {name.decode(): value.decode() for name, value in found.variables.items()}


def agrees(told) -> None:
    """Each name is seen as getenv finds it."""
    seen = live(told.pid)
    assert {name: seen.get(name) for name in told.found} == told.found


@pytest.mark.parametrize("linked", LINKED)
def test_what_a_program_sets_is_seen_however_it_is_linked(build, linked: str) -> None:
    """setenv, putenv and unsetenv are seen in PIE or not, static or not, glibc or musl."""
    with c_worker(build("worker.c", linked), STEPS, GIVEN, NAMES) as told:
        agrees(told)


@pytest.mark.parametrize("linked", STRIPPED)
@pytest.mark.parametrize("without", [stripped, without_sections])
def test_no_symbol_table_and_no_section_headers_are_needed(build, linked, without) -> None:
    """A binary stripped of all that the dynamic linker does not need is read all the same."""
    with c_worker(without(build("worker.c", linked)), STEPS, GIVEN, NAMES) as told:
        agrees(told)


@pytest.mark.parametrize("linked", BLIND)
def test_a_static_program_without_symbols_cannot_be_told(build, linked: str) -> None:
    """Where nothing says where environ lies the answer is that, not a guess."""
    with c_worker(stripped(build("worker.c", linked)), STEPS, GIVEN, NAMES) as told:
        assert live_or_why(told.pid) == (
            None,
            ("the program is statically linked and stripped of its symbols", ""),
        )


def test_a_program_of_32_bits_is_read(tmp_path: Path) -> None:
    """The layout follows the program's class, not this interpreter's."""
    try:
        program = compiled(tmp_path, "worker.c", ["gcc", "-m32"])
    except subprocess.CalledProcessError:
        if platform.machine() != "x86_64":
            needs.cannot(f"no 32-bit programs on {platform.machine()}")
        needs.cannot("gcc cannot build for 32 bits here (Debian package gcc-multilib)")
    with c_worker(program, STEPS, GIVEN, NAMES) as told:
        agrees(told)


@pytest.mark.parametrize(
    ("linked", "linkers"),
    [("pie", "lib64/ld-linux-*.so.*"), ("musl", "lib/ld-musl-*.so.1")],
)
def test_a_program_started_as_the_linkers_argument_is_read(build, linked, linkers) -> None:
    """Then the kernel knows the dynamic linker as the program, and the linker knows better."""
    linker = next(Path("/").glob(linkers), None)
    if linker is None:
        needs.cannot(f"there is no /{linkers}")
    with c_worker(build("worker.c", linked), STEPS, GIVEN, NAMES, before=[linker]) as told:
        agrees(told)


def test_the_executables_copy_comes_before_the_librarys(build) -> None:
    """A copy relocation leaves a dead environ in the C library: that one is not read."""
    with c_worker(build("worker.c", "no-pie"), STEPS, GIVEN, NAMES) as told:
        found, _ = live_or_why(told.pid)

        assert found.holder == "the executable"


@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_or_replaced_library_is_read_from_memory(build, tmp_path, replaced) -> None:
    """An upgrade under a running server changes files, not what the server has loaded."""
    own = tmp_path / "lib"
    own.mkdir()
    with c_worker(build("worker.c", "no-pie"), (), GIVEN) as other:
        maps = Path(f"/proc/{other.pid}/maps").read_text()
    libc = next(line.split()[-1] for line in maps.splitlines() if "libc.so" in line)
    shutil.copy(libc, own / "libc.so.6")
    # Of a program that does not name environ the C library alone holds it.
    python = {**GIVEN, "LD_LIBRARY_PATH": str(own)}
    with running(["/usr/bin/env", "cat"], python) as process:
        until(lambda: str(own) in Path(f"/proc/{process.pid}/maps").read_text())
        until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "cat\n")
        (own / "libc.so.6").unlink()
        if replaced:
            (own / "libc.so.6").write_bytes(b"\x7fELF" + bytes(4096))
        until(lambda: live_or_why(process.pid)[0] is not None)

        found, _ = live_or_why(process.pid)

        assert found.holder == str(own / "libc.so.6")
        assert found.variables[b"KEPT"] == b"kept"


def test_a_program_of_another_mount_namespace_is_read(build, tmp_path: Path) -> None:
    """Its files need not be seen from here."""
    needs.root("a mount namespace")
    place = tmp_path / "mounted"
    place.mkdir()
    script = 'mount -t tmpfs none "$1" && cp "$0" "$1/worker" && shift && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", script, build("worker.c"), place]
    with c_worker(place / "worker", STEPS, GIVEN, NAMES, before=before) as told:
        assert not (place / "worker").exists()
        agrees(told)


def test_an_environment_of_128_kib_is_read_whole(build) -> None:
    """The size alone is no reason to give up."""
    given = {f"NAME_{number}": f"{number}-" * 20 for number in range(1200)}
    given["LONG"] = "x" * (127 * 1024)
    with c_worker(build("worker.c"), STEPS, {**GIVEN, **given}, [*NAMES, "NAME_777"]) as told:
        agrees(told)
        assert live(told.pid)["LONG"] == given["LONG"]


def test_strings_without_a_name_and_bytes_without_a_meaning_are_kept(build) -> None:
    """Exec passes any bytes; what is no text and what has no name harms nothing."""
    given = {b"BYTES": b"\xff\xfe=\n", b"KEPT": b"1"}
    with running([build("worker.c"), "put", "nameless"], given) as process:
        assert process.stdout.readline() == b"ready\n"
        found, _ = live_or_why(process.pid)

        assert found.variables == given


def test_a_cleared_environment_is_empty_not_unknown(build) -> None:
    """After clearenv there is no variable, and that is certain."""
    with c_worker(build("worker.c"), ["clear"], GIVEN, NAMES) as told:
        assert live(told.pid) == {}


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("wild-entry", "0x10 is no address"),
        ("wild-array", "no memory is mapped at 0x4141414141"),
    ],
)
def test_a_wild_pointer_ends_in_the_reason(build, step: str, why: str) -> None:
    """A pointer that leads nowhere costs an answer, no hang and no huge read."""
    with c_worker(build("worker.c"), [step], GIVEN) as told:
        assert live_or_why(told.pid) == (None, (why, ""))


def test_a_value_that_changes_all_the_time_is_never_seen_half_changed(build) -> None:
    """What is read is a value that stood there, or the answer that it keeps changing."""
    whole = {b"a" * 3999, b"b" * 3999}
    with c_worker(build("worker.c"), ["churn", "VALUE"], {"VALUE": "a" * 3999}) as told:
        seen = [live_or_why(told.pid) for _ in range(200)]

    values = {found.variables[b"VALUE"] for found, _ in seen if found is not None}
    whys = {why for found, (why, _) in seen if found is None}
    assert values <= whole
    assert whys <= {"the environment changed each time it was read"}


def test_processes_that_end_while_they_are_read_end_in_a_reason() -> None:
    """A process may be starting, running or gone at each step of the reading."""
    stop = threading.Event()

    def reading() -> None:
        while not stop.is_set():
            for pid in started[:]:
                found, (why, _) = live_or_why(pid)
                outcomes.add("read" if found is not None else why)

    started: list[int] = []
    outcomes: set[str] = set()
    reader = threading.Thread(target=reading)
    reader.start()
    for _ in range(150):
        child = subprocess.Popen(["/bin/true"])
        started[:] = [child.pid]
        child.wait()
    stop.set()
    reader.join()

    assert "internal" not in " ".join(outcomes)
    assert outcomes - {"read"} != set()


def test_this_process_sees_its_own_environment() -> None:
    """The interpreter that runs the tests agrees with its C library."""
    name = "EAGLEOPS_TEST_OWN"
    os.environ[name] = "seen"
    try:
        assert live(os.getpid())[name] == "seen"
        ctypes.CDLL(None).setenv(name.encode(), b"behind os.environ", 1)
        assert (os.environ[name], live(os.getpid())[name]) == ("seen", "behind os.environ")
    finally:
        del os.environ[name]


def test_another_users_process_is_refused_with_the_reason(build, tmp_path: Path, read) -> None:
    """An ordinary user is told whose process it is, and what would help."""
    from eagleops.session import Session
    from eagleops.transport.local import LocalTransport

    reader = Session.open(LocalTransport(), python=str(as_nobody(tmp_path, "/usr/bin/python3")))
    tmp_path.chmod(0o755)
    with c_worker(build("worker.c"), (), GIVEN) as told:
        process = reader.call("environ", pid=told.pid, names=["KEPT"])["processes"][0]
    reader.close()

    why = "the process belongs to uid 0, and this is uid 65534 without CAP_SYS_PTRACE"
    way_out = (
        "enter the machine as that user, or let the machine be entered as root "
        "(address: root@... in hosts.yaml)"
    )
    assert process["live"] == {"state": "unreadable", "why": why, "way_out": way_out}
    assert (process["initial"]["state"], process["initial"]["why"]) == ("unreadable", why)


def test_memory_is_bounded_in_bytes_and_in_reads() -> None:
    """A structure without an end costs a bounded number of bounded reads."""
    endless = Memory(lambda _address, size: b"x" * size, budget_bytes=100_000, budget_reads=1000)

    with pytest.raises(CannotRead, match="a string is longer than 5000 bytes"):
        endless.string(4096, 5000)
    for _ in range(90):
        endless.exact(1, 1000)
    with pytest.raises(CannotRead, match="reading was given up"):
        endless.exact(1, 10_000)


@pytest.mark.parametrize("address", [0, -1, 2**63, 2**64 - 8])
def test_an_impossible_address_is_refused(address: int) -> None:
    """An address that pread cannot even take is no crash."""
    with ProcessMemory(os.getpid()) as memory, pytest.raises(CannotRead, match="is no address"):
        memory.exact(address, 8)
