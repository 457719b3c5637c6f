"""The command line: exit statuses, JSON documents, errors of one to three lines."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest

from eagleops.errors import UsageError
from eagleops.workflows.stop import the_server
from parts.poll import until
from parts.reserved import free_port

Commands = Callable[..., object]


def test_the_main_job_by_commands(commands: Commands) -> None:
    """Each command's document has the keys that the contract names, and status 0."""
    reset = commands("reset-gpus", "--json").document
    assert reset["drained"] is True
    assert {"killed", "spared", "drain_s", "gpus"} <= set(reset)

    launch = commands("launch", "--json").document
    assert launch["ok"] is True
    assert {"name", "profile", "pid", "port", "log", "state_dir"} <= set(launch["server"])
    assert {"ready_s", "run_id", "environment"} <= set(launch)

    status = commands("status", "--json").document
    assert [one["state"] for one in status["servers"]] == ["ready"]
    gpu = {"index", "uuid", "name", "used_mib", "total_mib", "temperature_c", "power_w"}
    assert gpu | {"sm_clock_mhz", "throttle_reasons", "holders"} <= set(status["gpus"][0])
    assert all(len(one["holders"]) == 1 for one in status["gpus"])

    verify = commands("verify-env", "--json").document
    assert {"expected", "processes", "counts"} <= set(verify)
    variable = verify["processes"][0]["variables"]["NCCL_PROTO"]
    assert {"verdict", "initial", "live", "effective", "notes"} <= set(variable)

    assert commands("logs", "--json", "--lines", "2").document["lines"]
    stop = commands("stop", "--json").document
    assert stop["drained"] is True
    assert stop["server"]["state"] == "exited"


@pytest.mark.parametrize("command", ["hosts", "doctor", "status", "reset-gpus", "launch"])
def test_every_document_says_what_it_is(commands: Commands, command: str) -> None:
    """schema, command, ok and host stand in each document, and stdout holds nothing else."""
    document = commands(command, "--json").document

    assert document["schema"] == 1
    assert document["command"] == command
    assert document["ok"] is True
    assert document["host"] == "sim"


@pytest.mark.parametrize(
    "words",
    [
        ["reset-gpus", "--dry"],
        ["--dry", "reset-gpus"],
        ["stop", "-R"],
        ["stop", "--warn-only"],
        ["launch", "--command-timeout", "5"],
    ],
)
def test_a_flag_that_would_do_nothing_is_refused(commands: Commands, words: list[str]) -> None:
    """What rules Invoke's own shell commands alone is no flag here: all would be done anyway."""
    answer = commands(*words)

    assert answer.exit_status == 2, answer.stdout
    assert answer.stderr.startswith("error: No idea what '-")
    assert commands("status", "--json").document["servers"] == []
    assert "--dry " not in commands("--help").stdout


