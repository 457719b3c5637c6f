"""Decoding: replies whose tokens come on the clock, and the counts an engine keeps of them."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from eagleops.sim import faults
from eagleops.sim.clock import TokenClock
from eagleops.sim.layout import Layout
from eagleops.sim.load import Meter
from eagleops.sim.prometheus import Histogram

WORDS = ("This", " text", " is", " simulated", ",", " token", " by", " token", ".", " ")

REPORT_TICKS = 40

_TTFT_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 1, 2, 5, 10)
_LATENCY_S = (0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 60, 120, 240)
_GAP_S = (0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.1, 1)

# A warm-up request, before the engine says that it is ready, is not paced.
_UNPACED = TokenClock(step_s=0.001, ttft_s=0.005)


class Interval(NamedTuple):
    """A stretch of one reply, for the log.

    Attributes:
        tokens: That came in it.
        ticks: Plain steps or speculative cycles in it.
        held: Tokens in the KV cache at its end.
    """

    tokens: int
    ticks: int
    seconds: float
    held: int


class Gone(ConnectionAbortedError):
    """The engine has ended while a reply was on its way: its client sees the stream break off."""


class Totals(NamedTuple):
    """What an engine has decoded so far.

    Attributes:
        cycles: Speculative ones.
        right: Drafted tokens in them that were right.
    """

    requests: int = 0
    prompt_tokens: int = 0
    tokens: int = 0
    cycles: int = 0
    right: int = 0

    def since(self, other: Totals) -> Totals:
        """The difference to an earlier time."""
        return Totals._make(now - then for now, then in zip(self, other, strict=True))


class Reply:
    """One reply on its way.

    Attributes:
        prompt_tokens: Of the request.
        length: Tokens that it will have.
        tokens: Tokens that have come.
        text: What it says so far.
        cycles: Speculative cycles that have come; 0 in plain decoding.
        yields: Cycles by the number of drafted tokens that were right.
        started_s: When the request came, by :func:`time.time`.
        first_s, last_s: From the request to its first and to its latest token.
    """

    def __init__(self, prompt_tokens: int, length: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.length = length
        self.tokens = 0
        self.text = ""
        self.cycles = 0
        self.yields: list[int] = []
        self.started_s = time.time()
        self.first_s = 0.0
        self.last_s = 0.0

    @property
    def right(self) -> int:
        """Drafted tokens that were right."""
        return sum(drafts * cycles for drafts, cycles in enumerate(self.yields))

    @property
    def tokens_per_s(self) -> float:
        """The pace between its first token and its latest."""
        span_s = self.last_s - self.first_s
        return (self.tokens - 1) / span_s if span_s > 0 else 0.0

    def came(self, tokens: int, now_s: float, *, speculative: bool) -> None:
        """Counts tokens that came together."""
        self.last_s = now_s
        if not self.tokens:
            self.first_s = now_s
        elif speculative:
            self.cycles += 1
            self.yields.extend([0] * (tokens - len(self.yields)))
            self.yields[tokens - 1] += 1
        self.text += words(self.tokens, self.tokens + tokens)
        self.tokens += tokens


def words(start: int, end: int) -> str:
    """The words of tokens ``start`` to ``end`` of any reply."""
    return "".join(WORDS[index % len(WORDS)] for index in range(start, end))


def count_tokens(prompt: object) -> int:
    """Tokens of a prompt: words of a text, or a list of token ids; 0 of nothing."""
    if isinstance(prompt, list):
        return (
            sum(map(count_tokens, prompt)) if prompt and isinstance(prompt[0], str) else len(prompt)
        )
    return len(str(prompt).split())


class Decoder:
    """Decodes every request of one server, each on its own clock.

    Args:
        layout: The box.
        clock: The server's pace.
        gpus: Indices of the GPUs that it is on.
        stalls: Whether tokens stop coming in the middle of each reply.

    Attributes:
        totals: What has been decoded.
        yields: Cycles by the number of drafted tokens that were right.
        running: Requests on their way.
        paced: Whether the clock is in force: not for the warm-up.
        ttft, latency, gap: Seconds to the first token, of whole replies, between tokens.
        report: Called with each stretch of :data:`REPORT_TICKS` steps of a reply.
    """

    def __init__(
        self, layout: Layout, clock: TokenClock, gpus: tuple[int, ...], *, stalls: bool = False
    ) -> None:
        self._layout = layout
        self._clock = clock
        self._gpus = gpus
        self._stalls = stalls
        self._meter = Meter(layout, gpus)
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._ended = threading.Event()
        self.totals = Totals()
        self.running = 0
        self.paced = False
        self.yields: list[int] = []
        self._latest: Reply | None = None
        self.ttft = Histogram(_TTFT_S)
        self.latency = Histogram(_LATENCY_S)
        self.gap = Histogram(_GAP_S)
        self.report: Callable[[Interval], None] = lambda _: None

    @property
    def speculative(self) -> bool:
        """Whether it decodes in cycles."""
        return self._clock.accept_length is not None

    @property
    def most(self) -> int:
        """Tokens that a cycle can yield at most."""
        return self._clock.most

    @property
    def pace_tok_s(self) -> float:
        """The pace of the latest reply that is on its way; 0 with none."""
        return self._latest.tokens_per_s if self.running and self._latest else 0.0

    def pace(self) -> None:
        """Has every request paced by the clock from now on: the warm-up is over."""
        self.paced = True

    def decode(self, reply: Reply) -> Iterator[int]:
        """Waits for each of a reply's ticks and yields how many tokens came.

        Raises:
            Gone: if the engine ends meanwhile.
        """
        began_s = time.monotonic()
        self._latest = reply
        paced = self.paced
        slowdown = 1 / faults.speed(faults.read(self._layout), self._gpus)
        clock = self._clock if paced else _UNPACED
        mark = (0, 0.0)
        ticks = clock.ticks(reply.length, next(self._numbers) if paced else 0, slowdown)
        with self._meter, _Counted(self, reply):
            for number, tick in enumerate(ticks):
                self._wait_until(began_s + tick.due_s)
                if self._stalls and paced and reply.tokens > reply.length // 2:
                    self._ended.wait()
                    raise Gone
                now_s = time.monotonic() - began_s
                if reply.tokens:
                    self.gap.observe((now_s - reply.last_s) / tick.tokens, tick.tokens)
                reply.came(tick.tokens, now_s, speculative=clock.accept_length is not None)
                if number and number % REPORT_TICKS == 0:
                    self._report(reply, mark)
                if number % REPORT_TICKS == 0:
                    mark = (reply.tokens, now_s)
                yield tick.tokens

    def end(self) -> None:
        """Ends every reply that is on its way."""
        self._ended.set()

    def _wait_until(self, due_s: float) -> None:
        # A sleep, not a wait on the event: that one polls a lock, and comes late.
        remaining_s = due_s - time.monotonic()
        if remaining_s > 0:
            time.sleep(remaining_s)
        if self._ended.is_set():
            raise Gone

    def _report(self, reply: Reply, mark: tuple[int, float]) -> None:
        tokens, seconds = reply.tokens - mark[0], reply.last_s - mark[1]
        held = reply.prompt_tokens + reply.tokens
        self.report(Interval(tokens, REPORT_TICKS, seconds, held))

    def count(self, reply: Reply) -> None:
        """Adds a reply that has ended to the totals."""
        with self._lock:
            ended = Totals(1, reply.prompt_tokens, reply.tokens, reply.cycles, reply.right)
            self.totals = Totals._make(a + b for a, b in zip(self.totals, ended, strict=True))
            pairs = itertools.zip_longest(self.yields, reply.yields, fillvalue=0)
            self.yields = [a + b for a, b in pairs]
        self.ttft.observe(reply.first_s)
        self.latency.observe(reply.last_s)

    def change_running(self, change: int) -> None:
        """Counts a request in or out."""
        with self._lock:
            self.running += change


class _Counted:
    def __init__(self, decoder: Decoder, reply: Reply) -> None:
        self._decoder = decoder
        self._reply = reply

    def __enter__(self) -> None:
        self._decoder.change_running(+1)

    def __exit__(self, *_: object) -> None:
        self._decoder.change_running(-1)
        self._decoder.count(self._reply)
