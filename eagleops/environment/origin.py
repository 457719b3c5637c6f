"""Where a value came from: exec, the engine, a conf file, or a change since."""

from __future__ import annotations

from enum import Enum

from eagleops.environment.values import Value, quoted, same
from eagleops.environment.witnesses import Override, Witnesses


class Start(Enum):
    """What is known of the value at exec, beside the one that is there now.

    SAME: the process was started with it. OTHER: with another one. WITHOUT: with none.
    UNSEEN: nobody can tell.
    """

    SAME = "same"
    OTHER = "other"
    WITHOUT = "without"
    UNSEEN = "unseen"


def start_of(witnesses: Witnesses) -> Start:
    """How the value now compares with the one at exec, own or, failing that, an ancestor's."""
    known, value = start_value(witnesses)
    if not known:
        return Start.UNSEEN
    if value is None:
        return Start.WITHOUT
    now = witnesses.live.value if witnesses.live.readable else value
    return Start.SAME if now is not None and same(value, now) else Start.OTHER


def origin(witnesses: Witnesses) -> tuple[str, ...]:
    """Notes on where the value that is seen now came from."""
    engine = engines_doing(witnesses) if witnesses.main is not None else ()
    told = (f"changed by the engine: {each.told(witnesses.engine)}" for each in engine)
    return (*_from_start(witnesses), *_from_conf(witnesses), *told)


def engines_doing(witnesses: Witnesses) -> tuple[Override, ...]:
    """What the engine does that would explain the value that is seen now.

    Nothing where the server was started with that value. Where that is not known it may be
    the engine's doing, and may not.
    """
    main, now = witnesses.main, witnesses.live.value
    if now is None or (main is not None and main.value is not None and same(main.value, now)):
        return ()
    return tuple(
        override
        for override in witnesses.overrides
        if override.value is None or same(override.value, now)
    )


def _from_start(witnesses: Witnesses) -> list[str]:
    initial, ancestor, live = witnesses.initial, witnesses.ancestor, witnesses.live
    known, value = start_value(witnesses)
    if not known:
        return []
    whom = "it" if initial.sees or ancestor is None else f"PID {ancestor.pid} above it"
    if not live.readable:
        return [
            f"{whom} was started {f'with {quoted(value)}' if value is not None else 'without it'}"
        ]
    if live.value is None:
        return []
    if value is None:
        return [f"set after start: {whom} was started without it"]
    if not same(value, live.value):
        return [f"changed after start: {whom} was started with {quoted(value)}"]
    return []


def confirmed_above(witnesses: Witnesses) -> tuple[str, ...]:
    """That a process above was started with the very value, where this one's start is unseen."""
    ancestor = witnesses.ancestor
    if witnesses.initial.sees or ancestor is None or start_of(witnesses) is not Start.SAME:
        return ()
    return (f"PID {ancestor.pid} above it was started with it",)


def _from_conf(witnesses: Witnesses) -> list[str]:
    conf, live = witnesses.conf, witnesses.live
    if conf is None:
        return []
    taken = witnesses.effective.values[-1:] or ((live.value,) if live.value is not None else ())
    if not taken:
        return [f"NCCL would take {quoted(conf.value)} from {conf.path} when it starts"]
    if same(conf.value, taken[0]) and start_of(witnesses) is not Start.SAME:
        return [f"from a conf file: {conf.path} sets it where nothing else does"]
    return [f"{conf.path} sets {quoted(conf.value)}; the environment is stronger"]


def start_value(witnesses: Witnesses) -> tuple[bool, Value | None]:
    """Whether it is known what the process was started with, and the value.

    Its own block says it, or failing that the nearest one above that can be read.
    """
    if witnesses.initial.sees:
        return True, witnesses.initial.value
    if witnesses.ancestor is not None:
        return True, witnesses.ancestor.value
    return False, None