def test_invoke_s_own_dry_run_is_refused_too(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a checkout Invoke takes --dry: the task says that it would do its work, and does not."""
    monkeypatch.setenv("INVOKE_RUN_DRY", "1")
    answer = commands("launch")
    monkeypatch.delenv("INVOKE_RUN_DRY")

    assert answer.exit_status == 2
    assert "--dry-run" in answer.stderr
    assert commands("status", "--json").document["servers"] == []


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["reset-gpus", "--dry"], "--dry-run"),
        (["launch", "--prof", "baseline"], "--profile"),
        (["lanch"], "launch"),
    ],
)
def test_a_slip_of_the_hand_is_told_what_was_meant(
    commands: Commands, words: list[str], meant: str
) -> None:
    """The nearest flag of the task, or the nearest task."""
    assert f"Did you mean {meant}? See: eagleops --list" in commands(*words).stderr


def test_secrets_reach_no_output_and_no_file(commands: Commands) -> None:
    """The value of HF_TOKEN reaches its server, and no stream, no document and no state file."""
    answers = [
        commands("launch", "--json"),
        commands("verify-env"),
        commands("verify-env", "--explain", "HF_TOKEN"),
        commands("status", "--json"),
        commands("logs"),
    ]

    assert [one.exit_status for one in answers] == [0] * len(answers)
    shown = "".join(one.stdout + one.stderr for one in answers)
    assert "hf_never_shown" not in shown
    kept = [(commands.folder / name).rglob("*") for name in ("state", "data")]
    files = [path for paths in kept for path in paths if path.is_file()]
    assert any(path.name == "ledger.db" for path in files)
    assert [path for path in files if b"hf_never_shown" in path.read_bytes()] == []


def test_a_secret_by_reference_is_one_whatever_its_name(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches its server, is proved there, and is started again; nothing shows or keeps it.

    A password in a URL is one too.
    """
    monkeypatch.setenv("MY_HOOK", "hush_never_shown")
    url = "'http://me:hush_never_shown@example.com/'"
    env = f"{{ALERTS: {{secret: env:MY_HOOK}}, PROXY: {url}}}"
    commands.write(more=[f"  told: {{extends: baseline, env: {env}}}"])

    answers = [
        commands("launch", "--profile", "told", "--json"),
        commands("verify-env", "--json"),
        commands("verify-env", "--profile", "told"),
        commands("verify-env", "--explain", "ALERTS"),
        commands("stop"),
        commands("reproduce", "--run", "1", "--json"),
        commands("verify-env"),
        commands("show", "--run", "2", "--json"),
        commands("diff", "--run", "2", "--against", "1", "--json"),
        commands("show", "--run", "2", "--as-profile"),
    ]

    assert [one.exit_status for one in answers] == [0] * len(answers)
    worker = answers[1].document["processes"][0]["variables"]
    assert (worker["ALERTS"]["verdict"], worker["PROXY"]["verdict"]) == ("ok", "ok")
    pid = answers[5].document["server"]["pid"]
    assert b"ALERTS=hush_never_shown" in Path(f"/proc/{pid}/environ").read_bytes()
    assert "hush_never_shown" not in "".join(one.stdout + one.stderr for one in answers)
    kept = [(commands.folder / name).rglob("*") for name in ("state", "data")]
    files = [path for paths in kept for path in paths if path.is_file()]
    assert [path for path in files if b"hush_never_shown" in path.read_bytes()] == []


def test_a_wrong_inventory_is_one_error_and_status_2(commands: Commands) -> None:
    """File, line and key; what was meant; nothing is touched."""
    text = (commands.folder / "hosts.yaml").read_text()
    (commands.folder / "hosts.yaml").write_text(text.replace("engine: sglang", "engin: sglang"))

    answer = commands("launch")

    assert answer.exit_status == 2
    assert "hosts.yaml:5" in answer.stderr
    assert "profiles.baseline.engin" in answer.stderr
    assert "engine" in answer.stderr
    assert len(answer.stderr.splitlines()) <= 3
    assert answer.stdout == ""


def test_an_error_is_a_document_too(commands: Commands) -> None:
    """With --json an error is a document on stdout, and stderr is silent."""
    answer = commands("launch", "--profile", "basline", "--json")

    assert answer.exit_status == 2
    assert answer.document["ok"] is False
    assert answer.document["error"]["type"] == "ProfileError"
    assert "baseline" in answer.document["error"]["way_out"] + answer.document["error"]["problem"]
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["lanch"], 2),
        (["status", "--host", "nowhere"], 2),
        (["status", "--inventory", "nowhere.yaml"], 2),
        (["stop", "--name", "nobody"], 1),
        (["logs"], 1),
        (["verify-env", "--pid", "1"], 2),
        (["verify-env", "--expect", "NCCL_PROTO"], 2),
        (["verify-env", "--worker", "1"], 2),
        (["doctor", "--port", "65536"], 2),
    ],
)
def test_what_cannot_be_done_has_its_status(
    commands: Commands, words: list[str], status: int
) -> None:
    """A slip of the hand is 2, a thing that is not there is 1; no traceback."""
    answer = commands(*words)

    assert answer.exit_status == status, answer.stderr
    assert "Traceback" not in answer.stderr
    assert 1 <= len(answer.stderr.splitlines()) <= 4


