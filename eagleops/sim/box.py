"""The embedded box as its users see it: made, reached, broken on purpose, and known."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from eagleops.errors import UsageError
from eagleops.sim import faults, kernel_log
from eagleops.sim.gpus import Gpu, read_gpus
from eagleops.sim.holders import Release, releases
from eagleops.sim.layout import DIRECTORY_VARIABLE, Identity, Layout, write_once, write_whole

if TYPE_CHECKING:
    from eagleops.transport.local import LocalTransport

GPUS = 8
GPUS_MOST = 32
# Where real devices and real kernel state live: a box must be nowhere near.
_FORBIDDEN = (Path("/dev"), Path("/proc"), Path("/sys"))


@attrs.frozen
class SimBox:
    """One box: a directory, and whatever processes were started in it.

    Attributes:
        directory: Absolute.
        gpus: How many GPUs it has.
        python: The interpreter that runs its stand-ins; ``python3`` on its PATH.
    """

    directory: Path
    gpus: int
    python: str

    @classmethod
    def prepare(cls, directory: Path | None = None, gpus: int = GPUS) -> SimBox:
        """Makes the box's directory, or completes one that is there.

        Several processes may do so at once, and while servers run on the box.

        Args:
            directory: ``$EAGLEOPS_SIM_DIR`` without one, or ``eagleops/sim`` in
                ``$XDG_STATE_HOME`` or ``~/.local/state``.
            gpus: 1 to 32.

        Raises:
            UsageError: if no box can be there.
        """
        root = Path(os.path.abspath(directory or _default_directory()))
        _check(root, gpus)
        try:
            _furnish(Layout(str(root)), gpus)
        except OSError as error:
            raise UsageError(
                problem=f"no embedded box can be at {root}: {error.strerror}",
                way_out="Name another folder by EAGLEOPS_SIM_DIR, or as `sim: {directory: PATH}` "
                "in hosts.yaml.",
            ) from None
        return cls(root, gpus, sys.executable)

    @property
    def layout(self) -> Layout:
        """Where things lie in the directory."""
        return Layout(str(self.directory))

    @property
    def options(self) -> dict[str, Any]:
        """What a session on this box is told of it: see :mod:`eagleops.remote.context`."""
        return {
            "device_prefix": f"{self.layout.devices}/nvidia",
            "nvml": False,
            "kernel_log": self.layout.kernel_log,
            "path": self._path,
            "state_home": self.layout.state,
        }

    @property
    def environment(self) -> dict[str, str]:
        """What a server launched on this box gets beside its profile's environment."""
        return {
            DIRECTORY_VARIABLE: str(self.directory),
            "PATH": self._path,
            "PYTHONPATH": self.layout.site,
        }

    def transport(self) -> LocalTransport:
        """The way in: processes of this machine that find the box's nvidia-smi, no other."""
        from eagleops.transport.local import LocalTransport

        environment = {
            **os.environ,
            "PATH": self._path,
            DIRECTORY_VARIABLE: str(self.directory),
        }
        return LocalTransport(where="the embedded box", env=environment)

    def read_gpus(self) -> list[Gpu]:
        """The GPUs as they are now: what the box's nvidia-smi would tell."""
        return read_gpus(self.layout)

    def releases(self) -> list[Release]:
        """When each holder that has died did so, and when its memory was truly free."""
        return releases(self.layout, faults.read(self.layout))

    def break_gpu(self, index: int, **fault: Any) -> None:
        """Sets the faults of one GPU, in place of those it had: none makes it whole.

        Raises:
            ValueError: for a fault that is not known: see :mod:`eagleops.sim.faults`.
        """
        broken = faults.read(self.layout)
        gpus = {**broken["gpus"], str(index): fault}
        self._set({**broken, "gpus": {k: v for k, v in gpus.items() if v}})

    def break_nvidia_smi(self, **fault: Any) -> None:
        """Sets the faults of nvidia-smi, in place of those it had: none makes it whole.

        Raises:
            ValueError: for a fault that is not known: see :mod:`eagleops.sim.faults`.
        """
        self._set({**faults.read(self.layout), "nvidia_smi": fault})

    def log_xid(
        self, index: int, xid: int, text: str = "simulated", *, pid: int | None = None
    ) -> None:
        """Has the kernel's log tell an Xid error of one GPU, now."""
        kernel_log.tell_xid(self.layout, index, xid, text, pid)

    def mend(self) -> None:
        """Ends every fault; what the kernel's log told stays told."""
        Path(self.layout.faults).unlink(missing_ok=True)

    @property
    def _path(self) -> str:
        return f"{self.layout.bin}:{os.environ.get('PATH', os.defpath)}"

    def _set(self, broken: faults.Faults) -> None:
        faults.check(broken)
        write_whole(self.layout.faults, json.dumps(broken, indent=1).encode())


