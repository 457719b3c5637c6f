"""systemd's own readers of units, and inventories to make timers of."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.inventory import Inventory, loading
from eagleops.transport.base import Completed
from eagleops.transport.local import LocalTransport
from eagleops.workflows.timer_surroundings import Surroundings
from parts import needs

NOBODY = 65534
PLAIN = "hosts: {box: {address: root@192.0.2.6}}\nnightly: {default: {hosts: [box]}}\n"


@attrs.frozen
class Parsed:
    """What systemd takes from a service's text."""

    argv: tuple[str, ...]
    folder: str
    environ: Mapping[str, str]
    lines: Mapping[str, str]


class Systemd:
    """systemd's own parser, in its test mode and as nobody: it starts nothing and writes nothing.

    Its folder may be read by everybody.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.units = folder / "units"
        self.units.mkdir()
        runtime = folder / "runtime"
        runtime.mkdir()
        self._as_nobody: tuple[str, ...] = ()
        if os.geteuid() == 0:
            os.chown(runtime, NOBODY, NOBODY)
            options = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
            self._as_nobody = (needs.program("setpriv", "util-linux"), *options)
        self._environ = {
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(runtime),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "SYSTEMD_UNIT_PATH": f"{self.units}:",
        }

    def analyze(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """``systemd-analyze`` with these arguments."""
        return self._run(needs.program("systemd-analyze", "systemd"), *argv)

    def write(self, files: Mapping[Path, str]) -> list[str]:
        """Puts units where it finds them, and nothing else; their names."""
        for old in self.units.iterdir():
            old.unlink()
        for path, text in files.items():
            (self.units / path.name).write_text(text)
        return [path.name for path in files]

    def verified(self, files: Mapping[Path, str], manager: str) -> str:
        """What ``systemd-analyze verify`` has to say against units; empty for nothing."""
        names = self.write(files)
        done = self.analyze("verify", f"--{manager}", "--man=no", *names)
        ours = [line for line in done.stderr.splitlines() if "eagleops" in line]
        return "\n".join(ours) if done.returncode == 0 else done.stderr

    def parsed(self, service: str) -> Parsed:
        """A service's text as systemd reads it."""
        self.write({Path("it.service"): service})
        program = Path("/lib/systemd/systemd")
        if not program.exists():
            needs.cannot("systemd is not installed (Debian package systemd)")
        done = self._run(str(program), "--test", "--user", "--unit=it.service")
        assert done.returncode == 0, done.stderr
        dump = done.stdout.partition("-> Unit it.service:")[2].partition("-> Unit ")[0]
        lines = [line.lstrip("\t").partition(": ") for line in dump.split("\n")]
        told = {name: value for name, _, value in lines}
        pairs = [value.partition("=") for name, _, value in lines if name == "Environment"]
        return Parsed(
            argv=_unescaped(told["Command Line"]),
            folder=told["WorkingDirectory"],
            environ={name: value for name, _, value in pairs},
            lines=told,
        )

    def _run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._as_nobody, *argv],
            env=self._environ,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def _unescaped(command: str) -> tuple[str, ...]:
    """The words of a command as systemd prints it, and $$ as it reads that when it starts one."""
    words = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|([^ ]+)', command):
        words.append(plain or re.sub(r"\\(.)", r"\1", quoted))
    program, *others = words
    assert not any("$" in word.replace("$$", "") for word in others), others
    return (program, *(word.replace("$$", "$") for word in others))


@pytest.fixture(scope="session")
def systemd() -> Iterator[Systemd]:
    """Systemd's parser."""
    needs.program("systemd-analyze", "systemd")
    # pytest's own folders are shut to others, and it reads as nobody.
    folder = Path(tempfile.mkdtemp(prefix="eagleops-units-"))
    folder.chmod(0o755)
    yield Systemd(folder)
    shutil.rmtree(folder)


class Here:
    """A way to this machine on which ``systemctl`` is a stand-in that notes what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "asked"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.answer()
        path = f"{self.bin}:{os.environ['PATH']}"
        self._way = LocalTransport(env={"PATH": path, "LOG": str(self.log)})

    def answer(self, stdout: str = "", stderr: str = "", status: int = 0) -> None:
        """What it says from now on."""
        (self.bin / "stdout").write_text(stdout)
        (self.bin / "stderr").write_text(stderr)
        program = self.bin / "systemctl"
        program.write_text(
            f'#!/bin/sh\necho "$*" >> "$LOG"\ncat {self.bin}/stdout\ncat {self.bin}/stderr >&2\n'
            f"exit {status}\n"
        )
        program.chmod(0o755)

    @property
    def asked(self) -> list[str]:
        """The arguments of each call."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        return self._way.run(argv, **more)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """A systemctl that only notes."""
    folder = tmp_path / "systemctl"
    folder.mkdir()
    return Here(folder)


@pytest.fixture
def around(tmp_path: Path) -> Callable[..., Surroundings]:
    """Somebody who asks for a timer; changes by name."""

    def around(**changes: Any) -> Surroundings:
        plain = Surroundings(
            interpreter=Path(sys.executable),
            folder=tmp_path,
            home=tmp_path / "home",
            account="ann",
            root=False,
            lingers=True,
            zone="Etc/UTC",
        )
        return attrs.evolve(plain, **changes)

    return around


@pytest.fixture
def inventory(tmp_path: Path) -> Callable[..., Inventory]:
    """An inventory of this text, in a file."""

    def inventory(text: str = PLAIN, name: str = "hosts.yaml") -> Inventory:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return loading.load(file)

    return inventory
