"""A launched server as its machine tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import cattrs

from eagleops.errors import UsageError
from eagleops.remote.server_record import is_name

NAME_RULE = (
    "Use up to 64 letters, digits, dots, underscores and hyphens, a letter or a digit first."
)
_CONVERTER = cattrs.Converter()

LIVING = frozenset({"starting", "ready", "stopping"})


@attrs.frozen
class ServerFacts:
    """One server's state folder and processes, at one moment.

    Attributes:
        state: ``starting``, ``ready``, ``stopping``, ``exited`` (its end is on record) or
            ``lost`` (its supervisor is gone and recorded no end).
        detail: What the state leaves unsaid, for people; mostly empty.
        pid: Of its main process, as its own machine counts.
        port: None where the profile names none.
        ready_s: Seconds from its start to ready; None where nobody watched.
        exit_status: None while it lives, and where a signal ended it.
        signal: The name of the signal that ended it, for example ``SIGKILL``.
        state_dir: Its state folder over there.
        log: The path of its log over there.
        tree: The pids of its processes that live; of one that is lost or has exited, those
            that outlived it.
    """

    name: str
    state: str
    pid: int | None = None
    launch_id: str = ""
    profile: str = ""
    engine: str = ""
    model: str | None = None
    port: int | None = None
    supervisor_pid: int | None = None
    started_utc: str | None = None
    ready_s: float | None = None
    ended_utc: str | None = None
    exit_status: int | None = None
    signal: str | None = None
    detail: str = ""
    state_dir: str = ""
    log: str = ""
    tree: tuple[int, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ServerFacts:
        """A server from the JSON of the ``servers`` operation and its kin."""
        told = {key: value for key, value in data.items() if value is not None}
        return _CONVERTER.structure(told, cls)

    def to_dict(self) -> dict[str, Any]:
        """The server as JSON."""
        return attrs.asdict(self)

    @property
    def is_alive(self) -> bool:
        """Whether its main process lives under its supervisor."""
        return self.state in LIVING

    @property
    def ending(self) -> str:
        """How it ended, for people; empty where that is not known."""
        if self.signal is not None:
            return f"ended by {self.signal}"
        return "" if self.exit_status is None else f"ended with status {self.exit_status}"


def require_name(name: str) -> None:
    """Refuses a name that no server may have, before any machine is asked.

    Raises:
        UsageError: with the rule.
    """
    if not is_name(name):
        raise UsageError(problem=f"{name!r} cannot name a server", way_out=NAME_RULE)
