"""Bench: how fast one stream of tokens comes, and what the machine did meanwhile."""

from __future__ import annotations

import contextlib
import time

import attrs

from eagleops.errors import CannotTell, CheckFailed, UsageError
from eagleops.ledger.run import now_utc
from eagleops.machine import Machine
from eagleops.measuring import prompts
from eagleops.measuring.prompts import Prompt
from eagleops.measuring.speculation import Cycles
from eagleops.measuring.telemetry import Sample, between, windows
from eagleops.streaming.dialects import Reader
from eagleops.streaming.http import STALL_LIMIT_S, HttpClient
from eagleops.streaming.reply import Reply
from eagleops.workflows.bench_engine import Counting, counting_of
from eagleops.workflows.bench_notes import noted
from eagleops.workflows.bench_result import BenchResult, Conditions, Run
from eagleops.workflows.bench_subject import Subject, look
from eagleops.workflows.progress import Progress, Step, unwatched
from eagleops.workflows.reach import Route, measured, reached
from eagleops.workflows.sampling import Sampling

TELL_INTERVAL_S = 0.2
FEWEST_TOKENS = 2
# A machine that is very busy may hold a short stream back once, hardly three times.
TRIES = 3


@attrs.frozen
class Settings:
    """What is asked of the server.

    Attributes:
        runs: Replies that count.
        tokens: Of each reply.
        warmups: Replies before that do not count.
        stall_s: How long no token may come.
    """

    runs: int = 5
    tokens: int = 256
    warmups: int = 1
    prompt: Prompt = attrs.field(factory=lambda: prompts.prompt(prompts.DEFAULT))
    stall_s: float = STALL_LIMIT_S

    def check(self) -> None:
        """Refuses what cannot be measured.

        Raises:
            UsageError: for no run, or fewer than two tokens.
        """
        if self.runs < 1 or self.warmups < 0:
            raise UsageError(problem=f"a bench needs a run that counts, not {self.runs}")
        if self.tokens < FEWEST_TOKENS:
            raise UsageError(problem=f"a speed needs two tokens to lie between, not {self.tokens}")


def bench(
    machine: Machine,
    name: str,
    settings: Settings | None = None,
    *,
    sample: bool = True,
    interval_s: float = 0.1,
    direct: bool = False,
    api_key: str | None = None,
    progress: Progress = unwatched,
) -> BenchResult:
    """Measures the server ``name``: one request at a time, greedy, each to its last token.

    Args:
        machine: Where it runs.
        name: The server's.
        settings: What is asked of it.
        sample: Watch the GPUs meanwhile, over a second session.
        interval_s: From one look at them to the next.
        direct: Connect to the machine's address, not through its transport.
        api_key: The server's, if it wants one.
        progress: Told of each run.

    Raises:
        UsageError: for settings that cannot be measured.
        CheckFailed: if there is no such server, it does not serve, it was started with
            simulated acceptance, or it broke a reply off (RequestFailed).
        CannotTell: if the server counts no tokens.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    asked = settings or Settings()
    asked.check()
    progress(Step("bench"))
    subject = look(machine, name)
    sampling = Sampling(machine, interval_s=interval_s) if sample else None
    with reached(machine, name, subject.port, direct=direct, api_key=api_key) as (client, way):
        counting = counting_of(subject.server.engine, client)
        route = measured(client, way, counting.idle_path)
        bencher = _Bencher(client, counting, asked, sampling, progress)
        with sampling or contextlib.nullcontext():
            heard = bencher.run()
    samples = tuple(map(subject.own, sampling.samples if sampling else ()))
    return BenchResult(
        host=machine.name,
        server=name,
        profile=subject.server.profile,
        engine=subject.server.engine,
        launch_id=subject.server.launch_id,
        measured=noted([one.run(samples) for one in heard], subject),
        conditions=_conditions(asked, heard[-1].reply, route, counting, sampling, samples),
        notes=_notes(subject, counting, sampling),
        telemetry=samples,
    )


@attrs.frozen
class _Heard:
    """One reply and when it was heard, by this client's monotonic clock."""

    number: int
    begun_utc: str
    began_s: float
    ended_s: float
    reply: Reply
    cycles: Cycles | None

    def run(self, samples: tuple[Sample, ...]) -> Run:
        """With what the server's GPUs did meanwhile."""
        gpus = windows(between(samples, self.began_s, self.ended_s))
        return Run(self.number, self.begun_utc, self.reply, self.cycles, gpus)


