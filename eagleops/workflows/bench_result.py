"""A bench's figures: what was measured, what the machine did meanwhile, and how it is shown."""

from __future__ import annotations

import statistics
from typing import Any

import attrs

from eagleops.measuring.speculation import NOT_REPORTED, Cycles, together
from eagleops.measuring.telemetry import GpuWindow, Sample
from eagleops.statistics import Interval, median_interval
from eagleops.streaming.reply import Reply
from eagleops.view import Cell, Column, Table, Text, Tone, View
from eagleops.workflows.reach import Route

ENOUGH_RUNS = 6


@attrs.frozen
class Run:
    """One measured reply.

    Attributes:
        number: From 1.
        begun_utc: By this client's clock, RFC 3339.
        cycles: Its speculative cycles; None where the engine told none.
        gpus: What each GPU did from the request to the last token; empty without telemetry.
        throttling: Each slowdown, in words.
        off: What else was off, in words.
    """

    number: int
    begun_utc: str
    reply: Reply
    cycles: Cycles | None
    gpus: tuple[GpuWindow, ...] = ()
    throttling: tuple[str, ...] = ()
    off: tuple[str, ...] = ()

    @property
    def tok_s(self) -> float:
        """Decode speed: tokens after the first event, by the time from it to the last."""
        return self.reply.tok_s or 0.0

    @property
    def ttft_ms(self) -> float:
        """From sending the request to its first token, the network in it."""
        return 1000 * self.reply.first_s

    @property
    def cycle_ms(self) -> float | None:
        """What one speculative cycle took."""
        return None if self.cycles is None else self.cycles.cycle_ms(self.reply.decode_s)

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON."""
        return {
            "number": self.number,
            "begun_utc": self.begun_utc,
            "tok_s": self.tok_s,
            "ttft_ms": self.ttft_ms,
            "tpot_ms": 1000 / self.tok_s,
            "accept_length": None if self.cycles is None else self.cycles.accept_length,
            "verify_cycles": None if self.cycles is None else self.cycles.cycles,
            "cycle_ms": self.cycle_ms,
            "reply": attrs.asdict(self.reply),
            "throttled": bool(self.throttling),
            "notes": [*self.throttling, *self.off],
        }


@attrs.frozen
class Conditions:
    """How it was measured.

    Attributes:
        tokens: Asked of each reply.
        prompt: Its name; ``prompt_tokens`` as the server counts it, None where it does not.
        flushed: Whether the engine's caches and counters were cleared before each run.
        sampled_by: ``nvml``, ``nvidia-smi`` or ``none``; ``sample_hz`` how often a second.
    """

    tokens: int
    warmups: int
    prompt: str
    prompt_tokens: int | None
    route: Route
    flushed: bool
    sampled_by: str = ""
    sample_hz: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The conditions as JSON."""
        return attrs.asdict(self)


