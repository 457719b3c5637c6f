"""Real processes whose environment is known because they tell it themselves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from parts import needs

DATA = Path(__file__).parents[1] / "data" / "environment"

# How each is linked decides where its `environ` lies.
LINKED = {
    "pie": ["gcc"],
    "no-pie": ["gcc", "-no-pie"],
    "static": ["gcc", "-static"],
    "static-pie": ["gcc", "-static-pie"],
    "sysv-hash": ["gcc", "-Wl,--hash-style=sysv"],
    "gnu-hash": ["gcc", "-Wl,--hash-style=gnu"],
    "musl": ["musl-gcc"],
    "musl-no-pie": ["musl-gcc", "-no-pie"],
    "musl-static": ["musl-gcc", "-static"],
}
STRIPPED = ("pie", "no-pie", "musl")
BLIND = ("static", "static-pie", "musl-static")


@attrs.frozen
class Told:
    """A process by its own word.

    Attributes:
        found: What C's getenv found.
        took: What the model of NCCL in worker.py took, each time it read.
    """

    pid: int
    found: Mapping[str, str | None]
    took: Mapping[str, list[str | None]] = attrs.field(factory=dict)


def compiled(folder: Path, source: str, command: Sequence[str], *flags: str) -> Path:
    """A program from tests/data/environment/."""
    package = "musl-tools" if command[0] == "musl-gcc" else "gcc libc6-dev"
    compiler = needs.program(command[0], package)
    name = "-".join([Path(source).stem, *command, *flags]).replace("/", "_")
    built = folder / name
    if not built.exists():
        argv = [compiler, *command[1:], "-O1", "-w", *flags, "-o", built, DATA / source]
        subprocess.run(argv, check=True, capture_output=True)
    return built


def stripped(program: Path) -> Path:
    """The program without its symbol table."""
    strip = needs.program("strip", "binutils")
    copy = program.with_name(program.name + "-stripped")
    if not copy.exists():
        subprocess.run([strip, "-o", copy, program], check=True)
    return copy


def without_sections(program: Path) -> Path:
    """The program without section headers: the kernel and the dynamic linker need none."""
    copy = program.with_name(program.name + "-without-sections")
    if not copy.exists():
        image = bytearray(program.read_bytes())
        image[0x28:0x30] = bytes(8)  # e_shoff
        image[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
        copy.write_bytes(image)
        copy.chmod(0o755)
    return copy


def pythons() -> list[Path]:
    """The interpreters of this machine, 3.8 and newer, and the one that runs the tests."""
    found = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"), key=_version)
    found = [path for path in found if _version(path) >= (3, 8)]
    found += [path for path in (Path("/usr/bin/python3"),) if path.exists()]
    return [*found, Path(sys.executable)]


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.parts[-3].split(".")[:2])


def python_name(path: Path) -> str:
    """How a test's id names an interpreter."""
    if path == Path(sys.executable):
        return "own"
    return "distribution" if path.parts[1] == "usr" else path.parts[-3]


@contextlib.contextmanager
def running(
    argv: Sequence[str | Path], env: Mapping[str, str] | Mapping[bytes, bytes], **settings: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its stdin ends, in a session of its own."""
    process = subprocess.Popen(
        [str(word) for word in argv],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        **settings,
    )
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            process.wait(60.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()


@contextlib.contextmanager
def c_worker(
    program: Path,
    steps: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    before: Sequence[str | Path] = (),
    **settings: Any,
) -> Iterator[Told]:
    """worker.c, once it has done its steps."""
    whole = {**(env or {}), "REPORT": " ".join(names)}
    with running([*before, program, *steps], whole, **settings) as process:
        found: dict[str, str | None] = {}
        for line in iter(process.stdout.readline, b""):
            if line == b"ready\n":
                break
            name, equals, value = line.decode().rstrip("\n").partition("=")
            found[name] = value if equals else None
        else:
            raise AssertionError(f"{program} ended with {process.wait()}")
        yield Told(process.pid, found)


@contextlib.contextmanager
def python_worker(
    python: Path, plan: Mapping[str, Any], env: Mapping[str, str], **settings: Any
) -> Iterator[list[Told]]:
    """worker.py, once it and its children have done their steps; the main process first."""
    argv = [python, DATA / "worker.py", json.dumps(dict(plan))]
    with running(argv, env, **settings) as process:
        told = []
        for _ in range(1 + (plan.get("count", 1) if plan.get("start") else 0)):
            line = process.stdout.readline()
            assert line, f"{python} ended with {process.wait()}"
            one = json.loads(line)
            told.append(Told(one["pid"], one["found"], one["took"]))
        yield sorted(told, key=lambda one: one.pid != process.pid)


def as_nobody(folder: Path, python: str) -> Path:
    """A program that runs ``python`` as an ordinary user."""
    needs.root("another user")
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    script = folder / "python-as-nobody"
    script.write_text(
        f'#!/bin/sh\nexec {setpriv} --reuid=65534 --regid=65534 --clear-groups {python} "$@"\n'
    )
    script.chmod(0o755)
    return script
