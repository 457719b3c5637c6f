"""A night that is cut off: whatever happens, its server is ended and what ran before runs again."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import eagleops
from eagleops.errors import EagleError, NightsError
from eagleops.inventory import HostEntry
from eagleops.library.nightly import Nights
from eagleops.machine import Machine
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore
from eagleops.streaming.http import STALL_LIMIT_S
from eagleops.workflows.nightly.patterns import LIMIT_S
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.nightly.run import nightly
from eagleops.workflows.progress import Step
from nightly.boxes import Boxes, at, end_all, found, states
from parts.link import Link
from parts.poll import until
from parts.sshd import Sshd, lookup_name, public


def interrupt() -> None:
    """Ctrl-C, as a terminal sends it."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    "stage",
    ["look", "drain", "spawn", "ready", "verify", "record", "bench", "stop"],
)
def test_ctrl_c_ends_a_night_in_a_clear_state_wherever_it_comes(boxes: Boxes, stage: str) -> None:
    """Nothing that the night launched is left, and the server that it had stopped runs again."""
    library = boxes.open("profiles: [baseline], restore: true")
    library.host("sim").launch(library.profile("second"), name="mine")

    report = library.nightly().run(progress=at(stage, interrupt))

    assert report.night.outcome == "interrupted"
    assert report.exit_status == 130
    assert boxes.servers() == {"mine": "ready"}
    assert report.night.journal == {}
    assert found(report, "launch:baseline").state in {"pass", "skip"}


def test_ctrl_c_while_an_answer_does_not_come_is_felt_at_once(boxes: Boxes) -> None:
    """A server that stalls in the middle of its reply is ended, and not waited for."""
    library = boxes.open(sim="fail: stall")
    heard_s: list[float] = []

    def watch(step: Step) -> None:
        if step.stage == "bench" and step.event and not heard_s:
            heard_s.append(time.monotonic())
            interrupt()

    report = library.nightly().run(progress=watch)

    assert report.exit_status == 130
    assert time.monotonic() - heard_s[0] < STALL_LIMIT_S / 2
    assert boxes.servers() == {}


def test_ctrl_c_while_an_expression_never_ends_is_felt_at_once(boxes: Boxes) -> None:
    """Python's ``re`` hears of no signal, and lets no other thread do anything."""
    endless = f"{{run: [echo, {'a' * 60}b], stdout: '^(a+)+$'}}"
    library = boxes.open(f"commands: {{endless: {endless}}}")
    heard_s: list[float] = []

    def watch(step: Step) -> None:
        if step.stage == "$ nightly: sim: command endless":
            heard_s.append(time.monotonic())
            interrupt()

    report = library.nightly().run(progress=watch)

    assert report.exit_status == 130
    assert time.monotonic() - heard_s[0] < LIMIT_S / 2


def test_two_words_at_once_are_one(boxes: Boxes) -> None:
    """SIGTERM with SIGHUP, as systemd may send them, hurry no more than one of them does."""
    library = boxes.open("profiles: [baseline], restore: true")
    library.host("sim").launch(library.profile("second"), name="mine")

    def at_once() -> None:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            os.kill(os.getpid(), number)

    report = library.nightly().run(progress=at("bench", at_once))

    assert report.exit_status == 130
    assert report.night.journal == {}
    assert boxes.servers() == {"mine": "ready"}


@pytest.mark.parametrize("after", [5, 12, 25, 40, 60])
def test_ctrl_c_between_two_words_ends_a_night_in_a_clear_state(boxes: Boxes, after: int) -> None:
    """At whatever event of whatever operation it comes."""
    library = boxes.open("profiles: [baseline], restore: true")
    library.host("sim").launch(library.profile("second"), name="mine")
    heard = itertools.count(1)

    def count(_step: Step) -> None:
        if next(heard) == after:
            interrupt()

    report = library.nightly().run(progress=count)

    assert boxes.servers() == {"mine": "ready"}
    assert report.night.journal == {}
    assert report.exit_status in {0, 130}  # a night may have ended before


