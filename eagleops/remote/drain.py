"""Operation ``drain``: wait until GPU memory is at its idle level, and stays there.

A process can be gone from /proc before its memory is: on two H200s memory stayed whole for
0.1 s after SIGKILL, fell GPU by GPU, and was free at 0.32 to 0.34 s. One low reading proves
little, so a number of them in a row is asked for.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Generator, List, Mapping, Optional, Sequence

from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.gpu_facts import Facts, Reading
from eagleops.remote.gpu_processes import read_processes
from eagleops.remote.gpus import Gpus

Event = Dict[str, Any]

# Left of the request's time limit for the last look and the way back.
RESERVE_S = 0.5
# One look at the memory through nvidia-smi takes 40 ms; one that hangs must not take all.
LOOK_LIMIT_S = 5.0
# After so many looks in a row without one GPU, there is nothing to wait for.
BLIND_LOOKS = 5
EVENT_INTERVAL_S = 0.5


def drain(
    context: Context,
    idle_mib: Dict[str, int],
    timeout_s: float = 60.0,
    readings: int = 3,
    interval_s: float = 0.02,
) -> Generator[Event, None, Dict[str, Any]]:
    """Waits until each named GPU has settled at or under its idle level.

    Of a GPU whose memory is not told (unified memory), what the processes in its list use is
    summed instead. GPUs that ``idle_mib`` does not name are reported, not waited for.

    Args:
        context: The operation's surroundings.
        idle_mib: The idle level in MiB by the GPU's index.
        timeout_s: After that long the result says what is still held, and by whom.
        readings: How many in a row must be at or under the level.
        interval_s: From the begin of one reading to that of the next.

    Returns:
        ``drained``; ``drain_s``, seconds to the first of the settled readings, None if there
        is none; ``elapsed_s``; ``gpus`` in full; ``holders``, where it did not drain; and
        ``problem``, what the driver said at last.

    Raises:
        Failure: ``no_idle_level`` if no GPU is named, ``gpus_unreadable``.
    """
    if not idle_mib:
        raise Failure("no_idle_level", "no GPU to wait for: idle_mib names none")
    begun_s = time.monotonic()  # before the driver is opened, which takes its time too
    with Gpus(context) as gpus:
        levels = {int(index): mib for index, mib in idle_mib.items()}
        wait = _Wait(context, gpus, levels, begun_s)
        yield from wait.settle(timeout_s, readings, interval_s)
        return wait.result()


def is_idle(gpu: Mapping[str, Any], level_mib: int) -> bool:
    """Whether a GPU is at its idle level; by its list of processes where no memory is told."""
    if gpu["used_mib"] is not None:
        return bool(gpu["used_mib"] <= level_mib)
    used_mib = [process["used_mib"] for process in gpu["processes"]]
    return None not in used_mib and sum(used_mib) <= level_mib


def all_idle(gpus: Sequence[Mapping[str, Any]], levels: Mapping[int, int]) -> bool:
    """Whether every GPU that ``levels`` names is there, and idle."""
    by_index = {gpu["index"]: gpu for gpu in gpus}
    return all(
        index in by_index and is_idle(by_index[index], level) for index, level in levels.items()
    )


class _Wait:
    """One drain: the levels, and how long all has been idle."""

    def __init__(
        self, context: Context, gpus: Gpus, levels: Mapping[int, int], begun_s: float
    ) -> None:
        self._context = context
        self._gpus = gpus
        self._levels = levels
        self._begun_s = begun_s
        self._settled_s: Optional[float] = None
        self._told_s = -EVENT_INTERVAL_S
        self._told: List[Event] = []

    def settle(
        self, timeout_s: float, readings: int, interval_s: float
    ) -> Generator[Event, None, None]:
        """Looks again and again until settled or out of time."""
        limit_s = min(timeout_s, self._context.remaining_s() - RESERVE_S)
        first_s, in_a_row, blind = 0.0, 0, 0
        while True:
            looked_s = self._elapsed_s()
            reading = self._look(min(LOOK_LIMIT_S, max(limit_s - looked_s, 1.0)))
            seen_s = self._elapsed_s()
            yield from self._tell(reading.gpus)
            blind = 0 if reading.gpus else blind + 1
            if blind >= BLIND_LOOKS:
                raise _unreadable(reading)
            idle = all_idle(reading.gpus, self._levels)
            first_s = first_s if idle and in_a_row else seen_s
            in_a_row = in_a_row + 1 if idle else 0
            if in_a_row >= readings:
                self._settled_s = first_s
                return
            pause_s = max(0.0, looked_s + interval_s - self._elapsed_s())
            if self._elapsed_s() + pause_s >= limit_s:
                return
            self._context.sleep(pause_s)

    def result(self) -> Dict[str, Any]:
        """What the operation returns."""
        reading = self._gpus.read()
        drained = self._settled_s is not None
        holders = [] if drained else read_processes(self._context, reading)[0]
        return {
            "drained": drained,
            "drain_s": self._settled_s,
            "elapsed_s": self._elapsed_s(),
            "gpus": reading.gpus,
            "holders": holders,
            "problem": reading.problem,
        }

    def _look(self, limit_s: float) -> Reading:
        reading = self._gpus.memory(limit_s)
        awaited = [gpu for gpu in reading.gpus if gpu["index"] in self._levels]
        untold = any(gpu["used_mib"] is None for gpu in awaited)
        return self._gpus.read() if untold else reading

    def _tell(self, gpus: Sequence[Facts]) -> Generator[Event, None, None]:
        """An event when something changed, and from time to time when nothing does."""
        told = [
            {
                "index": gpu["index"],
                "used_mib": gpu["used_mib"],
                "idle_mib": self._levels.get(gpu["index"]),
            }
            for gpu in gpus
        ]
        elapsed_s = self._elapsed_s()
        if told != self._told or elapsed_s - self._told_s >= EVENT_INTERVAL_S:
            self._told, self._told_s = told, elapsed_s
            yield {"event": "gpus", "gpus": told, "elapsed_s": elapsed_s}

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._begun_s


def _unreadable(reading: Reading) -> Failure:
    return Failure(
        "gpus_unreadable",
        "no GPU can be read: {}".format(reading.problem or "the driver lists none"),
        way_out="Nothing can be said of GPU memory until the driver answers again.",
    )