def _default_directory() -> Path:
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named:
        return Path(named)
    state_home = Path(os.environ.get("XDG_STATE_HOME", ""))
    # The XDG specification: a relative path is to be ignored.
    base = state_home if state_home.is_absolute() else Path.home() / ".local" / "state"
    return base / "eagleops" / "sim"


def _furnish(layout: Layout, gpus: int) -> None:
    """Makes what is not there yet; several processes may do so at once."""
    for folder in (
        layout.devices,
        layout.bin,
        layout.site,
        layout.state,
        layout.holders,
        layout.deaths,
        layout.loads,
    ):
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    _write_identity(layout, gpus)
    for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{index}" for index in range(gpus))):
        Path(layout.devices, name).touch(mode=0o600)
    for path, text, mode in _programs(layout):
        _write_if_other(path, text, mode)
    kernel_log.begin(layout)


def _check(root: Path, gpus: int) -> None:
    real = root.resolve()
    if any(real.is_relative_to(forbidden) for forbidden in _FORBIDDEN):
        raise UsageError(
            problem=f"no embedded box can be at {real}: real devices are there",
            way_out=f"Name another folder by {DIRECTORY_VARIABLE}.",
        )
    if ":" in str(root):
        raise UsageError(
            problem=f"no embedded box can be at {root}: a colon ends a folder's name on PATH",
            way_out=f"Name another folder by {DIRECTORY_VARIABLE}.",
        )
    if not 1 <= gpus <= GPUS_MOST:
        raise UsageError(problem=f"an embedded box has 1 to {GPUS_MOST} GPUs, not {gpus}")


def _write_identity(layout: Layout, gpus: int) -> None:
    own = Identity(gpus, secrets.token_hex(3))
    found = Identity.decode(write_once(layout.identity_file, own.encode()))
    if found.gpus != gpus:
        write_whole(layout.identity_file, found._replace(gpus=gpus).encode())


def _write_if_other(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(exist_ok=True)
    data = text.encode()
    if not path.exists() or path.read_bytes() != data:
        write_whole(str(path), data, mode)


def _programs(layout: Layout) -> list[tuple[Path, str, int]]:
    """The files that make stand-ins of this package's modules."""
    python = shlex.quote(sys.executable)
    # The real package would bring its dependencies along; here are its simulated parts alone.
    package = f"__path__ = [{str(Path(__file__).parents[1])!r}]\n"
    query = (
        f"import sys; sys.path.insert(0, {layout.site!r}); "
        f"from eagleops.sim.nvidia_smi.main import main; main({layout.root!r})"
    )
    shell = '#!/bin/sh\n# Simulated: see eagleops.sim.\nexec {} "$@"\n'
    smi = shell.format(f"{python} -I -S -c {shlex.quote(query)}")
    vllm = shell.format(f"{python} -m vllm.entrypoints.cli.main")
    programs = [
        (Path(layout.bin, "nvidia-smi"), smi, 0o755),
        (Path(layout.bin, "vllm"), vllm, 0o755),
        *((Path(layout.bin, name), shell.format(python), 0o755) for name in ("python", "python3")),
        (Path(layout.site, "eagleops", "__init__.py"), package, 0o644),
    ]
    engines = {
        "sglang/__init__.py": ("sglang", "__version__"),
        "sglang/launch_server.py": ("sglang.main", "main"),
        "sglang/bench_serving.py": ("sglang.bench_serving", "main"),
        "vllm/__init__.py": ("vllm", "__version__"),
        "vllm/entrypoints/__init__.py": None,
        "vllm/entrypoints/cli/__init__.py": None,
        "vllm/entrypoints/cli/main.py": ("vllm.main", "serve_command"),
        "vllm/entrypoints/openai/__init__.py": None,
        "vllm/entrypoints/openai/api_server.py": ("vllm.main", "api_server"),
    }
    for name, entry in engines.items():
        programs.append((Path(layout.site, name), _module(entry), 0o644))
    return programs


def _module(entry: tuple[str, str] | None) -> str:
    """A stand-in module. A spawned worker imports the main one again: it must cost nothing."""
    head = '"""Simulated: see eagleops.sim."""\n'
    if entry is None:
        return head
    module, name = entry
    imported = f"from eagleops.sim.{module} import {name}\n"
    if name == "__version__":
        return head + imported
    return f'{head}\nif __name__ == "__main__":\n    {imported}\n    {name}()\n'
