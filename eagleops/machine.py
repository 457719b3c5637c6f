"""Machines: a host or a container as something that can be asked.

A :class:`Fleet` opens the machines of one inventory and shares what they can share: one
connection a host, for its containers too.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.errors import CannotTell, CheckFailed, Unreachable
from eagleops.inventory import ContainerEntry, HostEntry, Inventory
from eagleops.session import SILENCE_S, Event, OnEvent, Pulse, Session, no_pulse
from eagleops.transport.base import Transport


@attrs.define(eq=False)
class Machine:
    """One target: its transport, and the sessions open on it.

    Attributes:
        name: As in hosts.yaml.
        entry: What hosts.yaml says of it.
        options: What a session is told of the machine (:mod:`eagleops.remote.context`).
        launch_env: What servers launched here get beside their profile's environment.
        outer: The host that a container stands on; None for a host.
        pulse: Called with each sign of life of each operation, by the thread that asked for
            it: what it raises (a time limit's end, say) calls the operation off.
    """

    name: str
    entry: HostEntry | ContainerEntry = attrs.field(repr=False)
    transport: Transport = attrs.field(repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    launch_env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    outer: Machine | None = attrs.field(default=None, repr=False)
    pulse: Pulse = attrs.field(default=no_pulse, repr=False)
    _idle: list[Session] = attrs.field(factory=list, init=False, repr=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False, repr=False)

    @property
    def where(self) -> str:
        """The machine as messages name it."""
        return self.transport.where

    @property
    def container(self) -> str | None:
        """The container's id on its host (a vmid for pct); None for a host."""
        return self.entry.identifier if isinstance(self.entry, ContainerEntry) else None

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """Lends a session: an idle one, or a new one where all are at work.

        Raises:
            Unreachable: if the machine cannot be reached.
        """
        with self._named():
            session = self._take() or Session.open(
                self.transport, python=self.entry.python, options=self.options
            )
            try:
                yield session
            finally:
                with self._lock:
                    if session.usable:
                        self._idle.append(session)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Errors know a machine by its address: here they learn its name in hosts.yaml."""
        try:
            yield
        except (Unreachable, CheckFailed, CannotTell) as error:
            if error.host == self.where:
                error.host = self.name
            elif self.outer is not None and error.host == self.outer.where:
                error.host = self.outer.name
            raise

    def call(
        self,
        op: str,
        *,
        time_limit_s: float | None = None,
        on_event: OnEvent | None = None,
        silence_s: float = SILENCE_S,
        **args: Any,
    ) -> dict[str, Any]:
        """Runs one operation and returns its result: see :meth:`Session.call`."""
        with self.session() as session:
            return session.call(
                op,
                time_limit_s=time_limit_s,
                on_event=on_event,
                silence_s=silence_s,
                pulse=self.pulse,
                **args,
            )

    def stream(self, op: str, **args: Any) -> Iterator[Event]:
        """Runs one operation and yields its events: see :meth:`Session.stream`."""
        with self.session() as session:
            yield from session.stream(op, pulse=self.pulse, **args)

    def launch_env_for(self, sim: Mapping[str, Any]) -> dict[str, str]:
        """:attr:`launch_env`, with a profile's ``sim:`` section where the machine is simulated."""
        if not (isinstance(self.entry, HostEntry) and self.entry.transport == "sim"):
            return dict(self.launch_env)
        return {**self.launch_env, "EAGLEOPS_SIM_PROFILE": json.dumps(dict(sim))}

    def close(self) -> None:
        """Ends the idle sessions."""
        while (session := self._take()) is not None:
            session.close()

    def _take(self) -> Session | None:
        with self._lock:
            return self._idle.pop() if self._idle else None


@attrs.define(eq=False)
class Fleet:
    """The machines of one inventory, opened when they are first asked for."""

    inventory: Inventory
    _machines: dict[str, Machine] = attrs.field(factory=dict, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)

    def machine(self, name: str | None = None) -> Machine:
        """The machine of that name; the inventory's default host without one.

        Raises:
            InventoryError: if the inventory has no such host or container.
        """
        entry = self.inventory.target(name)
        with self._lock:
            if entry.name not in self._machines:
                self._machines[entry.name] = self._open(entry)
            return self._machines[entry.name]

    def close(self) -> None:
        """Ends every session and connection."""
        with self._lock:
            machines = list(self._machines.values())
            self._machines.clear()
        for machine in machines:
            machine.close()
        for machine in machines:
            machine.transport.close()

    def _open(self, entry: HostEntry | ContainerEntry) -> Machine:
        if isinstance(entry, HostEntry):
            return _open_host(entry)
        outer = self.machine(entry.on)
        options = {"state_home": entry.state_home} if entry.state_home else {}
        return Machine(
            entry.name, entry, _container_transport(entry, outer.transport), options, outer=outer
        )


def _open_host(entry: HostEntry) -> Machine:
    options: dict[str, Any] = {"state_home": entry.state_home} if entry.state_home else {}
    if entry.transport == "sim":
        from eagleops.sim.box import SimBox

        box = SimBox.prepare(entry.sim.directory, gpus=entry.sim.gpus)
        return Machine(entry.name, entry, box.transport(), box.options, box.environment)
    if entry.transport == "local":
        from eagleops.transport.local import LocalTransport

        return Machine(entry.name, entry, LocalTransport(where=entry.name), options)
    return Machine(entry.name, entry, _ssh(entry), options)


def _container_transport(entry: ContainerEntry, outer: Transport) -> Transport:
    if entry.address:
        return _ssh(entry)
    from eagleops.transport.inside import InsideTransport
    from eagleops.transport.wrappers import Docker, Incus, LxcAttach, Pct, Wrapper

    wrappers: dict[str, Wrapper] = {
        "pct": Pct(entry.vmid or 0, program=entry.program or "pct"),
        "docker": Docker(entry.identifier),
        "lxc": LxcAttach(entry.identifier),
        "incus": Incus(entry.identifier),
    }
    return InsideTransport(outer, wrappers[entry.kind])


def _ssh(entry: HostEntry | ContainerEntry) -> Transport:
    from eagleops.transport.ssh import SshTransport

    return SshTransport(entry.address, options=entry.ssh)
