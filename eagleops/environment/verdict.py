"""The verdict: one variable in one process, weighed.

The strongest witness that speaks decides: what NCCL refused, what NCCL took, what the
process's environment holds now. What the process was started with never decides alone: it may
have changed since. ``missing`` takes a witness that can see; a blind one is ``unknown``.
"""

from __future__ import annotations

from typing import Literal

import attrs

from eagleops.environment import nccl_variables as nccl
from eagleops.environment.origin import Start, confirmed_above, engines_doing, origin, start_of
from eagleops.environment.values import (
    Secret,
    Value,
    is_number,
    nccl_number,
    quoted,
    same,
    same_number,
)
from eagleops.environment.witnesses import Witnesses

Kind = Literal["ok", "wrong", "missing", "unknown"]

SET_IT = "Set it in the profile's env, so that each process starts with it, and launch again."


@attrs.frozen
class Verdict:
    """What is so, and why.

    Attributes:
        kind: ``ok``: the process runs with the expected value. ``wrong``: with another one,
            or NCCL did not take it. ``missing``: without any. ``unknown``: cannot be told.
        notes: What else is worth knowing, whatever the kind.
        why: In words; empty for ``ok``.
        way_out: What to do; empty where nothing helps.
        proved: Whether NCCL's own log says so.
        asides: What the kind rests on, for whoever asks; no reader is alarmed by it.
    """

    kind: Kind
    notes: tuple[str, ...] = ()
    why: str = ""
    way_out: str = ""
    proved: bool = False
    asides: tuple[str, ...] = ()


def verdict(expected: Value | None, witnesses: Witnesses) -> Verdict:
    """Weighs what the witnesses say.

    Args:
        expected: The value that was asked for; None: the variable must not be set. A secret
            that was not recorded can be found missing, but not compared.
        witnesses: Of one variable in one process.
    """
    weighed = _weigh(expected, witnesses)
    if weighed.kind == "wrong" and witnesses.main is None:
        guesses = (each.told(witnesses.engine) for each in engines_doing(witnesses))
        notes = tuple(f"the engine may have set it: {guess}" for guess in guesses)
        return attrs.evolve(weighed, notes=weighed.notes + notes)
    return weighed


def _weigh(expected: Value | None, witnesses: Witnesses) -> Verdict:
    effective = witnesses.effective
    if effective.refusals:
        return _refused(witnesses)
    if effective.values and not _unrecorded(expected):
        return _as_nccl_took_it(expected, witnesses)
    if not witnesses.live.readable:
        return _blind(witnesses)
    return _as_it_stands(expected, witnesses)


def _refused(witnesses: Witnesses) -> Verdict:
    effective = witnesses.effective
    value = quoted(effective.values[-1]) if effective.values else "the value"
    return Verdict(
        "wrong",
        origin(witnesses),
        f"NCCL read {value} and refused it: {effective.refusals[0]}",
        "Give it a value that NCCL accepts; `eagleops lint` knows which.",
        proved=True,
    )


def _as_nccl_took_it(expected: Value | None, witnesses: Witnesses) -> Verdict:
    name, effective, live = witnesses.name, witnesses.effective, witnesses.live
    taken = effective.values[-1]
    notes = origin(witnesses)
    if expected is None:
        why = f"NCCL took {quoted(taken)}, and it should not be set"
        return Verdict("wrong", notes, why, _undo(witnesses), proved=True)
    if not _nccl_reads_the_same(expected, taken, number=effective.number):
        return _other_taken(expected, taken, witnesses, notes)
    too_late = _not_from_the_first(witnesses)
    if too_late:
        return Verdict("wrong", notes, too_late, SET_IT, proved=True)
    ignored = nccl.silently_ignored(name, taken, effective.version)
    if ignored:
        why = (
            f"NCCL {effective.version} does not know {quoted(ignored[0])}: it passes over the "
            "word and switches off what is not named"
        )
        return Verdict("wrong", notes, why, "Give it words that this NCCL knows.", proved=True)
    if live.readable and not same(expected, live.value) and not same_number(expected, live.value):
        notes += (f"the environment has {quoted(live.value)} now; NCCL keeps what it read",)
    return Verdict("ok", _read_as(expected, effective.number) + notes, proved=True)


def _other_taken(
    expected: Value, taken: str, witnesses: Witnesses, notes: tuple[str, ...]
) -> Verdict:
    initial, live = witnesses.initial, witnesses.live
    if not (live.readable and live.value is not None and same(expected, live.value)):
        return Verdict("wrong", notes, f"NCCL took {quoted(taken)}", _undo(witnesses), proved=True)
    if initial.value is not None and same(expected, initial.value):
        why = f"NCCL took {quoted(taken)}, although it was started with {quoted(expected)}"
        way_out = "Look for an env plugin (NCCL_ENV_PLUGIN), or code that sets it for a while."
        return Verdict("wrong", notes, why, way_out, proved=True)
    why = (
        f"it was set too late: the environment has {quoted(expected)} now, "
        f"but NCCL had taken {quoted(taken)} before"
    )
    return Verdict("wrong", notes, why, SET_IT, proved=True)


def _as_it_stands(expected: Value | None, witnesses: Witnesses) -> Verdict:
    """By the live environment: NCCL says nothing of the variable."""
    seen, notes = witnesses.live.value, origin(witnesses)
    if expected is None:
        if seen is None:
            return Verdict("ok", notes)
        why = f"it is set to {quoted(seen)}, and it should not be set"
        return Verdict("wrong", notes, why, _undo(witnesses))
    if seen is None:
        return Verdict("missing", notes, _missing(expected, witnesses), SET_IT)
    if _unrecorded(expected):
        return Verdict(
            "unknown",
            notes,
            "it is set, but a secret's value is not recorded, so it cannot be compared",
            "Verify with the profile at hand (--profile), or launch again.",
        )
    if not same(expected, seen) and not (
        nccl.is_nccl(witnesses.name) and same_number(expected, seen)
    ):
        return Verdict("wrong", notes, f"it is {quoted(seen)}", _undo(witnesses))
    return _there_but_in_time(expected, witnesses, notes)


