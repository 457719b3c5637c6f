"""A host or a container, with the verbs of the tool."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import UsageError
from eagleops.inventory import Inventory
from eagleops.library.server import Server
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.transport.base import Argv, Completed, encode
from eagleops.workflows.doctor import DoctorReport, doctor
from eagleops.workflows.launch import READY_LIMIT_S, LaunchReport, launch
from eagleops.workflows.progress import Progress, unwatched
from eagleops.workflows.record import launch_and_record
from eagleops.workflows.reset import ResetReport, reset
from eagleops.workflows.status import StatusReport, status
from eagleops.workflows.stop import the_server
from eagleops.workflows.trend import TrendReport, trend


@attrs.define(eq=False)
class Host:
    """A host or a container of the inventory; a remote call is a method, never a property.

    Attributes:
        machine: What can be asked.
        ledger: Where its runs are recorded; None for the user's own ledger.
        inventory: Whose profiles its methods may be given by name; None for no names.
    """

    machine: Machine
    ledger: Path | None = attrs.field(default=None, repr=False)
    inventory: Inventory | None = attrs.field(default=None, repr=False)

    @property
    def name(self) -> str:
        """As in hosts.yaml."""
        return self.machine.name

    def profile(self, name: str) -> Profile:
        """The inventory's profile of that name, resolved.

        Raises:
            ProfileError: if there is none of that name, or it is abstract.
            UsageError: if the host is of no inventory.
        """
        if self.inventory is None:
            raise UsageError(
                problem=f"profile {name} is named, and there is no inventory to find it in",
                where=self.name,
                way_out="Give the profile itself.",
            )
        return self.inventory.profile(name)

    def status(self) -> StatusReport:
        """GPUs, who holds them, and the servers with their state.

        Raises:
            Unreachable: if it cannot be reached.
        """
        return status(self.machine)

    def doctor(self, *, port: int | None = None, paths: Sequence[str] = ()) -> DoctorReport:
        """Checks the way in and the machine; changes nothing.

        Raises:
            Unreachable: if it cannot be reached.
        """
        return doctor(self.machine, port=port, paths=paths)

    def reset_gpus(
        self,
        *,
        dry_run: bool = False,
        timeout_s: float = 60.0,
        grace_s: float = 5.0,
        progress: Progress = unwatched,
    ) -> ResetReport:
        """Kills what is stale and waits for the drain: see :func:`~eagleops.workflows.reset.reset`.

        Raises:
            Unreachable: if it cannot be reached.
        """
        return reset(
            self.machine, dry_run=dry_run, timeout_s=timeout_s, grace_s=grace_s, progress=progress
        )

    def launch(
        self,
        profile: str | Profile,
        *,
        name: str | None = None,
        lint_first: bool = True,
        reset_first: bool = True,
        wait: bool = True,
        verify: bool = True,
        timeout_s: float = READY_LIMIT_S,
        record: bool = True,
        progress: Progress = unwatched,
    ) -> Server:
        """Resets, starts a profile and waits until it is ready; ``report`` holds the rest.

        The profile may be given by its name. See :func:`eagleops.workflows.launch.launch`.

        Raises:
            ProfileError, CheckFailed, Unreachable: as there.
        """
        report = self.launch_report(
            profile,
            name=name,
            lint_first=lint_first,
            reset_first=reset_first,
            wait=wait,
            verify_after=verify,
            timeout_s=timeout_s,
            record=record,
            progress=progress,
        )
        return Server(self.machine, report.server.name, report, self.ledger)

    def launch_report(
        self, profile: str | Profile, *, record: bool = True, **settings: Any
    ) -> LaunchReport:
        """As :meth:`launch`, for whoever wants the report alone.

        Args:
            profile: What to start, or its name.
            record: Record the run in the inventory's ledger.
            settings: As :func:`eagleops.workflows.launch.launch` takes them.

        Raises:
            ProfileError, CheckFailed, Unreachable: as there.
        """
        chosen = self.profile(profile) if isinstance(profile, str) else profile
        if not record:
            return launch(self.machine, chosen, **settings)
        return launch_and_record(self.ledger, self.machine, chosen, **settings)

    def trend(self, profile: str | Profile, **settings: Any) -> TrendReport:
        """How a figure of a profile moved here, run by run, and when it changed.

        Args:
            profile: Its name, or the profile.
            settings: ``metric``, ``limit``, ``pin`` and the limits in percent, as
                :func:`eagleops.workflows.trend.trend` takes them.

        Raises:
            UsageError, LedgerError: as there. No machine is asked.
        """
        name = profile if isinstance(profile, str) else profile.name
        return trend(self.ledger, name, self.name, **settings)

    def server(self, name: str | None = None) -> Server:
        """The launched server of that name; the only one without a name.

        Raises:
            CheckFailed: if there is none.
            UsageError: if there are several and none was named.
            Unreachable: if the host cannot be reached.
        """
        return Server(self.machine, the_server(self.machine, name), ledger=self.ledger)

    def run(
        self,
        argv: Argv,
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float | None = None,
    ) -> Completed:
        """Runs one command over there; no shell reads it, and its bytes arrive as they are.

        Args:
            argv: The command.
            env: Its whole environment; None for the session's own.
            stdin: What it reads.
            timeout_s: Its limit in seconds; SIGKILL ends it then.

        Raises:
            OperationFailed: ``not_found``, ``not_executable``, ``time_limit``.
            Unreachable: if the host cannot be reached, or was lost.
        """
        encoded = encode(argv)
        result = self.machine.call(
            "execute",
            argv=_as_json(encoded),
            env=None if env is None else dict(env),
            stdin=base64.b64encode(stdin).decode("ascii"),
            time_limit_s=timeout_s,
        )
        return Completed(
            argv=encoded,
            exit_status=result["exit_status"],
            stdout=base64.b64decode(result["stdout"]),
            stderr=base64.b64decode(result["stderr"]),
            elapsed_s=result["elapsed_s"],
        )


def _as_json(argv: Sequence[bytes]) -> list[str]:
    return [argument.decode("utf-8", "surrogateescape") for argument in argv]
