"""Sampling: the GPUs' state, heard over a session of its own while something else goes on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from typing import Any

from eagleops.errors import EagleError
from eagleops.machine import Machine
from eagleops.measuring.telemetry import Sample, samples_of

# The operation tells its samples each half second: so long the last ones may take, and more.
LAST_WORD_S = 5.0


class Sampling:
    """Samples a machine's GPUs on a thread, from entering the context until it is left.

    What keeps it from sampling costs no measurement: :attr:`problem` tells it.

    Args:
        machine: Which.
        interval_s: From one sample to the next.

    Attributes:
        problem: Why there are no samples, or no more; empty where there are.
        source: ``nvml``, ``nvidia-smi`` or ``none``; empty before it began.
    """

    def __init__(self, machine: Machine, *, interval_s: float = 0.1) -> None:
        self.problem = ""
        self.source = ""
        self._machine = machine
        self._interval_s = interval_s
        self._heard: list[tuple[float, Mapping[str, Any]]] = []
        self._begun = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="telemetry", daemon=True)

    def __enter__(self) -> Sampling:
        self._thread.start()
        self._begun.wait(LAST_WORD_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Hears the last samples and ends."""
        self._over.set()
        self._thread.join(LAST_WORD_S)

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples so far."""
        return samples_of(list(self._heard))

    @property
    def latest(self) -> tuple[Mapping[str, Any], ...]:
        """The latest sample's GPUs; empty before the first."""
        # Its batch alone is read: this is asked many times a run.
        for at_s, event in reversed(self._heard):
            if event["event"] == "samples" and event["samples"]:
                found = samples_of([self._heard[0], (at_s, event)])
                return found[-1].gpus if found else ()
        return ()

    def _listen(self) -> None:
        try:
            stream = self._machine.stream("telemetry", interval_s=self._interval_s)
            with contextlib.closing(stream) as events:  # type: ignore[type-var]
                for event in events:
                    self._take(event)
                    if self._over.is_set() and event["event"] != "began":
                        return
        except EagleError as error:
            self.problem = str(error)
        finally:
            self._begun.set()

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "done":
            self.problem = event["result"]["problem"] or "it ended by itself"
            return
        self._heard.append((time.monotonic(), event))
        if event["event"] == "began":
            self.source = event["source"]
        self.problem = event.get("problem") or self.problem
        self._begun.set()