def test_doctor_needs_no_profile(commands: Commands) -> None:
    """A machine is looked at before the first profile for it is written: no port is judged."""
    (commands.folder / "hosts.yaml").write_text("hosts: {sim: {transport: sim}}\n")

    answer = commands("doctor", "--host", "sim", "--json")

    assert answer.exit_status == 0, answer.stdout
    assert "port" not in [one["id"] for one in answer.document["checks"]]
    asked = commands("doctor", "--host", "sim", "--port", str(commands.port), "--json")
    assert "port" in [one["id"] for one in asked.document["checks"]]


def test_an_unreachable_host_is_status_4(commands: Commands) -> None:
    """Nobody listens there: one error with the address and the way out."""
    text = (commands.folder / "hosts.yaml").read_text()
    closed = f"hosts:\n  box: {{address: 'root@127.0.0.1:{commands.port}'}}\n"
    text = text.replace(
        "hosts: {sim: {transport: sim, sim: {gpus: 2}}}", closed + "  sim: {transport: sim}"
    )
    (commands.folder / "hosts.yaml").write_text(text)

    answer = commands("status", "--host", "box")

    assert answer.exit_status == 4
    assert f"root@127.0.0.1:{commands.port}" in answer.stderr
    assert f"ssh -v -p {commands.port} root@127.0.0.1." in answer.stderr


@pytest.mark.parametrize("words", [["logs", "--name", "nobody"], ["verify-env"], ["stop"]])
def test_an_error_names_its_host_as_hosts_yaml_does(commands: Commands, words: list[str]) -> None:
    """In the document and in the error, whatever the machine's address is."""
    document = commands(*words, "--json").document

    assert (document["ok"], document["host"]) == (False, "sim")
    assert document["error"]["host"] == "sim"


def test_an_unreachable_host_is_named_as_hosts_yaml_does(commands: Commands) -> None:
    """So is the host of a container that cannot be reached through it."""
    (commands.folder / "hosts.yaml").write_text(
        f"hosts: {{pve: {{address: 'root@127.0.0.1:{commands.port}'}}}}\n"
        "containers: {llm: {on: pve, vmid: 129}}\n"
    )

    for host in ("pve", "llm"):
        document = commands("status", "--host", host, "--json").document
        assert (document["host"], document["error"]["host"]) == ("pve", "pve")


def test_an_early_death_is_told_with_its_cause(commands: Commands) -> None:
    """Out of memory: status 1, the last log lines, the known cause and what to do."""
    commands.write(sim="{start_s: 0.3, fail: oom}")

    answer = commands("launch")

    assert answer.exit_status == 1
    assert "died before it was ready" in answer.stderr
    assert "memory" in answer.stderr
    assert "Give the engine less" in answer.stderr


def test_a_wrong_environment_is_status_1_and_says_why(commands: Commands) -> None:
    """What is expected and is not so: the value seen, and what to do."""
    commands("launch")

    answer = commands("verify-env", "--expect", "NCCL_PROTO=Simple")

    assert answer.exit_status == 1
    assert "NCCL_PROTO" in answer.stdout
    assert "LL" in answer.stdout


def test_launch_without_reset_refuses_gpus_in_use(commands: Commands) -> None:
    """--no-reset: a server that holds the GPUs is named, nothing is killed, status 1."""
    more = [f"  other: {{extends: baseline, port: {free_port()}}}"]
    commands.write(more=more)
    commands("launch")

    answer = commands("launch", "--profile", "other", "--no-reset")

    assert answer.exit_status == 1
    assert "sglang::scheduler_TP0" in answer.stderr
    states = {one["name"]: one["state"] for one in commands("status", "--json").document["servers"]}
    assert states == {"baseline": "ready"}


def test_a_dry_run_touches_nothing(commands: Commands) -> None:
    """--dry-run lists each process with its reason, and all of them live on."""
    commands("launch")

    answer = commands("reset-gpus", "--dry-run", "--json")

    would = answer.document["would_kill"]
    assert len(would) >= 4
    assert all(one["reason"] for one in would)
    assert [one["state"] for one in commands("status", "--json").document["servers"]] == ["ready"]


def test_an_interrupt_is_status_130_and_leaves_the_server(commands: Commands) -> None:
    """Ctrl-C ends the wait, not the server, and says so."""
    commands.write(sim="{start_s: 6.0}")
    client: subprocess.Popen[str] = commands.start("launch")
    until(commands.has_begun)

    client.send_signal(signal.SIGINT)
    _, stderr = client.communicate(timeout=60)

    assert client.returncode == 130
    assert "Traceback" not in stderr
    way_out = "What was started goes on: see eagleops status, or end it with eagleops stop."
    assert stderr.splitlines()[-2:] == ["interrupted", way_out]
    until(
        lambda: commands("status", "--json").document["servers"][0]["state"] == "ready",
        interval_s=0.2,
    )


@attrs.frozen
class Listed:
    """A machine that can be asked for its servers alone."""

    states: Mapping[str, str]
    name: str = "llm"

    def call(self, operation: str) -> dict[str, list[dict[str, str]]]:
        assert operation == "servers"
        return {"servers": [{"name": one, "state": self.states[one]} for one in self.states]}


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ({"a": "ready", "b": "starting", "c": "exited"}, "llm: which server? a, b"),
        ({"a": "exited", "b": "exited"}, "llm: no server runs here. These have ended: a, b"),
    ],
)
def test_which_server_is_asked_of_those_that_run(states: dict[str, str], told: str) -> None:
    """A name is asked for where several run; where none does that is said."""
    with pytest.raises(UsageError) as which:
        the_server(Listed(states), None)

    assert str(which.value) == f"{told}\nName one: --name NAME."
    assert the_server(Listed({**states, "a": "exited", "b": "ready"}), None) == "b"


def test_a_reader_that_goes_away_is_no_error(commands: Commands) -> None:
    """``eagleops logs | head -1`` ends quietly."""
    commands("launch")

    argv = commands.argv("logs", "--lines", "1000")
    line = subprocess.run(
        ["bash", "-c", '"$@" | head -1', "bash", *argv],
        cwd=commands.folder,
        env=commands.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )

    assert len(line.stdout.splitlines()) == 1
    assert line.stderr == ""


def test_a_followed_log_ends_with_its_server(commands: Commands) -> None:
    """``logs --follow`` prints what comes, and ends when the server has."""
    commands("launch")
    following: subprocess.Popen[str] = commands.start("logs", "--follow")
    assert commands("stop").exit_status == 0

    stdout, _ = following.communicate(timeout=60)

    assert following.returncode == 0
    assert "fired up" in stdout


def test_debug_shows_a_traceback(commands: Commands) -> None:
    """--debug is for whoever mends eagleops."""
    answer = commands("status", "--host", "nowhere", "--debug")

    assert "Traceback" in answer.stderr


def test_json_is_one_line_of_ascii(commands: Commands) -> None:
    """Bytes that no terminal shows survive every pipe."""
    answer = commands("hosts", "--json")

    assert answer.stdout.isascii()
    assert json.loads(answer.stdout) == answer.document


def test_a_command_is_ready_when_it_listens(commands: Commands) -> None:
    """A program of one's own that binds its port late is not called ready before."""
    program = (
        "import http.server as h, time; time.sleep(2); "
        f"h.HTTPServer(('127.0.0.1', {commands.port}), h.SimpleHTTPRequestHandler).serve_forever()"
    )
    argv = json.dumps(["python3", "-c", program])
    commands.write(
        more=[f"  late: {{engine: command, port: {commands.port}, command: {argv}}}"],
    )

    launched = commands("launch", "--profile", "late", "--json").document

    assert launched["ready_s"] > 2.0
    assert launched["server"]["state"] == "ready"


def test_a_program_that_is_not_there_ends_nothing(commands: Commands) -> None:
    """A slip in the profile is told before the reset: the server that runs goes on."""
    commands.write(more=["  slip: {extends: baseline, python: /nowhere/python3, port: 1}"])
    commands("launch")

    answer = commands("launch", "--profile", "slip")

    assert answer.exit_status == 1
    assert "/nowhere/python3" in answer.stderr
    states = [one["state"] for one in commands("status", "--json").document["servers"]]
    assert states == ["ready"]
