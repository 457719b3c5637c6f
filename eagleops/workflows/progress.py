"""How a workflow tells what it is doing: steps handed to whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from eagleops.session import OnEvent


@attrs.frozen
class Step:
    """One thing that happened on the way.

    Attributes:
        stage: ``look``, ``kill``, ``drain``, ``spawn``, ``ready``, ``verify``, ``bench``,
            ``load``, ``stop``, ``record`` or ``send``; or, of a workflow that shows others, ``$``
            and the command that the next stages are.
        event: The remote operation's event, or an empty mapping where the stage begins.
    """

    stage: str
    event: Mapping[str, Any] = attrs.field(factory=dict)


Progress = Callable[[Step], None]


def unwatched(_step: Step) -> None:
    """Watches nothing."""


def events_of(stage: str, progress: Progress) -> OnEvent:
    """Tells ``progress`` that ``stage`` begins, and hands it the stage's events."""
    progress(Step(stage))
    return lambda event: progress(Step(stage, event))
