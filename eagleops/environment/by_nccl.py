"""Judged by NCCL's own log: what it took, and what it refused."""

from __future__ import annotations

from eagleops.environment import nccl_variables as nccl
from eagleops.environment.origin import origin
from eagleops.environment.values import Secret, Value, quoted, same, same_number
from eagleops.environment.verdict import SET_IT, Verdict, undo
from eagleops.environment.witnesses import Witnesses
from eagleops.knowledge.numbers import is_number, nccl_number


def refused(witnesses: Witnesses) -> Verdict:
    """Wrong: NCCL said so itself."""
    effective = witnesses.effective
    value = quoted(effective.values[-1]) if effective.values else "the value"
    return Verdict(
        "wrong",
        origin(witnesses),
        f"NCCL read {value} and refused it: {effective.refusals[0]}",
        "Give it a value that NCCL accepts; `eagleops lint` knows which.",
        proved=True,
    )


def as_nccl_took_it(expected: Value | None, witnesses: Witnesses) -> Verdict:
    """The verdict by what NCCL read, whatever the environment holds by now."""
    name, effective, live = witnesses.name, witnesses.effective, witnesses.live
    taken = effective.values[-1]
    notes = origin(witnesses)
    if expected is None:
        why = f"NCCL took {quoted(taken)}, and it should not be set"
        return Verdict("wrong", notes, why, undo(witnesses), proved=True)
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
        return Verdict("wrong", notes, f"NCCL took {quoted(taken)}", undo(witnesses), proved=True)
    if initial.value is not None and same(expected, initial.value):
        why = f"NCCL took {quoted(taken)}, although it was started with {quoted(expected)}"
        way_out = "Look for an env plugin (NCCL_ENV_PLUGIN), or code that sets it for a while."
        return Verdict("wrong", notes, why, way_out, proved=True)
    why = (
        f"it was set too late: the environment has {quoted(expected)} now, "
        f"but NCCL had taken {quoted(taken)} before"
    )
    return Verdict("wrong", notes, why, SET_IT, proved=True)


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
        return f"NCCL made {without} of its {effective.communicators} communicators without it"
    return ""


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