@attrs.frozen
class BenchResult:
    """Single-stream decode speed of one server.

    Attributes:
        notes: What was off from before the first run.
        telemetry: Every sample of the server's GPUs, the time between the runs included.
        run_id: Its number in the ledger; None where it was not recorded.
        notice: Why it was not, or what was done to the ledger's file.
    """

    host: str
    server: str
    profile: str
    engine: str
    launch_id: str
    measured: tuple[Run, ...]
    conditions: Conditions
    notes: tuple[str, ...] = ()
    telemetry: tuple[Sample, ...] = attrs.field(default=(), repr=False)
    run_id: int | None = None
    notice: str = ""

    @property
    def ok(self) -> bool:
        """It was measured. What was off is told, and is no failure of the measurement."""
        return True

    @property
    def tok_s(self) -> Interval:
        """Tokens per second of the runs."""
        return median_interval([run.tok_s for run in self.measured])

    @property
    def ttft_ms(self) -> float:
        """The median time to the first token."""
        return statistics.median(run.ttft_ms for run in self.measured)

    @property
    def tpot_ms(self) -> float:
        """The median time per output token."""
        return statistics.median(1000 / run.tok_s for run in self.measured)

    @property
    def cycles(self) -> Cycles | None:
        """The speculative cycles of all runs; None where the engine told none."""
        return together(run.cycles for run in self.measured)

    @property
    def cycle_ms(self) -> float | None:
        """The median time of a speculative cycle."""
        taken = [run.cycle_ms for run in self.measured if run.cycle_ms is not None]
        return statistics.median(taken) if taken else None

    @property
    def throttled_runs(self) -> int:
        """In how many runs a GPU was slowed down."""
        return sum(bool(run.throttling) for run in self.measured)

    def to_dict(self) -> dict[str, Any]:
        """The result as the ``bench --json`` document's body."""
        cycles = self.cycles
        return {
            "ok": self.ok,
            "host": self.host,
            "server": self.server,
            "profile": self.profile,
            "engine": self.engine,
            "tok_s": self.tok_s.to_dict(),
            "ttft_ms": self.ttft_ms,
            "tpot_ms": self.tpot_ms,
            "accept_length": None if cycles is None else cycles.accept_length,
            "accept_length_source": NOT_REPORTED if cycles is None else cycles.source,
            "verify_cycles": None if cycles is None else cycles.cycles,
            "cycle_ms": self.cycle_ms,
            "runs": len(self.measured),
            "throttled_runs": self.throttled_runs,
            "run_id": self.run_id,
            "notice": self.notice or None,
            "conditions": self.conditions.to_dict(),
            "measurements": [run.to_dict() for run in self.measured],
            "notes": list(self.notes),
        }

    def view(self) -> View:
        """A table of the runs, one of the figures with their sources, and what was off."""
        off = [*self.notes]
        for run in self.measured:
            off += [*run.throttling, *run.off]
        notes = [Text(note, Tone.WARNING) for note in dict.fromkeys(off)]
        if self.notice:
            notes.append(Text(self.notice, Tone.WARNING))
        return View((self._run_table(), self._figure_table()), self._conclusion(), tuple(notes))

    def _repr_html_(self) -> str:
        return self.view().to_html()

    def _run_table(self) -> Table:
        headings = ("run", "tok/s", "TTFT ms", "accept length", "cycle ms", "°C", "W", "SM MHz", "")
        columns = tuple(Column(h, "right" if h else "left", wrap=not h) for h in headings)
        stream = f"one stream of {self.conditions.tokens} tokens"
        title = f"{self.host}: {self.server} ({self.profile}), {stream}"
        return Table(columns, tuple(map(_run_row, self.measured)), title=title)

    def _figure_table(self) -> Table:
        cycles = self.cycles
        none = "not reported"
        speed = self.tok_s
        rows = (
            (
                "decode speed",
                f"{speed.median:.2f} tok/s",
                f"median; {_interval(speed)}; engine's token counts, first to last token",
            ),
            ("time to first token", f"{self.ttft_ms:.1f} ms", f"median; {self._network()}"),
            ("time per output token", f"{self.tpot_ms:.2f} ms", "median"),
            (
                "accept length",
                none if cycles is None else f"{cycles.accept_length:.3f}",
                "the engine counts no verify cycles" if cycles is None else cycles.source,
            ),
            (
                "cycle time",
                none if self.cycle_ms is None else f"{self.cycle_ms:.2f} ms",
                "" if cycles is None else f"decode time / verify cycles ({cycles.cycles} in all)",
            ),
        )
        columns = (Column("figure", wrap=False), Column("value", "right", wrap=False))
        return Table((*columns, Column("how")), rows, title="Figures")

    def _network(self) -> str:
        route = self.conditions.route
        if route.round_trip_ms is None:
            return route.name
        return f"{route.name}, of it {route.round_trip_ms:.1f} ms round trip ({route.asked})"

    def _conclusion(self) -> Text:
        speed, recorded = self.tok_s, ""
        if self.run_id is not None:
            recorded = f", recorded as run {self.run_id}"
        throttled = ""
        if self.throttled_runs:
            throttled = f", {self.throttled_runs} of {len(self.measured)} runs throttled"
        head = f"{self.host}: {self.server} {speed.median:.1f} tok/s ({_interval(speed)})"
        tone = Tone.WARNING if throttled else Tone.GOOD
        return Text(head + throttled + recorded, tone)


def _interval(speed: Interval) -> str:
    count = len(speed.samples)
    if count == 1:
        return "one run: no interval"
    percent = f"{100 * speed.confidence:.3g} % interval {speed.low:.2f} to {speed.high:.2f}"
    few = "" if count >= ENOUGH_RUNS else f", all that {count} runs can give"
    return f"{percent} over {count} runs{few}"


def _run_row(run: Run) -> tuple[Cell, ...]:
    def highest(name: str) -> str:
        return _number([gpu.highs[name] for gpu in run.gpus if name in gpu.highs], max)

    clocks = [gpu.lows["sm_clock_mhz"] for gpu in run.gpus if "sm_clock_mhz" in gpu.lows]
    power = [gpu.medians["power_w"] for gpu in run.gpus if "power_w" in gpu.medians]
    marked = "throttled" if run.throttling else "see below" if run.off else ""
    return (
        str(run.number),
        f"{run.tok_s:.2f}",
        f"{run.ttft_ms:.1f}",
        "" if run.cycles is None else f"{run.cycles.accept_length:.3f}",
        "" if run.cycle_ms is None else f"{run.cycle_ms:.2f}",
        highest("temperature_c"),
        _number(power, sum),
        _number(clocks, min),
        Text(marked, Tone.WARNING if marked else Tone.PLAIN),
    )


def _number(values: list[float], of: Any) -> str:
    return f"{of(values):,.0f}" if values else "?"