def test_a_launch_whose_session_died_without_a_word_is_ended(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reservation would keep every launch away for as long as the dead link lasts."""
    monkeypatch.setattr("eagleops.workflows.nightly.restoring.LANDING_S", 0.3)
    library = boxes.open()
    dead = attrs.evolve(library.host("sim").machine)
    dead.call("reserve", name="nightly-baseline", launch_id="a" * 32)

    report = library.nightly().run()

    assert found(report, "speed:baseline").state == "pass"
    with pytest.raises(EagleError):
        dead.call("snapshot")
    dead.close()


def test_an_interrupted_night_is_no_night_of_the_history(boxes: Boxes) -> None:
    """Nobody was told of it, so what it saw begins in the night after it."""
    library = boxes.open()
    boxes.box().break_gpu(0, temperature_c=80)

    first = library.nightly().run(progress=at("ready", interrupt))
    second = library.nightly().run()

    assert found(first, "temperature").state == "warn"
    assert [fault.check for fault in second.news.began] == ["temperature"]
    assert second.history == ()


def test_news_that_an_interrupted_night_saw_is_told_by_the_next(boxes: Boxes) -> None:
    """What changed since the last night that somebody was told of, not since the one cut short."""
    library = boxes.open()
    library.nightly().run()
    boxes.box().log_xid(0, 79, "GPU has fallen off the bus.")

    interrupted = library.nightly().run(progress=at("ready", interrupt))
    after = library.nightly().run()

    assert (interrupted.night.outcome, found(interrupted, "xid").state) == ("interrupted", "fail")
    assert [event.check for event in after.news.events] == ["xid"]


def test_a_second_ctrl_c_leaves_the_rest_to_the_next_night(boxes: Boxes) -> None:
    """What ran before is noted, and the next night starts it again."""
    library = boxes.open("profiles: [baseline], restore: true")
    library.host("sim").launch(library.profile("second"), name="mine")
    hurried: list[str] = []

    def twice(step: Step) -> None:
        wanted = ("bench", "$ nightly: sim: start mine again")
        if step.stage == dict(enumerate(wanted)).get(len(hurried)):
            hurried.append(step.stage)
            interrupt()

    first = library.nightly().run(progress=twice)
    assert [one["name"] for one in first.night.journal["sim"]["restore"]] == ["mine"]
    assert "not put right yet" in first.notice
    second = library.nightly().run()

    assert "the night of" in second.notice
    assert found(second, "restore:mine").state == "pass"
    assert boxes.servers() == {"mine": "ready"}
    left = [
        night.journal for night in NightStore.beside(boxes.folder / "ledger.db").history("default")
    ]
    assert left == [{}, {}]


def start_client(boxes: Boxes, *words: str) -> subprocess.Popen[str]:
    """A night of a real client process."""
    environment = {**os.environ, "PYTHONPATH": str(Path(eagleops.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-m", "eagleops", "nightly", *words],
        cwd=boxes.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("words", [(), ("--fresh",)], ids=["taken up", "fresh"])
def test_a_client_that_is_killed_mid_launch_is_taken_up(
    boxes: Boxes, words: tuple[str, ...]
) -> None:
    """Findings are kept, its server is ended, what ran before runs again; told once."""
    suite = "profiles: [baseline], restore: true, checks: {disk: {limit: 999999999}}"
    library = boxes.open(suite, sim="fail: hang")
    library.host("sim").launch(library.profile("second"), name="mine")
    client = start_client(boxes)
    until(lambda: boxes.servers().get("nightly-baseline") == "starting")
    client.kill()
    client.communicate()
    assert set(boxes.servers()) == {"nightly-baseline"}

    boxes.write(suite)
    stdout, stderr = start_client(boxes, *words).communicate(timeout=300)

    assert boxes.servers() == {"mine": "ready"}, stderr
    nights = NightStore.beside(boxes.folder / "ledger.db").latest("default", 5)
    assert [night.finished for night in nights] == ([True, False] if words else [True])
    assert [night.journal for night in nights if night.finished] == [{}]
    kept = {finding.id: finding.state for finding in nights[0].findings}
    assert kept["speed:baseline"] == "pass"
    assert kept["restore:mine"] == "pass"
    assert kept["disk"] == "warn"
    assert ("was taken up" in stdout) == (not words)
    # What was looked at before the kill is not looked at again.
    assert ("what has changed" in stderr) == bool(words)


def test_a_client_that_is_terminated_puts_its_hosts_right(boxes: Boxes) -> None:
    """SIGTERM, as systemd stops a service, ends a night like Ctrl-C: status 130, nothing left."""
    boxes.open("profiles: [baseline]", sim="fail: hang")
    client = start_client(boxes, "--json")
    until(lambda: boxes.servers().get("nightly-baseline") == "starting")
    client.terminate()
    stdout, _ = client.communicate(timeout=300)

    assert client.returncode == 130
    assert '"outcome": "interrupted"' in stdout
    assert len(stdout.splitlines()) == 1
    assert boxes.servers() == {}


@attrs.define(eq=False)
class Far:
    """A box behind a real sshd, over a link that can be cut."""

    boxes: Boxes
    sshd: Sshd

    def link(self) -> Link:
        """A new way there."""
        return self.sshd.link()

    def night(self, link: Link, **settings: Any) -> NightReport:
        """One night over that way."""
        library = self.boxes.open()
        machine = self.machine(link)
        store = NightStore.beside(self.boxes.folder / "ledger.db")
        try:
            return nightly(
                lambda _name: machine,
                library.inventory,
                library.inventory.suite(),
                store=store,
                ledger=library.inventory.ledger,
                **settings,
            )
        finally:
            machine.close()
            machine.transport.close()

    def machine(self, link: Link) -> Machine:
        """The box as a client meets it over that way."""
        box = self.boxes.box()
        entry = HostEntry(name="sim", transport="sim", python=sys.executable)
        transport = self.sshd.transport(via=link)
        return Machine("sim", entry, transport, box.options, box.environment)


@pytest.fixture
def far(boxes: Boxes, sshd: Sshd) -> Far:
    """A box behind a real sshd."""
    boxes.open()
    return Far(boxes, sshd)


@pytest.mark.parametrize("stage", ["ready", "bench"])
def test_a_link_that_comes_back_costs_a_warning(far: Far, stage: str) -> None:
    """The server is ended and launched again; the night says that the link was lost."""
    link = far.link()

    report = far.night(link, progress=at(stage, link.cut))

    assert found(report, "reach").state == "warn"
    assert "was lost once" in found(report, "reach").message
    assert found(report, "speed:baseline").state == "pass"
    assert far.boxes.servers() == {}
    assert report.exit_status == 0


def test_a_host_that_stays_away_is_put_right_by_the_next_night(far: Far) -> None:
    """It is told as unreachable at once; the next night ends the server that was left there."""
    link = far.link()

    first = far.night(link, progress=at("ready", link.close), regain_s=2.0)

    assert found(first, "reach").state == "fail"
    assert "was lost" in found(first, "reach").message
    assert first.exit_status == 4
    assert first.night.journal["sim"]["launched"] == "nightly-baseline"
    assert "not put right yet" in first.notice
    second = far.night(far.link())
    assert found(second, "reach").state == "pass"
    assert found(second, "speed:baseline").state == "pass"
    assert [fault.check for fault in second.news.ended] == ["reach"]
    assert far.boxes.servers() == {}


def test_a_changed_host_key_is_told_as_such(boxes: Boxes, sshd: Sshd) -> None:
    """`host-key` fails with the fingerprints, nothing else is known, and the status is 4."""
    other = boxes.folder / "known_hosts"
    other.write_text(f"{lookup_name(sshd.host, sshd.port)} {public(sshd.keys.user)}\n")
    keys = f"identity_file: {sshd.keys.user}, known_hosts: {other}, ssh_config: /dev/null"
    report = boxes.night("hosts: [far]", more=[f"  far: {{address: {sshd.address}, {keys}}}"])

    assert states(report) == {"host-key": "fail"}
    assert "SHA256:" in found(report, "host-key", "far").message
    assert report.exit_status == 4


@pytest.mark.parametrize("writes", [1, 12, 20])
def test_a_disk_that_is_full_meanwhile_costs_no_host_its_being_put_right(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """What cannot be kept is told; what ran before runs again, and nothing else is left."""
    library = boxes.open("profiles: [baseline], restore: true")
    library.host("sim").launch(library.profile("second"), name="mine")
    write, count = NightStore.write, itertools.count(1)

    def full(store: NightStore, night: Night, **settings: Any) -> Path:
        if next(count) > writes:
            raise NightsError(problem="no room on the disk", where=str(store.folder))
        return write(store, night, **settings)

    monkeypatch.setattr(NightStore, "write", full)
    report = library.nightly().run()

    assert "Not all of this night is kept" in report.trouble
    assert "no room on the disk" in report.trouble
    assert boxes.servers() == {"mine": "ready"}


def test_a_night_that_cannot_be_kept_touches_nothing(boxes: Boxes) -> None:
    """The error comes before the box is even made."""
    library = boxes.open()
    boxes.folder.joinpath("nights").write_text("no folder")

    with pytest.raises(EagleError):
        library.nightly().run()

    assert not boxes.folder.joinpath("box-sim/holders").exists()


def test_a_library_s_machines_feel_no_night_afterwards(boxes: Boxes) -> None:
    """A night's limits end with it: the same machine can be asked as before."""
    library = boxes.open("profiles: [baseline], limit_s: 3", sim="fail: hang")
    machine = library.host("sim").machine
    before = machine.pulse

    library.nightly().run()

    assert machine.pulse is before


def cut_off(boxes: Boxes, suite: str, **settings: Any) -> Nights:
    """A night whose client dies when all is looked at."""
    library = boxes.open(suite, **settings)
    nights = library.nightly()

    def die(_report: NightReport, _keep: Callable[..., None]) -> NightReport:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        nightly(
            lambda name: library.host(name).machine,
            library.inventory,
            nights.suite,
            store=nights.store,
            ledger=nights.ledger,
            tell=die,
        )
    return nights


def test_a_night_is_taken_up_with_what_hosts_yaml_asks_by_then(boxes: Boxes) -> None:
    """A profile that has gone meanwhile is no longer asked for; one that came is measured."""
    cut_off(boxes, "profiles: [second], checks: {disk: off}")

    report = boxes.night("profiles: [baseline]")

    assert "was taken up" in report.notice
    assert found(report, "speed:baseline").state == "pass"
    assert "launch:baseline" in report.night.asked["sim"]
    assert "launch:second" not in report.night.asked["sim"]


def test_what_is_left_on_a_host_that_the_suite_has_no_more_is_told(boxes: Boxes) -> None:
    """Nobody puts it right: a person is told where to look."""
    nights = cut_off(boxes, "hosts: [sim, twin], profiles: []", hosts=("sim", "twin"))
    night = nights.store.latest("default", 1)[0]
    left = attrs.evolve(night, journal={"twin": {"launched": "nightly-baseline"}})
    nights.store.write(left)

    report = boxes.night("profiles: []")

    assert "the suite has it no more" in report.notice
    assert "eagleops status --host twin" in report.notice


def test_a_night_whose_telling_fails_is_told_by_the_next_call(boxes: Boxes) -> None:
    """What it found stands; the next call writes the reports, and looks at nothing again."""
    library = boxes.open()
    nights = library.nightly()
    told: list[NightReport] = []

    def broken(report: NightReport, _keep: Callable[..., None]) -> NightReport:
        told.append(report)
        raise RuntimeError("no room")

    settings: dict[str, Any] = {"store": nights.store, "ledger": nights.ledger}
    machines = lambda name: library.host(name).machine  # noqa: E731
    with pytest.raises(RuntimeError):
        nightly(machines, library.inventory, nights.suite, tell=broken, **settings)
    again = nights.run()

    assert again.night.uuid == told[0].night.uuid
    assert states(again) == states(told[0])
    assert set(again.reports) == {"html", "junit", "json"}
    end_all(library.host("sim").machine)
