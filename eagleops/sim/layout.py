"""Where things lie in a box's directory, and what every process on the box may ask of it.

Paths are plain strings here and in the modules that nvidia-smi is made of: pathlib and json
would double the time that one query takes.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

# The box that a process belongs to, and its profile's `sim:` section as JSON.
DIRECTORY_VARIABLE = "EAGLEOPS_SIM_DIR"
PROFILE_VARIABLE = "EAGLEOPS_SIM_PROFILE"


class Identity(NamedTuple):
    """What makes a box this one.

    Attributes:
        gpus: How many it has.
        serial: Six hex digits of the box's own, in each GPU's UUID.
    """

    gpus: int
    serial: str

    def encode(self) -> bytes:
        """As it stands in its file."""
        return f"{self.gpus} {self.serial}\n".encode()

    @classmethod
    def decode(cls, data: bytes) -> Identity:
        """Reads what :meth:`encode` wrote."""
        gpus, serial = data.decode().split()
        return cls(int(gpus), serial)


class Layout(NamedTuple):
    """The paths in a box's directory.

    Attributes:
        root: The directory itself, absolute.
    """

    root: str

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
        return cls(root)

    @property
    def devices(self) -> str:
        """Folder of the plain files that stand for GPU device files."""
        return f"{self.root}/dev"

    @property
    def bin(self) -> str:
        """Folder of the programs that stand first on the box's PATH."""
        return f"{self.root}/bin"

    @property
    def site(self) -> str:
        """Folder of the stand-in packages ``sglang`` and ``vllm``."""
        return f"{self.root}/site"

    @property
    def state(self) -> str:
        """The box's state home: where launched servers keep their state."""
        return f"{self.root}/state"

    @property
    def holders(self) -> str:
        """Folder with a file for each process that holds GPU memory."""
        return f"{self.root}/holders"

    @property
    def deaths(self) -> str:
        """Folder with the time of death of each holder that has died."""
        return f"{self.root}/deaths"

    @property
    def loads(self) -> str:
        """Folder with a file for each server that decodes tokens."""
        return f"{self.root}/loads"

    @property
    def faults(self) -> str:
        """The file that tells what is broken: see :mod:`eagleops.sim.faults`."""
        return f"{self.root}/faults.json"

    @property
    def kernel_log(self) -> str:
        """The file that stands for the kernel's log: see :mod:`eagleops.sim.kernel_log`."""
        return f"{self.root}/kmsg"

    @property
    def identity_file(self) -> str:
        """The file that tells :meth:`identity`."""
        return f"{self.root}/box"

    def identity(self) -> Identity:
        """How many GPUs the box has, and their serial."""
        return Identity.decode(read(self.identity_file))


def read(path: str) -> bytes:
    """What a file holds.

    Raises:
        OSError: as open.
    """
    with open(path, "rb", 0) as file:
        return file.read()


def names(folder: str) -> list[str]:
    """The files of a folder in order, without those that are being written."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def write_whole(path: str, data: bytes, mode: int = 0o644) -> None:
    """Writes a file so that a reader sees all of it or what was there before."""
    os.replace(_draft(path, data, mode), path)


def write_once(path: str, data: bytes) -> bytes:
    """Writes a file that has one truth: the first writer's.

    Returns:
        What the file holds, whoever wrote it.
    """
    draft = _draft(path, data, 0o644)
    try:
        os.link(draft, path)
    except FileExistsError:
        return read(path)
    finally:
        os.unlink(draft)
    return data


def remove(path: str) -> None:
    """Removes a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _draft(path: str, data: bytes, mode: int) -> str:
    folder, _, name = path.rpartition("/")
    # Unlike any other's, in this process and in others: the number is a random one.
    draft = f"{folder}/.{name}.{os.getpid()}.{os.urandom(4).hex()}"
    with open(draft, "xb", 0) as file:
        file.write(data)
    os.chmod(draft, mode)
    return draft
