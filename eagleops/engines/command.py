"""Any other server: a command, as the profile writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from eagleops.engines.failure_patterns import COMMON
from eagleops.engines.failures import Cause, Signs, diagnosed
from eagleops.engines.launch_env import launch_environment
from eagleops.engines.overrides import Override
from eagleops.engines.probes import readiness
from eagleops.engines.roles import Role, python_role
from eagleops.engines.workers import ExpectedWorkers
from eagleops.profile import Profile

_SIGNS = Signs.of(COMMON)


@attrs.frozen
class Command:
    """The adapter of what has none of its own: nothing is known of its workers or its paths."""

    name: str = "command"

    def command(self, profile: Profile, python: str) -> tuple[str, ...]:
        """The profile's ``command``; ``python`` has no part in it.

        Raises:
            ProfileError: without a command, or with what only an engine could turn into one.
        """
        del python
        if not profile.command:
            raise profile.error(
                "engine command needs a command, and the profile has none",
                "Write it as a list: `command: [/usr/bin/python3, -m, http.server, '8000']`.",
            )
        if profile.args:
            raise profile.error(
                "engine command takes no args: what it starts is the command as it is written",
                "Write them as part of `command:`.",
                key=f"args.{next(iter(profile.args))}",
            )
        return profile.command

    def environment(self, profile: Profile, *, nccl_log: bool = True) -> dict[str, str]:
        """See :func:`~eagleops.engines.launch_env.launch_environment`."""
        return launch_environment(profile, nccl_log=nccl_log)

    def readiness(self, profile: Profile) -> Mapping[str, Any] | None:
        """With a port it is ready once it listens there, without one after a second of life."""
        if profile.port is None:
            return None
        return readiness(port=profile.port, probes=(), identity=None)

    def expected_workers(self, profile: Profile) -> ExpectedWorkers:
        """None that are known."""
        del profile
        return ExpectedWorkers()

    def role(self, title: str, argv: Sequence[str]) -> Role | None:
        """Of Python's own processes alone."""
        del title
        return python_role(argv)

    def overrides(self, profile: Profile) -> tuple[Override, ...]:
        """None that are known."""
        del profile
        return ()

    def diagnose(
        self, log_lines: Sequence[str], exit_status: int | None, signal: str | None
    ) -> Cause | None:
        """See :mod:`eagleops.engines.failures`."""
        return diagnosed(_SIGNS, log_lines, exit_status, signal)