class _Bencher:
    """The requests of one bench."""

    def __init__(
        self,
        client: HttpClient,
        counting: Counting,
        settings: Settings,
        sampling: Sampling | None,
        progress: Progress,
    ) -> None:
        self._client = client
        self._counting = counting
        self._settings = settings
        self._sampling = sampling
        self._progress = progress
        self._done: list[float] = []
        self._told_s = 0.0

    def run(self) -> list[_Heard]:
        """Warm-ups, then the runs that count."""
        for number in range(self._settings.warmups):
            self._one(-number)
        return [self._one(number) for number in range(1, self._settings.runs + 1)]

    def _one(self, number: int) -> _Heard:
        """A reply that has a speed; one whose tokens came all at once is asked for again."""
        for _ in range(TRIES - 1):
            heard = self._asked(number)
            if heard.reply.completion_tokens is None or heard.reply.tok_s is not None:
                break
            again = f"Run {number} was measured again: all its tokens had come at once"
            self._counting.notes.append(again)
        else:
            heard = self._asked(number)
        self._judge(heard.reply)
        if number > 0:
            self._done.append(heard.reply.tok_s or 0.0)
        return heard

    def _asked(self, number: int) -> _Heard:
        settings, dialect = self._settings, self._counting.dialect
        before = self._counting.begin(self._client)
        text = settings.prompt.for_run(number)
        reader = dialect.reader()
        begun_utc, began_s = now_utc(), time.monotonic()
        for heard in self._client.stream(dialect, text, settings.tokens, stall_s=settings.stall_s):
            reader = heard
            self._tell(number, reader)
        ended_s = time.monotonic()
        reply = reader.reply()
        if reply is None:
            raise CheckFailed(problem="the reply ended without a token", where=self._client.where)
        cycles = self._counting.end(self._client, reply, before)
        self._tell(number, reader, now=True)
        return _Heard(number, begun_utc, began_s, ended_s, reply, cycles)

    def _judge(self, reply: Reply) -> None:
        """Refuses a reply that has no speed.

        Raises:
            CheckFailed, CannotTell: for one that has none.
        """
        where = self._client.where
        if reply.completion_tokens is None:
            raise CannotTell(
                problem="the server does not say how many tokens it sent, and events are no "
                "tokens: no speed can be told",
                where=where,
                way_out="It must answer `stream_options: {include_usage: true}`.",
            )
        if reply.tok_s is None:
            raise CheckFailed(
                problem=f"all {reply.completion_tokens} tokens came at once: there is no time "
                "between the first and the last that would be the engine's",
                where=where,
                way_out="Does something between here and the server buffer streams? Or ask for "
                "more tokens: --tokens.",
            )

    def _tell(self, number: int, reader: Reader, *, now: bool = False) -> None:
        at_s = time.monotonic()
        if not now and at_s - self._told_s < TELL_INTERVAL_S:
            return
        self._told_s = at_s
        event = {
            "event": "bench",
            "run": number,
            "runs": self._settings.runs,
            "tokens": reader.tokens,
            "of": self._settings.tokens,
            "done": list(self._done),
            "gpus": list(self._sampling.latest) if self._sampling else [],
        }
        self._progress(Step("bench", event))


def _conditions(
    asked: Settings,
    last: Reply,
    route: Route,
    counting: Counting,
    sampling: Sampling | None,
    samples: tuple[Sample, ...],
) -> Conditions:
    return Conditions(
        tokens=asked.tokens,
        warmups=asked.warmups,
        prompt=asked.prompt.name,
        prompt_tokens=last.prompt_tokens,
        route=route,
        flushed=counting.flushed,
        sampled_by=sampling.source if sampling else "none",
        sample_hz=_rate(samples),
    )


def _rate(samples: tuple[Sample, ...]) -> float | None:
    if len(samples) < 2:  # noqa: PLR2004
        return None
    return (len(samples) - 1) / (samples[-1].at_s - samples[0].at_s)


def _notes(subject: Subject, counting: Counting, sampling: Sampling | None) -> tuple[str, ...]:
    notes = [*subject.notes, *counting.notes]
    if sampling is not None and sampling.problem:
        how = "not watched to the end" if sampling.samples else "not watched"
        notes.append(f"The GPUs were {how}: {sampling.problem}")
    return tuple(dict.fromkeys(notes))