def _there_but_in_time(expected: Value, witnesses: Witnesses, notes: tuple[str, ...]) -> Verdict:
    """The environment has it; NCCL takes what it finds once, so the time counts too."""
    name, effective = witnesses.name, witnesses.effective
    if not nccl.is_nccl(name):
        return Verdict("ok", notes, asides=confirmed_above(witnesses))
    text = "" if isinstance(expected, Secret) else expected
    known = start_of(witnesses) is not Start.UNSEEN
    from_start = known and _started_with(expected, witnesses)
    if name in nccl.READ_AT_INIT and nccl.is_logged(name, text) and _would_have_named(witnesses):
        if not from_start:
            return Verdict("wrong", notes, _too_late(witnesses), SET_IT, proved=True)
        notes += ("NCCL made a communicator and did not name it, though it was there from start",)
    not_started = effective.logged and not effective.started and not effective.complete
    conf = witnesses.conf
    from_conf = conf is not None and same(expected, conf.value)
    if known and not from_start and not not_started and not from_conf:
        return Verdict(
            "unknown",
            notes,
            "it was set after the process started, and whether NCCL read it before or after "
            f"that cannot be told: {effective.why or 'its log does not name the variable'}",
            "Launch with NCCL's log (the default), or set it in the profile's env.",
        )
    asides = confirmed_above(witnesses) + _not_proved(text, witnesses)
    return Verdict("ok", notes, asides=asides)


def _too_late(witnesses: Witnesses) -> str:
    effective = witnesses.effective
    others = f" and read {', '.join(effective.peers)}" if effective.peers else ""
    return (
        "it was set too late: the environment has it now, but NCCL had made "
        f"a communicator of {max(effective.complete)} ranks before{others}, and did not find it"
    )


def _blind(witnesses: Witnesses) -> Verdict:
    live, why = witnesses.live, witnesses.live.why
    if witnesses.initial.sees:
        why += "; what it was started with may have changed since"
    return Verdict("unknown", origin(witnesses), why, live.way_out)


def _unrecorded(expected: Value | None) -> bool:
    return isinstance(expected, Secret) and not expected.recorded


def _nccl_reads_the_same(expected: Value, taken: str, *, number: bool) -> bool:
    if isinstance(expected, Secret):
        return same(expected, taken)
    if number:
        return str(nccl_number(expected)) == taken
    # A few texts are logged with a full stop behind them.
    return taken in (expected, f"{expected}.")


def _read_as(expected: Value, number: bool) -> tuple[str, ...]:
    if isinstance(expected, Secret) or not number or is_number(expected):
        return ()
    return (f"NCCL reads {quoted(expected)} as {nccl_number(expected)}",)


def _not_from_the_first(witnesses: Witnesses) -> str:
    """Why an earlier communicator was made with something else; empty if none was."""
    effective = witnesses.effective
    if witnesses.name not in nccl.READ_EACH_TIME:
        return ""
    taken = effective.values[-1]
    other = next((value for value in effective.values if value != taken), None)
    if other is not None:
        return f"NCCL took {quoted(other)} for an earlier communicator, and {quoted(taken)} since"
    without = effective.communicators - len(effective.values)
    if without > 0 and effective.env_logged and not effective.cut:
        return (
            f"it was set too late: NCCL made {without} of its {effective.communicators} "
            "communicators without it"
        )
    return ""


def _would_have_named(witnesses: Witnesses) -> bool:
    effective = witnesses.effective
    return effective.communicators > 0 and effective.env_logged and not effective.cut


def _started_with(expected: Value, witnesses: Witnesses) -> bool:
    initial, ancestor = witnesses.initial, witnesses.ancestor
    value = initial.value if initial.sees or ancestor is None else ancestor.value
    return same(expected, value) or same_number(expected, value)


def _missing(expected: Value, witnesses: Witnesses) -> str:
    initial, conf = witnesses.initial, witnesses.conf
    if initial.value is not None:
        why = f"it was started with {quoted(initial.value)} and has removed it since"
    elif initial.state == "whole":
        why = "it was not started with it, and it has not been set since"
    else:
        why = "its environment does not have it"
    if conf is not None and same(expected, conf.value):
        why += f"; NCCL would take it from {conf.path} when it starts"
    return why


def _not_proved(expected: str, witnesses: Witnesses) -> tuple[str, ...]:
    effective, name = witnesses.effective, witnesses.name
    if name in nccl.NEVER_LOGGED or not nccl.is_logged(name, expected or "?"):
        return ("NCCL's log never names it",)
    if not effective.logged:
        return (f"not proved by NCCL's log: {effective.why}",) if effective.why else ()
    if not effective.communicators:
        return ("not proved by NCCL's log: no communicator of two or more ranks was made",)
    return ("not proved by NCCL's log, which names a variable where NCCL needs it",)


def _undo(witnesses: Witnesses) -> str:
    conf, live = witnesses.conf, witnesses.live
    if conf is not None and live.value is not None and same(conf.value, live.value):
        return f"Take it out of {conf.path}, or set it in the profile's env: that is stronger."
    if engines_doing(witnesses):
        return "The engine sets it itself; the profile cannot, unless one of its flags does."
    return SET_IT
