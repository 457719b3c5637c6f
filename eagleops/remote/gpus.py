"""The GPUs of this machine, through whichever source answers: NVML, else nvidia-smi."""

from __future__ import annotations

import queue
import re
import threading
import time
from typing import Any, Callable, List, Optional, Tuple, TypeVar

from eagleops.remote import command
from eagleops.remote.context import DEFAULT_OPTIONS, Context
from eagleops.remote.failure import Failure
from eagleops.remote.gpu_facts import Reading
from eagleops.remote.nvidia_smi import NvidiaSmi
from eagleops.remote.nvml import Nvml, NvmlUnavailable

Answer = TypeVar("Answer")

LIMIT_S = 10.0
POLL_S = 0.05
INFORMATION_FILE = "/proc/driver/nvidia/gpus/{}/information"

HANGS = (
    "the driver did not answer within {:g} s: it hangs. Look for Xid in the host's kernel log "
    "(dmesg | grep -i xid) and for processes in state D; only a reboot of the host may help."
)


def within(context: Context, limit_s: float, call: Callable[[], Answer]) -> Answer:
    """``call()``'s result, if it comes within ``limit_s`` seconds.

    A driver whose GPU is lost may never return from a call, and no signal ends that call:
    its thread is left behind.

    Raises:
        Failure: ``no_answer``.
        Cancelled: if the operation was called off meanwhile.
    """
    results: "queue.Queue[Tuple[bool, Any]]" = queue.Queue()

    def answer() -> None:
        try:
            results.put((True, call()))
        except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
            results.put((False, error))

    threading.Thread(target=answer, daemon=True).start()
    deadline = time.monotonic() + limit_s
    while True:
        left_s = deadline - time.monotonic()
        try:
            good, result = results.get(timeout=max(0.0, min(POLL_S, left_s)))
        except queue.Empty:
            context.check()
            if left_s <= 0:
                raise Failure("no_answer", HANGS.format(limit_s)) from None
            continue
        if good:
            return result  # type: ignore[no-any-return]
        raise result


class Gpus:
    """The GPUs, opened for one operation. Use it in a ``with`` statement.

    While it is open it may hold the GPUs' device files itself, as any reader of NVML does.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._nvml: Optional[Nvml] = None
        self._smi: Optional[NvidiaSmi] = None
        self._refusals: List[str] = []
        self._library_found = bool(context.options["nvml"])
        if context.options["nvml"]:
            self._open_nvml()
        if self._nvml is None:
            self._find_nvidia_smi()

    @property
    def source(self) -> str:
        """``nvml``, ``nvidia-smi`` or ``none``."""
        if self._nvml is not None:
            return "nvml"
        return "none" if self._smi is None else "nvidia-smi"

    @property
    def driver_found(self) -> bool:
        """Whether anything of a driver is here: its library, or nvidia-smi."""
        return self._smi is not None or self._library_found

    def __enter__(self) -> "Gpus":
        return self

    def __exit__(self, *_: object) -> None:
        if self._nvml is not None:
            self._nvml.close()

    def read(self) -> Reading:
        """Every fact of every GPU; ``minor`` from /proc where the source does not tell it."""
        if self._smi is not None:
            reading = self._smi.read()
        else:
            reading = self._bounded(lambda nvml: nvml.read(), LIMIT_S)
        if self._context.options["device_prefix"] == DEFAULT_OPTIONS["device_prefix"]:
            for gpu in reading.gpus:
                if gpu["minor"] is None and gpu["bus_id"] is not None:
                    gpu["minor"] = read_minor(gpu["bus_id"])
        return reading

    def memory(self, limit_s: float = LIMIT_S) -> Reading:
        """``used_mib`` of each GPU: tens of microseconds through NVML, else one nvidia-smi."""
        if self._smi is not None:
            return self._smi.memory(limit_s)
        return self._bounded(lambda nvml: nvml.memory(), limit_s)

    def state(self, limit_s: float = LIMIT_S) -> Reading:
        """What changes while a GPU works, processes left out: for many readings in a row."""
        if self._smi is not None:
            return self._smi.state(limit_s)
        return self._bounded(lambda nvml: nvml.state(), limit_s)

    def _open_nvml(self) -> None:
        try:
            self._nvml = within(self._context, LIMIT_S, Nvml)
        except NvmlUnavailable as unavailable:
            self._refusals.append(str(unavailable))
            self._library_found = bool(unavailable.driver_said)
        except Failure as failure:
            self._refusals.append(failure.message)

    def _find_nvidia_smi(self) -> None:
        program = command.find(self._context, "nvidia-smi")
        if program is None:
            self._refusals.append("no nvidia-smi on PATH")
        else:
            self._smi = NvidiaSmi(self._context, program)

    def _bounded(self, ask: Callable[[Nvml], Reading], limit_s: float) -> Reading:
        reader = self._nvml
        if reader is None:
            return Reading([], "; ".join(self._refusals))
        try:
            return within(self._context, limit_s, lambda: ask(reader))
        except Failure as failure:
            return Reading([], failure.message)


def parse_minor(text: str) -> Optional[int]:
    """The device minor in the text of /proc/driver/nvidia/gpus/BUS-ID/information."""
    found = re.search(r"^Device Minor:\s*([0-9]{1,4})\s*$", text, re.MULTILINE)
    return int(found.group(1)) if found else None


def read_minor(bus_id: str) -> Optional[int]:
    """The number in the name of a GPU's device file, or None where /proc does not tell it.

    Args:
        bus_id: As nvidia-smi has it (``00000000:01:00.0``); /proc has a domain of four digits.
    """
    found = re.fullmatch(r"(?:0000)?([0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])", bus_id)
    if found is None:
        return None
    try:
        path = INFORMATION_FILE.format(found.group(1).lower())
        with open(path, encoding="utf-8", errors="replace") as file:
            return parse_minor(file.read())
    except OSError:
        return None
