"""One host's night: every check in its order, and the host put right whatever happens."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import attrs

from eagleops.errors import EagleError, HostKeyRefused, OperationFailed, Unreachable
from eagleops.workflows.nightly import changes, commands, looking, serving
from eagleops.workflows.nightly.clearing import Busy, Clearing
from eagleops.workflows.nightly.holding import HELD, Hold, held
from eagleops.workflows.nightly.limits import Ended
from eagleops.workflows.nightly.report import CANNOT_TELL
from eagleops.workflows.nightly.restoring import end_launched, put_right
from eagleops.workflows.nightly.users import Users
from eagleops.workflows.nightly.visit import Visit

# A link that breaks so often in one night is no way to measure.
TRIES = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0


@attrs.define(eq=False)
class HostPass:
    """One host in one night.

    Attributes:
        ended: Why it ended early; None where it came to its end.
    """

    visit: Visit
    ended: Ended | None = None
    _lost: int = attrs.field(default=0, init=False)

    def run(self) -> None:
        """Makes every check that was not made yet; a host that is lost is awaited."""
        with _felt(self.visit):
            self._run()

    def _run(self) -> None:
        try:
            self._knock()
        except Ended as ended:
            self.ended = ended
            self._left_out(ended)
            return
        except Unreachable as error:
            self._unreachable(error, "cannot be reached")
            return
        while not self._through() and self._regained():
            pass

    def _through(self) -> bool:
        """Whether the host was seen to its end, or was lost on the way."""
        try:
            self._held(go_on=self._lost < TRIES and self.ended is None)
        except Unreachable as error:
            self._lost += 1
            self._unreachable(error, "was lost")
            return self._lost > TRIES
        except EagleError as error:
            # Other hosts have their own night.
            why = f"could not be looked at, or not be put right: {error.in_a_line}"
            self.visit.skipped("busy", why, facts={CANNOT_TELL: True})
        return True

    def _knock(self) -> None:
        self.visit.heading("the way in")
        looking.reach(self.visit)

    def _held(self, *, go_on: bool) -> None:
        """The checks and what comes after them, while nobody else's night is at the host.

        Raises:
            Unreachable: if the host is lost, and could not be put right.
        """
        visit = self.visit
        nights = visit.log.store.folder.absolute()
        try:
            with held(visit.machine, visit.suite.name, nights=str(nights)) as hold:
                self._guarded_steps(hold, go_on=go_on)
        except OperationFailed as failed:
            if failed.kind != HELD:
                raise
            serving.tell_busy(visit, Busy(f"left alone: {failed.problem}", Users()))
            visit.log.settle(visit.host, done=None)

    def _guarded_steps(self, hold: Hold, *, go_on: bool) -> None:
        visit = self.visit
        try:
            if go_on:
                with visit.watch.shielded():
                    end_launched(visit)
                self._steps(hold)
        except Ended as ended:
            self.ended = ended
        finally:
            try:
                with visit.watch.shielded():
                    put_right(visit)
            except Ended as hurried:  # a second Ctrl-C: what is left stands in the journal
                self.ended = hurried
        self._tell_regained()
        if self.ended is not None:
            self._left_out(self.ended)

    def _left_out(self, ended: Ended) -> None:
        """Says what the night did not come to."""
        visit, limit_s = self.visit, self.visit.suite.limit_s
        limit = f"the night's limit of {limit_s:,.0f} s passed before"
        why = limit if ended.reason == "time_limit" else "the night was interrupted before"
        left = [("launch", profile.name, "profile") for _, profile in visit.profiles]
        left += [("command", name, "command") for name in commands.names(visit.suite)]
        for kind, subject, step in left:
            if not visit.log.is_done(visit.host, f"{step}:{subject}"):
                visit.skipped(kind, why, subject)

    def _steps(self, hold: Hold) -> None:
        visit = self.visit
        looking.look(visit)
        hold.check()
        changes.look(visit)
        clearing = Clearing(visit)
        serving.run_commands(visit, clearing)
        if not (visit.profiles or commands.names(visit.suite, needs_idle_gpus=True)):
            self._only_tell(visit.users())
            return
        for check, profile in visit.profiles:
            hold.check()
            serving.serve(visit, clearing, check, profile)

    def _only_tell(self, users: Users) -> None:
        if users.anybody:
            serving.tell_busy(self.visit, Busy(f"used by {users.words}", users))
        else:
            self.visit.passed("busy", "nobody uses the GPUs")

    def _unreachable(self, error: Unreachable, what: str) -> None:
        """Says so, once for all checks of the host: nothing is known of the others."""
        visit = self.visit
        message = f"{what}: {error.in_a_line}"
        kind = "host-key" if isinstance(error, HostKeyRefused) else "reach"
        visit.faulty(kind, message, facts={"error": type(error).__name__})

    def _regained(self) -> bool:
        """Whether the host answers again in time."""
        visit = self.visit
        deadline, pause_s = time.monotonic() + visit.regain_s, FIRST_PAUSE_S
        visit.told_heading("waiting for the host to come back")
        try:
            with visit.watch.shielded():
                while not self._answers():
                    if time.monotonic() >= deadline:
                        return False
                    visit.watch.pause(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        except Ended as hurried:
            self.ended = hurried
            return False
        return True

    def _answers(self) -> bool:
        try:
            self.visit.machine.call("snapshot", servers=False)
        except Unreachable:
            return False
        except EagleError:  # it has something to say, so it is there
            return True
        return True

    def _tell_regained(self) -> None:
        if self._lost:
            times = "once" if self._lost == 1 else f"{self._lost} times"
            self.visit.warned("reach", f"the link was lost {times} in this night, and came back")


@contextlib.contextmanager
def _felt(visit: Visit) -> Iterator[None]:
    """Lets the night's limits end what the machine is at."""
    machines = [one for one in (visit.machine, visit.machine.outer) if one is not None]
    before = [machine.pulse for machine in machines]
    for machine in machines:
        machine.pulse = visit.watch
    try:
        yield
    finally:
        for machine, pulse in zip(machines, before, strict=True):
            machine.pulse = pulse
