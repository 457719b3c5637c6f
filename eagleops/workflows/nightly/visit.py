"""A visit: what every check of one host in one night needs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import CannotTell, EagleError, OperationFailed, Unreachable
from eagleops.inventory import Inventory
from eagleops.inventory.suite import ProfileCheck, SuiteEntry
from eagleops.machine import Machine
from eagleops.nights.finding import check_name
from eagleops.nights.rule import Rule
from eagleops.profile import Profile
from eagleops.snapshot import Snapshot, container_processes
from eagleops.workflows.drain import drain
from eagleops.workflows.nightly.limits import Ended, Watch
from eagleops.workflows.nightly.night_log import NightLog
from eagleops.workflows.nightly.report import CANNOT_TELL
from eagleops.workflows.nightly.users import Users, narrowed, users_of
from eagleops.workflows.progress import Progress, Step

# How the stage of a step begins that tells of what is looked at next.
HEADING = "$ nightly: "
# A trillion parameters' memory drains in a few seconds once its holder has gone.
SETTLE_S = 20.0


@attrs.define(eq=False, kw_only=True)
class Visit:
    """One host in one night.

    Attributes:
        profiles: What is launched, in order, each with what the suite says of it.
        ledger: The ledger's file; None for the user's own.
        measuring: Held while a profile is measured: one at a time on this client.
        bench_settings: As :func:`eagleops.workflows.bench.bench` takes them.
        regain_s: How long a host that was lost is awaited.
        told_by_doctor: What :meth:`doctor_facts` tells, once somebody has asked.
    """

    machine: Machine
    suite: SuiteEntry
    inventory: Inventory
    profiles: tuple[tuple[ProfileCheck, Profile], ...]
    log: NightLog
    watch: Watch
    ledger: Path | None
    tell: Progress
    measuring: threading.Lock
    bench_settings: Mapping[str, Any]
    regain_s: float
    told_by_doctor: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    _settled: bool = attrs.field(default=False, init=False)

    @property
    def host(self) -> str:
        """As in hosts.yaml."""
        return self.machine.name

    @property
    def conf_files(self) -> list[str]:
        """The files that the suite's profiles tell NCCL to read."""
        named = {profile.env.get("NCCL_CONF_FILE", "") for _, profile in self.profiles}
        return sorted(path for path in named if path.startswith("/"))

    def rule(self, kind: str, subject: str = "") -> Rule:
        """What the suite asks of a check."""
        return self.suite.rule(check_name(kind, subject))

    def progress(self, step: Step) -> None:
        """Tells of a step, and ends what is at work where the night is over."""
        self.tell(step)
        self.watch()

    def heading(self, text: str) -> None:
        """Tells what is looked at next."""
        self.progress(self._heading(text))

    def told_heading(self, text: str) -> None:
        """The same, whether or not the night is over."""
        self.tell(self._heading(text))

    def passed(self, kind: str, message: str, subject: str = "", **more: Any) -> None:
        """A check that is well, unless the suite leaves it out."""
        rule = self.rule(kind, subject)
        if rule.on:
            self.log.add(rule.passed(self.host, message, subject=subject, **more))

    def faulty(self, kind: str, message: str, subject: str = "", **more: Any) -> None:
        """A check that is not, as severe as the suite has it."""
        rule = self.rule(kind, subject)
        if rule.on:
            self.log.add(rule.faulty(self.host, message, subject=subject, **more))

    def warned(self, kind: str, message: str, subject: str = "", **more: Any) -> None:
        """A check that is not well, and no failure however severe the suite has it."""
        rule = self.rule(kind, subject)
        if rule.on:
            told = rule.faulty(self.host, message, subject=subject, **more)
            self.log.add(attrs.evolve(told, state="warn"))

    def skipped(self, kind: str, why: str, subject: str = "", **more: Any) -> None:
        """A check that was not made."""
        rule = self.rule(kind, subject)
        if rule.on:
            self.log.add(rule.skipped(self.host, why, subject=subject, **more))

    @contextlib.contextmanager
    def guarded(self, kind: str, subject: str = "") -> Iterator[None]:
        """Lets a check that cannot be made cost that check alone.

        Raises:
            Unreachable, Ended: the host, or the night, is over.
        """
        try:
            yield
        except (Unreachable, Ended):
            raise
        except EagleError as error:
            why = f"could not be looked at: {error.in_a_line}"
            blind = isinstance(error, CannotTell)
            self.skipped(kind, why, subject, facts={CANNOT_TELL: True, "blind": blind})
        except Exception as error:  # noqa: BLE001 - a night goes on, and says what it met
            why = f"internal error, a bug of eagleops: {type(error).__name__}: {error}"
            self.skipped(kind, why, subject, facts={CANNOT_TELL: True})

    def once(self, step: str) -> bool:
        """Whether a step is still to be taken in this night."""
        self.watch()
        return not self.log.is_done(self.host, step)

    def doctor_facts(self) -> Mapping[str, Any]:
        """What the ``doctor`` operation tells, asked once a visit.

        Raises:
            Unreachable: if the host cannot be asked.
        """
        if not self.told_by_doctor:
            self.told_by_doctor = self.machine.call("doctor", conf_files=self.conf_files)
        return self.told_by_doctor

    def users(self, gpus: Collection[int] | None = None) -> Users:
        """Who uses the GPUs now.

        Args:
            gpus: The indices of those that matter; None for all.

        Raises:
            Unreachable: if the host cannot be asked.
        """
        look = narrowed(Snapshot.from_dict(self.machine.call("snapshot")), gpus)
        outer = self._outer_look()
        if outer is not None and gpus is not None:
            here = {gpu.uuid for gpu in look.gpus}
            outer = narrowed(outer, [gpu.index for gpu in outer.gpus if gpu.uuid in here])
        return users_of(look, outer, self.machine.entry.idle_mib)

    def settled_users(self, gpus: Collection[int] | None = None) -> Users:
        """The same, once memory that nobody holds has had the time to drain.

        Raises:
            Unreachable: if the host cannot be asked.
        """
        users = self.users(gpus)
        if not users.unseen or self._settled:
            return users
        self._settled = True  # what has not drained by then never will
        with contextlib.suppress(OperationFailed):  # unreadable GPUs are told by others
            drain(self.machine, users.levels, timeout_s=SETTLE_S, progress=self.progress)
        return self.users(gpus)

    def _heading(self, text: str) -> Step:
        return Step(f"{HEADING}{self.host}: {text}")

    def _outer_look(self) -> Snapshot | None:
        """What a container's host sees; None where it is none, or its host cannot be asked."""
        machine = self.machine
        if machine.outer is None or machine.container is None:
            return None
        try:
            seen = Snapshot.from_dict(machine.outer.call("snapshot", servers=False))
        except Unreachable:
            return None
        return container_processes(seen, machine.container)
