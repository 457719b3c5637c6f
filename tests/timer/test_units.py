"""Units mean what they are made of: read by systemd's own parser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eagleops.errors import UsageError
from eagleops.workflows import timer, timer_units
from eagleops.workflows.timer_units import Start

HARD = '/srv/my venv %n 100%/it\'s "é" $HOME ${X} \\ end\\'

printable = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1)
# What a file system can hold: NAME_MAX is 255 bytes, and systemd takes no longer name either.
file_name = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/"),
    min_size=1,
    max_size=255 // 4,
).filter(lambda name: name not in {".", ".."})
# Which nobody may start, too.
PYTHON = Path("/usr/bin/python3")


def service(*argv: str, folder: Path | str = "/", environ: Mapping[str, str] | None = None) -> str:
    """The text of a service."""
    start = Start(argv=argv, folder=Path(folder), environ=environ or {})
    return timer_units.service("default", start, limit_s=60.0, system=False, sandboxed=False)


@settings(max_examples=40)
@example([HARD], {"A_B": HARD}, HARD)
@example(["\xa0", "\u3000x"], {"A": "\xa0"}, "\u3000")
@example(["-", "@", ";", "#", "'", '"', " ", "$$", "$", "${A}", "%", "%%h"], {"A": "$"}, " ")
@given(
    st.lists(printable, max_size=6),
    st.dictionaries(st.from_regex(r"[A-Z][A-Z_]{0,8}", fullmatch=True), printable, max_size=4),
    file_name,
)
def test_systemd_reads_what_was_meant(systemd, words, environ, folder) -> None:
    """Command, variables and folder come out of systemd's parser as they went in."""
    program = "/usr/bin/env"
    place = Path("/srv") / folder / "x"

    read = systemd.parsed(service(program, *words, folder=place, environ=environ))

    assert read.argv == (program, *words)
    assert read.environ == environ
    assert read.folder == str(place)


@pytest.mark.parametrize("end", [" ", "\\", "%", "'", '"', "\u00a0", "\u3000", "x"])
def test_a_folder_may_end_in_anything(systemd, end: str) -> None:
    """A blank or a backslash at a line's end is part of the path all the same."""
    place = Path(f"/srv/a b{end}")

    assert systemd.parsed(service("/bin/true", folder=place)).folder == str(place)


@settings(max_examples=20)
@example('/srv/my venv %n/it\'s "é" $HOME/a\\b/bin/python')
@example("/srv/${X}/$$/python")
@example("/srv/a=b %n/é $HOME/python")
@example(f"/srv/{'é' * 127}/python")
@given(st.lists(file_name, min_size=1).map(lambda names: "/".join(["/srv", *names, "x"])))
def test_a_program_may_lie_anywhere(systemd, program: str) -> None:
    """A venv's path may hold blanks, quotes, percent signs, and letters of any alphabet."""
    try:
        text = service(program, "-m", "x")
    except UsageError:
        assert "=" in program
        return
    argv = systemd.parsed(text).argv

    found = argv[1:] if argv[0] == timer_units.ENV else argv
    assert [Path(found[0]), *found[1:]] == [Path(program), "-m", "x"]


@pytest.mark.parametrize(
    ("argv", "folder", "environ"),
    [
        (("/bin/a\nb",), "/", {}),
        (("/bin/a", "x\x1b[0m"), "/", {}),
        (("/bin/a",), "/srv/a\tb", {}),
        (("/bin/a",), "/srv/\udcff", {}),
        (("/bin/a",), "/", {"A": "x\ny"}),
        (("/srv/a='b/python",), "/", {}),
    ],
)
def test_what_no_unit_can_hold_is_an_error(argv, folder, environ) -> None:
    """Before anything is written, with the place, and a link as the way out."""
    with pytest.raises(UsageError, match=r"(?s)(hold|holds|start).*link"):
        service(*argv, folder=folder, environ=environ)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_a_suites_name_makes_a_valid_units_name(name: str) -> None:
    """Whatever it holds; and two names make two."""
    made = timer_units.unit_name(name)

    assert made.removeprefix("eagleops-nightly-").isascii()
    assert "/" not in made
    assert " " not in made


def test_a_units_name_is_escaped_as_systemd_does() -> None:
    """Blanks, slashes and backslashes become their bytes."""
    assert timer_units.unit_name("übung 1/2\\x") == (
        r"eagleops-nightly-\xc3\xbcbung\x201\x2f2\x5cx"
    )


@pytest.mark.parametrize("manager", ["user", "system"])
def test_systemd_finds_nothing_wrong(systemd, around, inventory, manager: str, here) -> None:
    """``systemd-analyze verify`` is silent on the units of a person and of the machine."""
    loaded = inventory()

    planned = timer.plan(
        loaded,
        loaded.suite(),
        around=around(root=manager == "system", interpreter=PYTHON),
        here=here,
    )

    assert planned.manager == manager
    assert systemd.verified(planned.files, manager) == ""


