"""The suite's manners: GPUs that somebody uses are left alone, waited for, or cleared.

==========  ===========================================================================
``skip``    what needs idle GPUs is skipped, with the holders named
``wait``    the machine is asked again and again until they are free, or the limit passes
``force``   a reset ends what it may end; what it may not (another container's) is left alone,
            and the profiles are skipped
==========  ===========================================================================

With ``restore``, servers that eagleops launched are stopped and started again afterwards, if
they can be, and do not work at that moment. What a dead server left behind is ended in any case.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import attrs

from eagleops.errors import CannotTell, CheckFailed
from eagleops.server import ServerFacts
from eagleops.workflows.drain import drain
from eagleops.workflows.nightly import looking
from eagleops.workflows.nightly.night_log import RESTORE
from eagleops.workflows.nightly.restoring import WayBack, way_back
from eagleops.workflows.nightly.users import Users
from eagleops.workflows.nightly.visit import Visit
from eagleops.workflows.progress import Step
from eagleops.workflows.reset import reset
from eagleops.workflows.stop import stop

DRAIN_LIMIT_S = 60.0
# A server may finish what it was asked before it goes.
GRACE_S = 30.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0


@attrs.define(eq=False)
class Busy(Exception):
    """The GPUs are used, and stay so.

    Attributes:
        words: By whom, and why they were not freed.
        users: Who it is.
    """

    words: str
    users: Users


@attrs.define(eq=False)
class Clearing:
    """One host's GPUs, made free before each of its profiles.

    Attributes:
        waited_s: How long was waited so far: the limit is one for all profiles.
        stopped: The servers that were stopped, and are started again.
    """

    visit: Visit
    waited_s: float = 0.0
    stopped: list[str] = attrs.field(factory=list, init=False)
    _ways: dict[str, WayBack | None] = attrs.field(factory=dict, init=False)

    def free(self, gpus: Collection[int] | None = None) -> dict[str, int]:
        """Makes the GPUs free as the suite allows.

        Args:
            gpus: The indices of those that are needed; None for all. Who uses others is left
                alone.

        Returns:
            The memory at which each of them counts as free, in MiB by its index.

        Raises:
            Busy: if they are used.
            Unreachable: if the machine was lost.
        """
        suite = self.visit.suite
        users = self.visit.settled_users(gpus)
        if suite.busy == "wait":
            users = self._waited(users, gpus)
        blockers = self._blockers(users)
        if blockers:
            raise self._refusal(users, blockers)
        if not (users.anybody or users.stale):
            return self._drained(users)
        if suite.restore:
            self._stop(users)
        self._end_stale(users)
        left = users.others or (users.servers and not suite.restore)
        if suite.busy == "force" and left:
            self._reset(users, gpus)
        now = self.visit.users(gpus)
        if now.anybody:  # somebody came meanwhile
            raise Busy(f"used by {now.words}", now)
        return self._drained(now)

    def _blockers(self, users: Users) -> list[str]:
        """Why the GPUs may not be cleared, a reason each; none where they may."""
        suite = self.visit.suite
        forced = suite.busy == "force"
        found = ["what another container or user runs is never ended"] if users.foreign else []
        if users.unseen:
            found.append("memory that nobody in sight holds cannot be freed from here")
        if users.others and not forced:
            found.append(f"`busy: {suite.busy}` ends nobody's work")
        for server in users.servers:
            if suite.restore:
                found += self._kept(server, working=server.name in users.working and not forced)
            elif not forced:
                found.append(f"{server.name} serves, and `restore` is not set")
        return found

    def _kept(self, server: ServerFacts, *, working: bool) -> list[str]:
        """Why ``restore`` leaves a server alone."""
        if working:
            return [f"{server.name} works at this moment"]
        if self._way_back(server) is not None:
            return []
        why = "its launch is in no ledger of this client, and hosts.yaml has no profile"
        which = f"{server.profile} of its engine, model and port"
        return [f"{server.name} could not be started again from here: {why} {which}"]

    def _way_back(self, server: ServerFacts) -> WayBack | None:
        if server.launch_id not in self._ways:
            self._ways[server.launch_id] = way_back(self.visit, server)
        return self._ways[server.launch_id]

    def _waited(self, users: Users, gpus: Collection[int] | None) -> Users:
        """Waits until nothing keeps the GPUs from being cleared, or the limit has passed."""
        visit, limit_s = self.visit, self.visit.suite.wait_limit_s
        if not self._blockers(users):
            return users
        visit.progress(Step("wait"))
        began_s, before_s, pause_s = time.monotonic(), self.waited_s, FIRST_PAUSE_S
        while self._blockers(users) and self.waited_s < limit_s:
            state = {"event": "state", "state": "wait", "detail": f"used by {users.words}"}
            visit.progress(Step("wait", state))
            visit.watch.pause(min(pause_s, limit_s - self.waited_s))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            users = visit.users(gpus)
            self.waited_s = before_s + time.monotonic() - began_s
        return users

    def _refusal(self, users: Users, reasons: list[str]) -> Busy:
        waited = ""
        if self.visit.suite.busy == "wait":
            waited = f", after {self.waited_s:.0f} s of waiting"
        return Busy(f"used by {users.words}{waited} ({'; '.join(reasons)})", users)

    def _stop(self, users: Users) -> None:
        """Stops what is started again afterwards; that is noted before."""
        visit = self.visit
        for server in users.servers:
            back = self._way_back(server)
            if back is None:
                continue
            noted = list(visit.log.journal(visit.host).get(RESTORE) or ())
            visit.log.note(visit.host, **{RESTORE: [*noted, back.to_dict()]})
            visit.heading(f"stop {server.name}, which is started again afterwards")
            with visit.watch.shielded():  # a server that half ends is worse than either
                ended = stop(visit.machine, server.name, grace_s=GRACE_S, progress=visit.progress)
            if not ended.ok:
                raise Busy(ended.view().conclusion.text, users)
            self.stopped.append(server.name)
        if users.servers and not visit.users().anybody:
            with visit.guarded("xid"):
                looking.idle_again(visit)

    def _end_stale(self, users: Users) -> None:
        for name, _ in users.stale:
            ended = stop(self.visit.machine, name, progress=self.visit.progress)
            if not ended.ok:
                raise Busy(ended.view().conclusion.text, users)

    def _reset(self, users: Users, gpus: Collection[int] | None) -> None:
        beside = self.visit.users().without(users)
        if gpus is not None and beside.anybody:
            words = f"used by {users.words}; a reset would end {beside.words} too"
            raise Busy(f"{words}, whose GPUs are not asked for", users)
        try:
            done = reset(self.visit.machine, progress=self.visit.progress)
        except CannotTell as blind:
            raise Busy(blind.problem, users) from blind
        if not done.ok:
            raise Busy(f"could not be freed: {done.view().conclusion.text}", users)

    def _drained(self, users: Users) -> dict[str, int]:
        try:
            drained = drain(
                self.visit.machine,
                users.levels,
                timeout_s=DRAIN_LIMIT_S,
                progress=self.visit.progress,
            )
        except CheckFailed as unreadable:
            raise Busy(unreadable.problem, users) from unreadable
        if not drained.drained:
            raise Busy(f"memory is still held: {drained.held}", users)
        return users.levels
