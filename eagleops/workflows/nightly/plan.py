"""What a night is going to do: which checks, on which hosts, with which limits. Asks no machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from eagleops.errors import UsageError
from eagleops.inventory import ContainerEntry, HostEntry, Inventory
from eagleops.inventory.suite import COMMAND, ProfileCheck, SuiteEntry
from eagleops.nights.catalogue import KINDS
from eagleops.nights.finding import check_name, kind_and_subject
from eagleops.nights.rule import asked
from eagleops.phrases import counted, minute
from eagleops.profile import Profile
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.record import secrets_of
from eagleops.workflows.secrets import webhook_secrets


@attrs.frozen(kw_only=True)
class NightPlan:
    """A night before it begins.

    Attributes:
        hosts: Those that it looks at.
        profiles: What it launches, in order, each with what the suite says of it.
        machine_of: Per host a name of the machine that it stands on: hosts of one are looked
            at one after the other.
        asked: As in :class:`~eagleops.nights.night.Night`.
        take_up: When the night began that would be taken up; None for none.
    """

    inventory: Inventory
    suite: SuiteEntry
    hosts: tuple[str, ...]
    profiles: tuple[tuple[ProfileCheck, Profile], ...]
    machine_of: Mapping[str, str]
    asked: Mapping[str, tuple[str, ...]]
    take_up: str | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What its profiles and webhooks hold that no night may."""
        of_profiles = (value for _, profile in self.profiles for value in secrets_of(profile))
        of_webhooks = (value for hook in self.suite.notify for value in webhook_secrets(hook))
        return (*of_profiles, *of_webhooks)

    @property
    def ok(self) -> bool:
        """Whether it can be done."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The plan as the ``nightly --dry-run --json`` document's body."""
        suite = self.suite
        return {
            "ok": self.ok,
            "host": self.hosts[0] if len(self.hosts) == 1 else None,
            "dry_run": True,
            "suite": suite.name,
            "hosts": list(self.hosts),
            "checks": [
                {"id": check, "host": host, **self._ruled(check)}
                for host in self.hosts
                for check in self.asked[host]
            ],
            "profiles": [{"profile": c.profile, "pin": c.pin} for c, _ in self.profiles],
            "busy": suite.busy,
            "restore": suite.restore,
            "limit_s": suite.limit_s,
            "schedule": suite.schedule,
            "take_up": self.take_up,
        }

    def view(self) -> View:
        """A line a check, and what is done where somebody uses the GPUs."""
        same = len({self.asked[host] for host in self.hosts}) == 1
        tables = [self._table(self.hosts[0], ", ".join(self.hosts))] if same else []
        if not same:
            tables = [self._table(host, host) for host in self.hosts]
        notes = [Text(self._manners()), Text(self._telling())]
        if self.take_up:
            told = f"The night of {minute(self.take_up)} was cut off, and is taken up."
            notes.append(Text(told, Tone.WARNING))
        profiles = ", ".join(check.profile for check, _ in self.profiles) or "no profile"
        hosts = counted(len(self.hosts), "host")
        head = f"{self.suite.name}: {hosts}, {profiles}; nothing was touched"
        return View(tuple(tables), Text(f"{head} (dry run)"), tuple(notes))

    def _repr_html_(self) -> str:
        return self.view().to_html()

    def _table(self, host: str, title: str) -> Table:
        rows = []
        for check in self.asked[host]:
            ruled = self._ruled(check)
            limit = "" if ruled["limit"] is None else f"{ruled['limit']:,g} {ruled['unit']}"
            kind, _ = kind_and_subject(check)
            rows.append((check, ruled["severity"], limit.strip(), KINDS[kind].reads))
        columns = (
            Column("check", wrap=False),
            Column("a fault is", wrap=False),
            Column("limit", "right", wrap=False),
            Column("looks at"),
        )
        return Table(columns, tuple(rows), title=title)

    def _ruled(self, check: str) -> dict[str, Any]:
        kind, subject = kind_and_subject(check)
        rule = self.suite.rule(check)
        limit, unit = rule.limit, rule.kind.unit
        command = self.suite.commands.get(subject) if kind == COMMAND else None
        if command is not None:
            limit = command.lowest if command.lowest is not None else command.highest
            unit = command.unit
        return {"severity": rule.severity, "limit": limit, "unit": unit}

    def _manners(self) -> str:
        suite = self.suite
        used = {
            "skip": "what needs idle GPUs is skipped",
            "wait": f"it is waited for {_span(suite.wait_limit_s)} at most",
            "force": "a reset ends what it may",
        }[suite.busy]
        restored = ""
        if suite.restore:
            restored = "; a server that eagleops launched is stopped, and started again afterwards"
        return (
            f"Where somebody uses the GPUs, {used}{restored}. "
            f"The night ends after {_span(suite.limit_s)}."
        )

    def _telling(self) -> str:
        told = ", ".join(self.suite.webhooks) or "nobody: `notify` names no webhook"
        return f"A timer starts it at {self.suite.schedule}. News goes to {told}."


def _span(seconds: float) -> str:
    """Whole hours or minutes where it is so many, else seconds."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:g} s"


def plan_night(inventory: Inventory, suite: SuiteEntry, hosts: Sequence[str] = ()) -> NightPlan:
    """What a night of ``suite`` does.

    Args:
        inventory: Whose hosts and profiles are meant.
        suite: What is checked.
        hosts: Of the suite's hosts (or groups of them), those alone; all of them without.

    Raises:
        UsageError: if a host is not one of the suite's.
        InventoryError, ProfileError: if a host or a profile is not there.
    """
    every = {entry.name: entry for entry in inventory.suite_targets(suite)}
    chosen = tuple(dict.fromkeys(entry.name for name in hosts for entry in inventory.targets(name)))
    for name in chosen:
        if name not in every:
            raise UsageError(
                problem=f"{name} is no host of the suite {suite.name}",
                where=suite.origin or inventory.file,
                way_out=f"Its hosts are {', '.join(every)}.",
            )
    names = tuple(name for name in every if name in chosen or not chosen)
    profiles = tuple((check, inventory.profile(check.profile)) for check in suite.profiles)
    checks = asked(suite.rule, [check.profile for check in suite.profiles], suite.commands)
    return NightPlan(
        inventory=inventory,
        suite=suite,
        hosts=names,
        profiles=profiles,
        machine_of={name: _machine(inventory, entry) for name, entry in every.items()},
        asked={
            name: tuple(c for c in checks if c not in _pointless(suite, entry))
            for name, entry in every.items()
        },
    )


def _machine(inventory: Inventory, entry: HostEntry | ContainerEntry) -> str:
    """What tells the machine that an entry stands on from another; several may name one."""
    host = inventory.hosts[entry.on] if isinstance(entry, ContainerEntry) else entry
    if host.transport == "ssh":
        return f"ssh {host.address.rpartition('@')[2]}"
    return f"sim {host.sim.directory}" if host.transport == "sim" else host.transport


def _pointless(suite: SuiteEntry, entry: HostEntry | ContainerEntry) -> set[str]:
    """The checks that nothing is ever found by on that host."""
    found = {check_name("pin", check.profile) for check in suite.profiles if check.pin is None}
    if not entry.by_ssh:
        found.add("host-key")
    if not suite.restore:
        found.add("restore")
    return found
