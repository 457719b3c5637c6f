"""A transport through another one: into a container, or to another user."""

from __future__ import annotations

import attrs

from eagleops.errors import ConnectFailed
from eagleops.transport.base import Argv, Channel, Completed, Transport
from eagleops.transport.completion import complete
from eagleops.transport.wrappers import Docker, Incus, LxcAttach, Pct, Sudo, Wrapper

__all__ = ["Docker", "Incus", "InsideTransport", "LxcAttach", "Pct", "Sudo", "Wrapper"]


@attrs.define(eq=False)
class InsideTransport:
    """Runs everything with a wrapper's prefix through an outer transport.

    They compose: ``InsideTransport(InsideTransport(ssh, Pct(129)), Docker("sglang"))``.

    Attributes:
        outer: The way to the machine that holds the container; it is shared, and stays
            open when this one is closed.
        wrapper: The way in from there.
    """

    outer: Transport
    wrapper: Wrapper

    @property
    def where(self) -> str:
        """The way in, outermost first."""
        return f"{self.outer.where} > {self.wrapper.where}"

    def open(self, argv: Argv, *, timeout_s: float | None = None) -> Channel:
        """As :meth:`eagleops.transport.base.Transport.open`."""
        return self.outer.open(self.wrapper.argv(argv), timeout_s=timeout_s)

    def run(self, argv: Argv, *, stdin: bytes = b"", timeout_s: float | None = None) -> Completed:
        """As :meth:`eagleops.transport.base.Transport.run`.

        A command that failed without a word on stdout, and with the wrapper's own refusal on
        stderr, was never run: that is a ConnectFailed, or is tried in the way that works.
        """
        completed = complete(self, argv, stdin=stdin, timeout_s=timeout_s)
        if completed.exit_status != 0 and not completed.stdout:
            stderr = completed.stderr.decode("utf-8", "replace")
            if self.adapt(stderr):
                return self.run(argv, stdin=stdin, timeout_s=timeout_s)
            if (refused := self.explain(stderr)) is not None:
                raise refused
        return completed

    def explain(self, stderr: str) -> ConnectFailed | None:
        """As :meth:`eagleops.transport.base.Transport.explain`."""
        refusal = self.wrapper.refusal(stderr)
        if refusal is None:
            return self.outer.explain(stderr)
        return ConnectFailed(
            problem=refusal.problem, where=self.where, way_out=refusal.way_out, host=self.where
        )

    def adapt(self, stderr: str) -> bool:
        """As :meth:`eagleops.transport.base.Transport.adapt`."""
        refusal = self.wrapper.refusal(stderr)
        if refusal is None or refusal.instead is None:
            return self.outer.adapt(stderr)
        self.wrapper = refusal.instead
        return True

    def close(self) -> None:
        """Nothing: the outer transport belongs to its maker."""
