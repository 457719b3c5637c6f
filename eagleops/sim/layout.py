"""Where things lie in a box's directory, and what every process on the box may ask of it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import NamedTuple

# The box that a process belongs to, and its profile's `sim:` section as JSON.
DIRECTORY_VARIABLE = "EAGLEOPS_SIM_DIR"
PROFILE_VARIABLE = "EAGLEOPS_SIM_PROFILE"


class Layout(NamedTuple):
    """The paths in a box's directory.

    Attributes:
        root: The directory itself, absolute.
    """

    root: Path

    @classmethod
    def of_this_process(cls) -> Layout:
        """The box that this process was started in.

        Raises:
            SystemExit: if it was started in none: a stand-in must never be taken for a
                real engine on a real machine.
        """
        root = os.environ.get(DIRECTORY_VARIABLE)
        if not root:
            raise SystemExit(
                f"This is a simulated engine: it runs in eagleops' embedded box alone, and "
                f"{DIRECTORY_VARIABLE} names none."
            )
        return cls(Path(root))

    @property
    def devices(self) -> Path:
        """Folder of the plain files that stand for GPU device files."""
        return self.root / "dev"

    @property
    def bin(self) -> Path:
        """Folder of the programs that stand first on the box's PATH."""
        return self.root / "bin"

    @property
    def site(self) -> Path:
        """Folder of the stand-in packages ``sglang`` and ``vllm``."""
        return self.root / "site"

    @property
    def state(self) -> Path:
        """The box's state home: where launched servers keep their state."""
        return self.root / "state"

    @property
    def holders(self) -> Path:
        """Folder with a file for each process that holds GPU memory."""
        return self.root / "holders"

    @property
    def deaths(self) -> Path:
        """Folder with the time of death of each holder that has died."""
        return self.root / "deaths"

    @property
    def loads(self) -> Path:
        """Folder with a file for each server that decodes tokens."""
        return self.root / "loads"

    @property
    def faults(self) -> Path:
        """The file that tells what is broken: see :mod:`eagleops.sim.faults`."""
        return self.root / "faults.json"

    @property
    def identity(self) -> Path:
        """The file that tells how many GPUs there are, and their serial number."""
        return self.root / "box.json"

    def gpu_count(self) -> int:
        """How many GPUs the box has."""
        count: int = json.loads(self.identity.read_bytes())["gpus"]
        return count

    def serial(self) -> str:
        """Six hex digits of the box's own, in each GPU's UUID."""
        serial: str = json.loads(self.identity.read_bytes())["serial"]
        return serial


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Writes a file so that a reader sees all of it or what was there before."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    draft.write_bytes(data)
    draft.chmod(mode)
    draft.replace(path)


def write_once(path: Path, data: bytes) -> bytes:
    """Writes a file that has one truth: the first writer's.

    Returns:
        What the file holds, whoever wrote it.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    draft.write_bytes(data)
    try:
        os.link(draft, path)
    except FileExistsError:
        return path.read_bytes()
    finally:
        draft.unlink()
    return data
