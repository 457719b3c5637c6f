"""A run: one launch of a server, and every fact that was recorded of it.

A run is never changed. What is learned of it later (it got ready, it was measured, it died)
is another fact; the last fact of a part is what holds, and those before it stay.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import attrs

PARTS = (
    "spec",
    "profile_source",
    "lint",
    "snapshot",
    "machine",
    "gpus",
    "libraries",
    "packages",
    "models",
    "clock",
    "launch",
    "environment",
    "samples",
    "telemetry",
    "bench",
    "comparison",
    "log",
    "outcome",
)
"""What of a run is recorded, each as JSON.

==================  ==================================================================
``spec``            what was started: argv, environment, folder, expectations
``profile_source``  the resolved profile, and which profile each value came from
``lint``            findings before the launch; null where nobody linted
``snapshot``        GPUs and their holders at launch
``machine``         kernel, processors, memory, NUMA, container
``gpus``            driver, power limits, modes, topology
``libraries``       the NCCL and CUDA libraries that were really loaded
``packages``        Python, every package's version, the engine's patched files
``models``          the target's and the drafter's files
``clock``           the machine's clock against the client's
``launch``          seconds to ready, what the reset did
``environment``     the three witnesses' verdict on each worker
``samples``         single measurements
``telemetry``       ``gpus``: per ``index`` the medians of ``sm_clock_mhz`` and the like, and
                    ``throttled``: the share of time by reason
``bench``           the figures: ``tok_s`` (its ``median``), ``accept_length``
``comparison``      of which comparison it is a part: ``id``, ``profile``, ``restart``, ...
``log``             where the server's log stands, and its last lines where it died
``outcome``         one of :data:`OUTCOMES`, and a ``detail``
==================  ==================================================================
"""

OUTCOMES = ("started", "ready", "benched", "not_ready", "died", "failed", "stopped")
"""What a run came to."""


def now_utc() -> str:
    """The time by this client's clock, RFC 3339 in UTC with microseconds."""
    now = datetime.now(timezone.utc)
    return now.isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_uuid() -> str:
    """A name that no other client gives."""
    return uuid.uuid4().hex


def _text(value: str) -> str:
    # A column is UTF-8; a path's stray bytes stay readable in it, and exact in the spec.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def _optional_text(value: str | None) -> str | None:
    return None if value is None else _text(value)


@attrs.frozen
class Fact:
    """One thing that was recorded of a run.

    Attributes:
        part: One of :data:`PARTS`.
        body: JSON.
        recorded_utc: By the client's clock.
        uuid: Its name in every ledger that it is copied to.
    """

    part: str = attrs.field(validator=attrs.validators.in_(PARTS))
    body: Any
    recorded_utc: str = attrs.field(factory=now_utc, converter=_text)
    uuid: str = attrs.field(factory=new_uuid, converter=_text)


@attrs.frozen
class Header:
    """A run in one line.

    Attributes:
        id: Its number in this ledger; None before it is recorded.
        uuid: Its name in every ledger.
        created_utc: When it began, by the client's clock, RFC 3339.
        host: As in hosts.yaml.
        server: The server's name on the host.
        user: Who ran it, and on which client.
        eagleops: The version that recorded it.
        outcome: The last of :data:`OUTCOMES` that was recorded.
        ready_s: Seconds from the start to ready.
        tok_s: Median decode speed in tokens per second.
        accept_length: Tokens per verify cycle, the target's own among them.
    """

    host: str = attrs.field(converter=_text)
    server: str = attrs.field(converter=_text)
    profile: str = attrs.field(converter=_text)
    engine: str = attrs.field(converter=_text)
    model: str | None = attrs.field(default=None, converter=_optional_text)
    user: str = attrs.field(default="", converter=_text)
    client: str = attrs.field(default="", converter=_text)
    eagleops: str = attrs.field(default="", converter=_text)
    created_utc: str = attrs.field(factory=now_utc, converter=_text)
    uuid: str = attrs.field(factory=new_uuid, converter=_text)
    id: int | None = None
    outcome: str = "started"
    ready_s: float | None = None
    tok_s: float | None = None
    accept_length: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The header as JSON; ``run_id`` is its number."""
        fields = attrs.asdict(self)
        return {"run_id": fields.pop("id"), **fields}


@attrs.frozen
class Run:
    """A run with all its facts.

    Attributes:
        facts: In the order in which they were recorded.
    """

    header: Header
    facts: tuple[Fact, ...] = ()

    @classmethod
    def begin(cls, header: Header, parts: Mapping[str, Any]) -> Run:
        """A run that is not recorded yet, with what is known of it at once."""
        run = cls(header, tuple(Fact(part, body) for part, body in parts.items()))
        return attrs.evolve(run, header=with_figures(header, run.facts))

    @property
    def id(self) -> int | None:
        """Its number in the ledger that it came from."""
        return self.header.id

    def part(self, name: str) -> Any:
        """What holds of a part: its last fact's body; None where nothing was recorded."""
        return last_bodies(self.facts).get(name)

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON: its header, and what holds of each part."""
        return {**self.header.to_dict(), "parts": last_bodies(self.facts)}


def last_bodies(facts: Iterable[Fact]) -> dict[str, Any]:
    """What holds of each part."""
    return {fact.part: fact.body for fact in facts}


def with_figures(header: Header, facts: Iterable[Fact]) -> Header:
    """``header`` with the outcome and the figures that ``facts`` hold, where they hold any."""
    seen: dict[str, Any] = {}
    for part, body in last_bodies(facts).items():
        seen.update(_figures(part, body))
    return attrs.evolve(header, **seen) if seen else header


def _figures(part: str, body: Any) -> dict[str, Any]:
    if not isinstance(body, Mapping):
        return {}
    if part == "outcome" and body.get("outcome") in OUTCOMES:
        return {"outcome": body["outcome"]}
    if part == "launch":
        return _numbers(ready_s=body.get("ready_s"))
    if part == "bench":
        speed = body.get("tok_s")
        median = speed.get("median") if isinstance(speed, Mapping) else speed
        return _numbers(tok_s=median, accept_length=body.get("accept_length"))
    return {}


def _numbers(**candidates: Any) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in candidates.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }
