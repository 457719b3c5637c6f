"""A launch is recorded with all that it ran on, and a recorded run can be started again."""

from __future__ import annotations

import io
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console

from eagleops import inventory
from eagleops.engines import engine
from eagleops.errors import ServerDied, UsageError
from eagleops.ledger import Ledger
from eagleops.machine import Fleet, Machine
from eagleops.profile import Profile
from eagleops.remote.redact import REDACTED
from eagleops.transport.local import LocalTransport
from eagleops.workflows.launch import launch
from eagleops.workflows.record import Recorded, launch_and_record, record, record_launch
from eagleops.workflows.reproduce import plan_reproduction, reproduce
from eagleops.workflows.runs import diff_runs, list_runs, run_as_profile, show_run
from eagleops.workflows.stop import stop
from parts.reserved import free_port

SECRET = "hf_correct-horse-battery"
# Names of one launch: everything else has to be the same when it is reproduced.
OF_ONE_LAUNCH = {"EAGLEOPS_SERVER", "EAGLEOPS_LAUNCH_ID", "NCCL_DEBUG_FILE"}

INVENTORY = """
hosts:
  sim: {{transport: sim, sim: {{directory: {folder}/box, gpus: 2}}}}
  other: {{transport: sim, sim: {{directory: {folder}/other, gpus: 2}}}}
  here: {{transport: local, python: {python}}}
profiles:
  baseline:
    engine: sglang
    model: {folder}/kimi
    port: {port}
    args: {{tp-size: 2, host: 127.0.0.1}}
    env: {{NCCL_PROTO: LL, NCCL_ALGO: Ring}}
    inherit: [EAGLEOPS_TEST_INHERITED]
    sim: {{start_s: 0.2, warmup_s: 0.05, stop_s: 0.05}}
  secret: {{extends: baseline, env: {{HF_TOKEN: {secret}}}, args: {{api-key: {secret}}}}}
  dies: {{extends: baseline, sim: {{fail: import}}}}
"""


@attrs.define(eq=False)
class Place:
    """Two embedded boxes, this machine, and profiles."""

    folder: Path
    inventory: inventory.Inventory
    fleet: Fleet

    def machine(self, name: str = "sim") -> Machine:
        """A machine of the inventory."""
        return self.fleet.machine(name)

    def profile(self, name: str = "baseline") -> Profile:
        """A profile of the inventory."""
        return self.inventory.profile(name)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Boxes of this test's own; whatever it launched there is ended."""
    (tmp_path / "kimi").mkdir()
    (tmp_path / "kimi" / "config.json").write_text("{}")
    text = INVENTORY.format(folder=tmp_path, port=free_port(), secret=SECRET, python=sys.executable)
    read = inventory.parse(text)
    made = Place(tmp_path, read, Fleet(read))
    yield made
    for name in ("sim", "other"):
        machine = made.machine(name)
        for server in machine.call("servers")["servers"]:
            if server["state"] != "exited":
                machine.call("stop", name=server["name"], grace_s=0.1)
    made.fleet.close()


def proc(pid: int, name: str) -> list[str]:
    """The strings in a file of /proc."""
    return Path(f"/proc/{pid}/{name}").read_bytes().decode().split("\0")[:-1]


def test_a_launch_is_recorded_whole(place: Place, ledger: Ledger) -> None:
    """The very argv and environment of the process, and a part for each thing to compare."""
    machine, profile = place.machine(), place.profile()
    report = launch(machine, profile)
    before = time.time()

    number = record_launch(ledger, machine, profile, report, lint=[{"rule": "r"}])

    run = ledger.run(number)
    spec = run.part("spec")
    pid = report.server.pid
    assert spec["argv"] == proc(pid, "cmdline")
    assert spec["env"] == dict(pair.split("=", 1) for pair in proc(pid, "environ"))
    assert {fact.part for fact in run.facts} == {
        *("spec", "profile_source", "lint", "snapshot", "machine", "gpus", "libraries"),
        *("packages", "models", "clock", "launch", "environment", "log", "outcome"),
    }
    assert [gpu["used_mib"] > 1000 for gpu in run.part("snapshot")["gpus"]] == [True, True]
    assert run.part("gpus")["driver_version"] == run.part("snapshot")["driver_version"]
    assert run.part("gpus")["topology"].splitlines()[0].split()[:2] == ["GPU0", "GPU1"]
    assert run.part("environment")["ok"]
    assert run.part("models")["models"][0]["path"] == str(place.folder / "kimi")
    assert run.part("log")["path"] == report.server.log
    assert run.part("lint") == [{"rule": "r"}]
    assert "env.NCCL_PROTO" in run.part("profile_source")["sources"]["baseline"]
    clock = run.part("clock")
    assert abs(clock["offset_s"]) <= clock["uncertainty_s"] + 0.005
    header = run.header
    assert (header.host, header.profile, header.engine, header.outcome) == (
        "sim",
        "baseline",
        "sglang",
        "ready",
    )
    assert header.ready_s == report.ready_s
    assert header.created_utc <= time.strftime("%Y-%m-%dT%H:%M:%S.999999Z", time.gmtime(before + 9))


def test_a_server_that_died_is_a_run_too(place: Place, ledger: Ledger) -> None:
    """Its command, its log's last lines and the cause are what one wants to look up later."""
    machine, profile = place.machine(), place.profile("dies")
    with pytest.raises(ServerDied) as died:
        launch(machine, profile)

    run = ledger.run(record_launch(ledger, machine, profile, died.value))

    assert run.header.outcome == "died"
    assert run.part("outcome")["detail"] == died.value.problem
    assert run.part("log")["tail"] == list(died.value.log_tail)
    assert run.part("log")["path"].endswith("/dies/server.log")
    assert "--tp-size" in run.part("spec")["argv"]
    assert run.part("libraries") == {"libraries": [], "unreadable": []}


def test_a_secret_of_a_real_launch_is_nowhere(place: Place, ledger: Ledger, on_disk) -> None:
    """Not in the file, not in its log, not in an export, though the server really had it."""
    machine, profile = place.machine(), place.profile("secret")
    report = launch(machine, profile)
    assert f"HF_TOKEN={SECRET}" in proc(report.server.pid, "environ")
    assert SECRET in proc(report.server.pid, "cmdline")

    number = record_launch(ledger, machine, profile, report)
    ledger.export(place.folder / "ledger.db.export")

    found = on_disk(place.folder)
    assert b"NCCL_PROTO" in found
    assert SECRET.encode() not in found
    spec = ledger.run(number).part("spec")
    assert spec["env"]["HF_TOKEN"] == REDACTED
    assert spec["argv"][spec["argv"].index("--api-key") + 1] == REDACTED


def test_a_ledger_that_cannot_be_written_costs_no_server(place: Place) -> None:
    """The server runs on, and the notice says that the run is not recorded, and why."""
    machine, profile = place.machine(), place.profile()
    report = launch(machine, profile)
    (place.folder / "ledger.db").mkdir()

    recorded = record(place.folder / "ledger.db", machine, profile, report)

    assert recorded == Recorded(
        None,
        f"This run is not recorded: {place.folder}/ledger.db: is a folder, a ledger is a file\n"
        "Name a file in it: ledger.db.",
    )
    assert machine.call("servers")["servers"][0]["state"] == "ready"
    assert record(place.folder / "other.db", machine, profile, report) == Recorded(1, "")


def test_a_launch_and_its_record_are_one_call(place: Place) -> None:
    """The report has the run's number; a server that died is recorded before its error goes on."""
    path = place.folder / "ledger.db"

    with pytest.raises(ServerDied):
        launch_and_record(path, place.machine(), place.profile("dies"))
    report = launch_and_record(path, place.machine(), place.profile(), name="one")

    assert (report.run_id, report.notice) == (2, "")
    with Ledger.open(path) as ledger:
        assert [(run.server, run.outcome) for run in ledger.runs()] == [
            ("one", "ready"),
            ("dies", "died"),
        ]


def test_a_machine_that_is_lost_meanwhile_leaves_what_is_known(
    place: Place, ledger: Ledger
) -> None:
    """The launch is recorded with the reason why the rest is not."""
    machine, profile = place.machine(), place.profile()
    report = launch(machine, profile)
    entry = attrs.evolve(machine.entry, python="/no/such/python")
    lost = Machine(machine.name, entry, LocalTransport(where="sim"))

    run = ledger.run(record_launch(ledger, lost, profile, report))

    assert run.header.outcome == "ready"
    assert run.part("machine")["problem"].startswith("sim: /no/such/python did not answer")
    assert run.part("spec") is None
    assert run.part("environment")["ok"]


def test_a_containers_host_is_looked_at_too(place: Place, ledger: Ledger) -> None:
    """A container sees neither Proxmox's version nor its host's own facts."""
    outer = place.machine("here")
    machine = attrs.evolve(place.machine(), outer=outer)
    report = launch(machine, place.profile())

    seen = ledger.run(record_launch(ledger, machine, place.profile(), report)).part("machine")
    unreachable = attrs.evolve(
        outer, entry=attrs.evolve(outer.entry, python="/no/such/python"), outer=None
    )
    machine = attrs.evolve(machine, outer=unreachable)
    blind = ledger.run(record_launch(ledger, machine, place.profile(), report)).part("machine")

    assert seen["outer"]["hostname"] == socket.gethostname()
    assert "proxmox" in seen["outer"]
    assert blind["hostname"] == socket.gethostname()
    assert "did not answer" in blind["outer"]["problem"]
    machine.close()
    outer.close()


def launched_once(place: Place, ledger: Ledger, profile: str = "baseline") -> Any:
    """A run that was launched, recorded and stopped."""
    machine = place.machine()
    report = launch(machine, place.profile(profile))
    number = record_launch(ledger, machine, place.profile(profile), report)
    stop(machine, profile, grace_s=1.0)
    return ledger.run(number)


def comparable(spec: dict[str, Any]) -> dict[str, Any]:
    """A recorded command without the names of one launch."""
    env = {name: value for name, value in spec["env"].items() if name not in OF_ONE_LAUNCH}
    return {"argv": spec["argv"], "env": env, "cwd": spec["cwd"], "expected": spec["expected"]}


def test_a_run_is_reproduced_with_the_same_argv_and_environment(
    place: Place, ledger: Ledger, monkeypatch
) -> None:
    """Also what it had inherited then, though the target has it otherwise today."""
    monkeypatch.setenv("EAGLEOPS_TEST_INHERITED", "then")
    run = launched_once(place, ledger)
    place.machine().close()
    monkeypatch.setenv("EAGLEOPS_TEST_INHERITED", "now")

    plan = plan_reproduction(place.machine(), run)
    report = reproduce(place.machine(), plan, ledger=ledger)

    assert plan.place.changes == ()
    assert plan.view().conclusion.text == (
        f"sim: run {run.id} (baseline) again: nothing was found that is not as it was"
    )
    again = ledger.run(report.run_id)
    assert comparable(again.part("spec")) == comparable(run.part("spec"))
    assert again.part("spec")["env"]["EAGLEOPS_TEST_INHERITED"] == "then"
    assert (report.ok, again.header.outcome) == (True, "ready")
    folder = report.launch.server.state_dir
    assert again.part("spec")["env"]["NCCL_DEBUG_FILE"] == f"{folder}/nccl.%p.log"
    assert again.part("profile_source") == run.part("profile_source")
    assert diff_runs(ledger, run.id, report.run_id).changes == ()
    assert json.dumps(report.to_dict())


def test_another_host_is_told_before_anything_is_started(place: Place, ledger: Ledger) -> None:
    """Other GPUs, a patched config, and that it is another host; then it starts there."""
    run = launched_once(place, ledger)
    (place.folder / "kimi" / "config.json").write_text('{"changed": true}')
    other = place.machine("other")

    plan = plan_reproduction(other, run)

    assert other.call("servers")["servers"] == []
    changes = {(change.section, change.what) for change in plan.place.changes}
    assert changes == {("model", "target: config.json"), ("machine", "UUID")}
    shown = plan.to_dict()
    assert (shown["ok"], shown["host"], shown["reproduces"]) == (True, "other", run.id)
    assert plan.notes == ("It ran on sim; HOME, USER and PATH are the host's",)

    report = reproduce(other, plan, name="again")

    assert (report.run_id, report.launch.server.name) == (None, "again")
    then = run.part("spec")["argv"]
    assert proc(report.launch.server.pid, "cmdline") == then


def test_without_its_secrets_a_run_is_not_started(place: Place, ledger: Ledger, on_disk) -> None:
    """The plan names them, and nothing is touched; with the profile's values it starts."""
    run = launched_once(place, ledger, "secret")
    machine = place.machine()

    plan = plan_reproduction(machine, run)
    with pytest.raises(UsageError) as refused:
        reproduce(machine, plan, ledger=ledger)

    assert (plan.ok, plan.missing) == (False, ("--api-key", "HF_TOKEN"))
    assert str(refused.value) == (
        f"run {run.id}: no value is known for --api-key, HF_TOKEN\n"
        "No ledger holds secrets: set them in profile secret of hosts.yaml, or on the target "
        "and name them as `inherit:` there."
    )
    assert [server["state"] for server in machine.call("servers")["servers"]] == ["exited"]

    full = plan_reproduction(machine, run, profile=place.profile("secret"))
    report = reproduce(machine, full, ledger=ledger)

    pid = report.launch.server.pid
    assert f"HF_TOKEN={SECRET}" in proc(pid, "environ")
    assert proc(pid, "cmdline")[-1] == SECRET or SECRET in proc(pid, "cmdline")
    assert SECRET not in json.dumps(report.to_dict())
    assert SECRET not in repr(full)
    assert SECRET.encode() not in on_disk(place.folder)


def test_a_reproduction_that_dies_is_recorded(place: Place, ledger: Ledger) -> None:
    """The new run says so; the error is the launch's own."""
    machine, profile = place.machine(), place.profile("dies")
    with pytest.raises(ServerDied) as died:
        launch(machine, profile)
    run = ledger.run(record_launch(ledger, machine, profile, died.value))

    with pytest.raises(ServerDied):
        reproduce(machine, plan_reproduction(machine, run), ledger=ledger)

    assert [header.outcome for header in ledger.runs()] == ["died", "died"]


def test_a_run_without_a_command_cannot_be_reproduced(
    place: Place, ledger: Ledger, make_run
) -> None:
    """That is told before any machine is asked."""
    number = ledger.add(make_run(spec=None))

    with pytest.raises(UsageError) as raised:
        plan_reproduction(place.machine(), ledger.run(number))

    assert str(raised.value) == (
        "run 1 has no command on record: it cannot be reproduced\nChoose another: eagleops runs."
    )


RESULTS: dict[str, Callable[[Ledger], Any]] = {
    "list": list_runs,
    "nothing": lambda ledger: list_runs(ledger, host="none"),
    "show": lambda ledger: show_run(ledger, 1),
    "diff": lambda ledger: diff_runs(ledger, 1, 1),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_each_result_shows_itself(place: Place, ledger: Ledger, kind: str) -> None:
    """As JSON with the keys that stay, in a terminal, and in a notebook."""
    launched_once(place, ledger)
    result = RESULTS[kind](ledger)

    document = json.loads(json.dumps(result.to_dict()))
    shown = io.StringIO()
    Console(width=100, file=shown).print(result.view())

    assert document["ok"] is True
    assert "host" in document
    assert result._repr_html_().startswith('<div class="eagleops">')
    expected = {
        "list": "1 of 1 runs; ",
        "nothing": "no run is recorded",
        "show": "NCCL_PROTO",
        "diff": "No change was seen",
    }
    assert expected[kind] in shown.getvalue()


def test_a_run_becomes_a_profile(place: Place, ledger: Ledger) -> None:
    """What was really launched, as a hosts.yaml: read back, it has the same command."""
    run = launched_once(place, ledger)

    text = run_as_profile(ledger, run.id, "what-worked")

    read = inventory.parse(f"hosts: {{box: {{transport: local}}}}\n{text}")
    again = read.profile("what-worked")
    assert list(engine("sglang").command(again, again.python)) == run.part("spec")["argv"]
