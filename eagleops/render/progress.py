"""Progress on stderr: a line a stage, and under the running one what it waits for.

On a terminal the lines move; elsewhere each stage prints one line when it ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import attrs
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from eagleops.workflows.progress import Step

TITLES = {
    "look": "looking",
    "kill": "ending stale processes",
    "drain": "waiting for GPU memory to drain",
    "spawn": "starting the server",
    "ready": "waiting until the server is ready",
    "verify": "reading what the workers really run with",
    "wait": "waiting until nobody uses the GPUs",
    "stop": "ending the server's processes",
    "cool_down": "waiting until the GPUs have cooled down",
    "record": "recording what it runs on",
    "bench": "measuring",
    "load": "the engine's own benchmark",
    "send": "sending the message",
}
LOG_LINES = 4
BAR_WIDTH = 24


@attrs.define
class Stage:
    """One stage as it is drawn."""

    name: str
    began_s: float = attrs.field(factory=time.monotonic)
    took_s: float | None = None
    detail: str = ""
    log: list[str] = attrs.field(factory=list)
    gpus: list[Mapping[str, Any]] = attrs.field(factory=list)
    peak_mib: dict[int, int] = attrs.field(factory=dict)
    signalled: int = 0
    gone: int = 0

    def take(self, event: Mapping[str, Any]) -> None:
        """Takes in one event of the stage's operation."""
        kind = event.get("event")
        if kind == "gpus":
            self.gpus = list(event["gpus"])
            for gpu in self.gpus:
                used = gpu["used_mib"] or 0
                self.peak_mib[gpu["index"]] = max(used, self.peak_mib.get(gpu["index"], 0))
        elif kind == "log":
            self.log = (self.log + list(event["lines"]))[-LOG_LINES:]
        elif kind == "bench":
            self.detail, self.log = bench_line(event), bench_gpus(event)
        elif kind == "state":
            self.detail = event.get("detail") or event.get("state", "")
        elif kind in {"signalled", "gone"}:
            self.signalled += kind == "signalled"
            self.gone += kind == "gone"
            self.detail = f"{self.gone} gone"

    @property
    def is_heading(self) -> bool:
        """Whether it is a command's line above the stages that the command goes through."""
        return self.name.startswith("$")

    def line(self) -> Text:
        """The stage in one line."""
        if self.is_heading:
            return Text(self.name, style="bold")
        title = TITLES.get(self.name, self.name)
        seconds = time.monotonic() - self.began_s if self.took_s is None else self.took_s
        return Text.assemble(f"{title} ", (f"{seconds:.1f} s", "dim"), (f"  {self.detail}", "dim"))

    def body(self) -> RenderableType:
        """What the running stage waits for: a bar a GPU, or the log's last lines."""
        if self.gpus:
            grid = Table.grid(padding=(0, 1))
            for gpu in self.gpus:
                used, peak = gpu["used_mib"] or 0, self.peak_mib[gpu["index"]]
                bar = ProgressBar(total=max(peak, 1), completed=peak - used, width=BAR_WIDTH)
                grid.add_row(f"    GPU {gpu['index']}", bar, f"{used:,} MiB")
            return grid
        return Text("\n".join(f"    {line}" for line in self.log), style="dim", no_wrap=True)


def bench_line(event: Mapping[str, Any]) -> str:
    """Which run is measured, how far it is, and what the runs before it gave."""
    run, done = event["run"], event["done"]
    head = f"run {run} of {event['runs']}" if run > 0 else "warm-up"
    so_far = ", ".join(f"{tok_s:.1f}" for tok_s in done)
    return f"{head}, {event['tokens']} of {event['of']} tokens" + (
        f"  ({so_far} tok/s so far)" if done else ""
    )


def bench_gpus(event: Mapping[str, Any]) -> list[str]:
    """A line on the GPUs: the hottest, all their power, the slowest clock, who is throttled."""
    gpus = event["gpus"]
    if not gpus:
        return []
    told: dict[str, list[float]] = {
        name: [gpu[name] for gpu in gpus if gpu.get(name) is not None]
        for name in ("temperature_c", "power_w", "sm_clock_mhz")
    }
    parts = [f"{len(gpus)} GPUs"]
    if told["temperature_c"]:
        parts.append(f"up to {max(told['temperature_c']):.0f} °C")
    if told["power_w"]:
        parts.append(f"{sum(told['power_w']):,.0f} W")
    if told["sm_clock_mhz"]:
        parts.append(f"SM clock from {min(told['sm_clock_mhz']):,.0f} MHz")
    return [", ".join(parts)]


@attrs.define(eq=False)
class Display:
    """Draws steps as they come; use it as a context manager and hand it on as ``progress``."""

    console: Console
    _stages: list[Stage] = attrs.field(factory=list, init=False)
    _live: Live | None = attrs.field(default=None, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def __call__(self, step: Step) -> None:
        """Takes in one step of the workflow."""
        with self._lock:
            if not step.event:
                self._finish_stage()
                self._stages.append(Stage(step.stage))
            elif self._stages:
                self._stages[-1].take(step.event)

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self._live = Live(
                get_renderable=self._draw, console=self.console, refresh_per_second=12
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._finish_stage(failed=kind is not None)
        if self._live is not None:
            self._live.stop()

    def _finish_stage(self, *, failed: bool = False) -> None:
        if not self._stages or self._stages[-1].took_s is not None:
            return
        stage = self._stages[-1]
        stage.took_s = time.monotonic() - stage.began_s
        if failed:
            stage.detail = f"{stage.detail} (not finished)".strip()
        if self._live is None:
            lead = "" if stage.is_heading else "- "
            self.console.print(Text.assemble(lead, stage.line()))

    def _draw(self) -> RenderableType:
        parts: list[RenderableType] = []
        with self._lock:
            for stage in self._stages:
                if stage.is_heading:
                    parts.append(stage.line())
                elif stage.took_s is None:
                    parts += [Spinner("dots", stage.line(), style="cyan"), stage.body()]
                else:
                    parts.append(Text.assemble(("✓ ", "green"), stage.line()))
        return Group(*parts)
