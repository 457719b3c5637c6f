"""Judged by the live environment, where NCCL's log says nothing of the variable.

NCCL takes what it finds once, so for its variables the time of a change counts too.
"""

from __future__ import annotations

from eagleops.environment import nccl_variables as nccl
from eagleops.environment.origin import confirmed_above, origin, start_value
from eagleops.environment.values import Secret, Value, quoted, same, same_number
from eagleops.environment.verdict import SET_IT, Verdict, undo, unrecorded
from eagleops.environment.witnesses import Effective, Witnesses


def blind(witnesses: Witnesses) -> Verdict:
    """Unknown: nothing that can be read decides."""
    live, why = witnesses.live, witnesses.live.why
    if witnesses.initial.sees:
        why += "; what it was started with may have changed since"
    return Verdict("unknown", origin(witnesses), why, live.way_out)


def as_it_stands(expected: Value | None, witnesses: Witnesses) -> Verdict:
    """The verdict by what the environment holds now."""
    seen, notes = witnesses.live.value, origin(witnesses)
    if expected is None:
        if seen is None:
            return Verdict("ok", notes)
        why = f"it is set to {quoted(seen)}, and it should not be set"
        return Verdict("wrong", notes, why, undo(witnesses))
    if seen is None:
        return _read_before(expected, witnesses, notes) or Verdict(
            "missing", notes, _missing(expected, witnesses), SET_IT
        )
    if unrecorded(expected):
        return Verdict(
            "unknown",
            notes,
            "it is set, but a secret's value is not recorded, so it cannot be compared",
            "Verify with the profile at hand (--profile), or launch again.",
        )
    if not same(expected, seen) and not (
        nccl.is_nccl(witnesses.name) and same_number(expected, seen)
    ):
        return _read_before(expected, witnesses, notes) or Verdict(
            "wrong", notes, f"it is {quoted(seen)}", undo(witnesses)
        )
    return _there_but_in_time(expected, witnesses, notes)


def _read_before(expected: Value, witnesses: Witnesses, notes: tuple[str, ...]) -> Verdict | None:
    """Unknown, where NCCL may still run with what was there before; else None."""
    effective = witnesses.effective
    if not nccl.is_nccl(witnesses.name) or not _may_have_read(witnesses):
        return None
    if _named_if_there(witnesses):
        return None
    known, start = start_value(witnesses)
    if known and not _same_start(expected, start):
        return None
    before = f"was {quoted(expected)} at start" if known else "may have been another before"
    return Verdict(
        "unknown",
        notes,
        f"it is {quoted(witnesses.live.value)} now and {before}, and whether NCCL has read it "
        f"before the change cannot be told: {_silence(effective)}",
        "Launch with NCCL's log (the default).",
    )


def _there_but_in_time(expected: Value, witnesses: Witnesses, notes: tuple[str, ...]) -> Verdict:
    """The environment has it; NCCL takes what it finds once, so the time counts too."""
    name, effective = witnesses.name, witnesses.effective
    if not nccl.is_nccl(name):
        return Verdict("ok", notes, asides=confirmed_above(witnesses))
    text = "" if isinstance(expected, Secret) else expected
    known, start = start_value(witnesses)
    from_start = known and _same_start(expected, start)
    if _named_if_there(witnesses) and text:
        if not from_start:
            return Verdict("wrong", notes, _too_late(witnesses), SET_IT, proved=True)
        notes += ("NCCL made a communicator and did not name it, though it was there from start",)
    conf = witnesses.conf
    from_conf = conf is not None and same(expected, conf.value)
    if not from_start and not from_conf and _may_have_read(witnesses):
        when = "it was set after the process started" if known else "when it was set is not seen"
        return Verdict(
            "unknown",
            notes,
            f"{when}, and whether NCCL read it before or after that cannot be told: "
            f"{_silence(effective)}",
            "Launch with NCCL's log (the default), or set it in the profile's env.",
        )
    why, certain = nccl.unacceptable(name, text) if text else ("", False)
    if why and _may_have_read(witnesses):
        return Verdict(
            "wrong" if certain else "unknown",
            notes,
            f"it is there, but {why}",
            "Give it a value that NCCL accepts; `eagleops lint` knows which.",
        )
    asides = confirmed_above(witnesses) + _not_proved(text, witnesses)
    return Verdict("ok", notes + ((why,) if why else ()), asides=asides)


def _too_late(witnesses: Witnesses) -> str:
    effective = witnesses.effective
    others = f" and read {', '.join(effective.peers)}" if effective.peers else ""
    return (
        "it was set too late: the environment has it now, but NCCL had made "
        f"a communicator of {max(effective.complete)} ranks before{others}, and did not find it"
    )


def _may_have_read(witnesses: Witnesses) -> bool:
    """Whether NCCL may have read the variable already, without a word in the log."""
    effective = witnesses.effective
    if effective.logged and witnesses.name in nccl.READ_EACH_TIME:
        return any(ranks > 1 for ranks in (*effective.started, *effective.complete))
    return effective.may_have_read


def _named_if_there(witnesses: Witnesses) -> bool:
    """Whether NCCL's log would show the variable, had it been there when NCCL read it."""
    effective = witnesses.effective
    return (
        witnesses.name in nccl.READ_AT_INIT
        and effective.communicators > 0
        and effective.env_logged
        and not effective.cut
    )


def _silence(effective: Effective) -> str:
    return effective.why or "its log does not name the variable"


def _same_start(expected: Value, start: Value | None) -> bool:
    return same(expected, start) or same_number(expected, start)


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
    if not effective.logged and effective.loaded is False:
        return ("NCCL is not loaded in it",)
    if not effective.logged:
        return (f"not proved by NCCL's log: {effective.why}",) if effective.why else ()
    if not effective.communicators:
        return ("not proved by NCCL's log: no communicator of two or more ranks was made",)
    return ("not proved by NCCL's log, which names a variable where NCCL needs it",)
