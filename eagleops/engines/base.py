"""What an engine adapter is: the one place that knows how an engine is started and seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from eagleops.engines.failures import Cause
from eagleops.engines.overrides import Override
from eagleops.engines.roles import Role
from eagleops.engines.workers import ExpectedWorkers
from eagleops.profile import Profile


class Engine(Protocol):
    """One engine. Every method is a pure function of its arguments."""

    @property
    def name(self) -> str:
        """As in a profile's ``engine:``."""

    def command(self, profile: Profile, python: str) -> tuple[str, ...]:
        """The argv that starts ``profile``.

        Args:
            profile: What to start.
            python: The interpreter that the engine is installed for.

        Raises:
            ProfileError: if the profile lacks what a launch needs, or contradicts itself.
        """

    def environment(self, profile: Profile, *, nccl_log: bool = True) -> dict[str, str]:
        """The profile's variables, and those that eagleops adds (:mod:`.launch_env`).

        Args:
            profile: What to start.
            nccl_log: Let NCCL write its log into the server's state folder, for proof.

        Raises:
            ProfileError: if the profile contradicts itself.
        """

    def readiness(self, profile: Profile) -> Mapping[str, Any] | None:
        """How to see, from the server's machine, that it serves, and that it is this server.

        As JSON, for the ``watch`` operation; None where a living process is all that can be
        asked for.
        """

    def expected_workers(self, profile: Profile) -> ExpectedWorkers:
        """The processes that must be there once it is ready.

        Raises:
            ProfileError: if a flag that holds a number of GPUs does not.
        """

    def role(self, title: str, argv: Sequence[str]) -> Role | None:
        """What a process is; None for one that is not known.

        Args:
            title: Its command line with blanks between the arguments, as ``ps`` shows it.
            argv: Its arguments, one by one.
        """

    def overrides(self, profile: Profile) -> tuple[Override, ...]:
        """The variables that the engine sets by itself when it runs ``profile``."""

    def diagnose(
        self, log_lines: Sequence[str], exit_status: int | None, signal: str | None
    ) -> Cause | None:
        """Why a server ended, from its log and its end; None if neither shows a known cause.

        Args:
            log_lines: The last lines of its log.
            exit_status: Of its main process; None where a signal ended it.
            signal: That signal's name, for example ``SIGKILL``.
        """