def test_systemd_finds_what_is_wrong(systemd, around, inventory, here) -> None:
    """The check itself sees a unit that is none."""
    loaded = inventory()
    planned = timer.plan(loaded, loaded.suite(), around=around(), here=here)
    broken = {p: t.replace("OnCalendar=", "OnCalendar=x") for p, t in planned.files.items()}

    assert "Failed to parse calendar specification" in systemd.verified(broken, "user")


def test_systemd_finds_nothing_wrong_in_hard_places(systemd, around, inventory, here) -> None:
    """Likewise where the venv, the folder and hosts.yaml have names that need quoting."""
    place = systemd.folder / 'my venv %n 100% it\'s "é" $HOME'
    venv = place / "bin"
    venv.mkdir(parents=True, exist_ok=True)
    interpreter = venv / "python"
    if not interpreter.is_symlink():
        interpreter.symlink_to(PYTHON)
    loaded = inventory(name="my hosts %h $X/hosts 'é'.yaml")
    around = around(interpreter=interpreter, folder=place, environ={"XDG_DATA_HOME": f"{place}/x"})

    planned = timer.plan(loaded, loaded.suite(), around=around, here=here)
    (text, _) = planned.files.values()
    read = systemd.parsed(text)

    assert systemd.verified(planned.files, "user") == ""
    assert read.argv[:2] == (timer_units.ENV, str(interpreter))
    assert read.environ["EAGLEOPS_INVENTORY"] == loaded.file
    assert read.environ["XDG_DATA_HOME"] == f"{place}/x"
    assert read.folder == str(place)


def test_a_night_starts_in_a_bare_environment(systemd, around, inventory, here, tmp_path) -> None:
    """What systemd would start finds package, hosts.yaml and suite with nothing else set."""
    loaded = inventory(
        "hosts: {box: {transport: sim}}\nnightly: {my-suite: {hosts: [box]}}\n",
        name="my hosts/hosts.yaml",
    )
    real = around(
        package=timer.Surroundings.here().package,
        environ={"XDG_DATA_HOME": str(tmp_path / "d"), "XDG_STATE_HOME": str(tmp_path / "s")},
    )
    planned = timer.plan(loaded, loaded.suite(), around=real, here=here)
    (text, _) = planned.files.values()
    read = systemd.parsed(text)

    done = subprocess.run(
        [*read.argv, "--dry-run", "--json"],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **read.environ},
        cwd=read.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "my-suite" in done.stdout
    assert read.argv[0] == sys.executable


def test_a_night_is_ended_as_by_a_person(systemd, around, inventory, here) -> None:
    """SIGINT to eagleops alone: what it launched on this machine is not the service's to end."""
    loaded = inventory()
    planned = timer.plan(loaded, loaded.suite(), around=around(), here=here)
    (text, _) = planned.files.values()
    lines = systemd.parsed(text).lines

    assert (lines["KillSignal"], lines["KillMode"]) == ("SIGINT", "process")
    assert (lines["Type"], lines["Restart"]) == ("oneshot", "no")
    assert lines["TimeoutStartSec"] == "4h 15min"


@pytest.mark.parametrize(
    ("hosts", "root", "sandboxed"),
    [
        ("{box: {address: root@192.0.2.6}}", True, True),
        ("{box: {address: root@192.0.2.6}}", False, False),
        ("{box: {transport: local}}", True, False),
        ("{box: {transport: sim}}", True, False),
    ],
)
def test_only_what_reaches_other_machines_is_sandboxed(
    around, inventory, here, hosts: str, root: bool, sandboxed: bool
) -> None:
    """A server launched on this machine would live in the sandbox; a person's systemd has none."""
    loaded = inventory(f"hosts: {hosts}\nnightly: {{default: {{hosts: [box]}}}}\n")

    planned = timer.plan(loaded, loaded.suite(), around=around(root=root), here=here)

    (text, _) = planned.files.values()
    assert ("NoNewPrivileges=yes" in text) is sandboxed
    assert "ProtectHome" not in text
    assert "PrivateTmp" not in text


def test_containers_of_this_machine_are_not_sandboxed(around, inventory, here) -> None:
    """Pct on this very machine starts what it starts from here."""
    text = (
        "hosts: {pve: {transport: local}}\ncontainers: {llm: {on: pve, vmid: 129}}\n"
        "nightly: {default: {hosts: [llm]}}\n"
    )
    loaded = inventory(text)

    planned = timer.plan(loaded, loaded.suite(), around=around(root=True), here=here)

    assert "NoNewPrivileges" not in "".join(planned.files.values())
