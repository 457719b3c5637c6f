"""Operation ``spawn``: one server, started exactly as told, or nothing at all."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eagleops.errors import EagleError, OperationFailed
from parts.poll import until
from servers.places import local_place, of_launches, session_pid, states

NO_FILE = "no such file (if it is there: the interpreter after its #! is not)"
TOO_LONG = "argument list too long (a variable or an argument holds 128 KiB at most)"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def tree_of(folder: Path) -> list[str]:
    """Every path below a folder, the launches' lock left out."""
    return sorted(str(path) for path in folder.rglob("*") if path.name != ".spawn.lock")


def report(place, session, name: str = "a", **fields) -> dict:
    """What engines/reports.py says it was given."""
    argv = place.engine("reports", place.mark("report"))
    session.call("spawn", name=name, launch=place.launch(argv, **fields))
    file = place.seen_marks / "report"
    return json.loads(until(lambda: file.exists() and file.read_text()))


def variables(seen: dict) -> dict[bytes, bytes]:
    """The environment block of a report."""
    block = seen["environ"].encode("latin-1")
    assert block.endswith(b"\0")
    return dict(entry.split(b"=", 1) for entry in block[:-1].split(b"\0"))


def test_a_server_is_launched_and_described(any_place) -> None:
    """Spawn answers with the server's facts, and they are those of its process."""
    session = any_place.session()
    launch = any_place.serving("plain")

    server = session.call("spawn", name="base.line-1", launch=launch)["server"]

    seen = {
        key: server[key]
        for key in ("name", "launch_id", "profile", "engine", "state", "port", "model", "signal")
    }
    assert seen == {
        "name": "base.line-1",
        "launch_id": launch["launch_id"],
        "profile": "test",
        "engine": "command",
        "state": "starting",
        "port": launch["port"],
        "model": "/models/right",
        "signal": None,
    }
    assert server["state_dir"] == f"{any_place.state_home}/eagleops/servers/base.line-1"
    assert server["log"] == f"{server['state_dir']}/server.log"
    assert server["pid"] in server["tree"]


def test_the_environment_is_the_base_then_what_is_inherited_then_the_profile(
    place, session, monkeypatch
) -> None:
    """Byte for byte: undecodable values, newlines, 64 KiB, and nothing that was not asked for."""
    monkeypatch.setenv("LD_PRELOAD_PATH_OF_MINE", "/opt/mine")
    monkeypatch.setenv("NOT_ASKED_FOR", "1")
    me = pwd.getpwuid(os.geteuid())
    hostile = bytes(range(1, 256))
    launch_env = {
        "NCCL_PROTO": "LL",
        "HOSTILE": hostile.decode("utf-8", "surrogateescape"),
        "ÜBER": "grün\n$(id) `id` 'x' \"y\" \\",
        "BIG": "x" * 65536,
        "EMPTY": "",
        "LANG": "C",
        "SHELL": None,
        "NCCL_DEBUG_FILE": "{state_dir}/nccl.%p.log",
        "UNTOUCHED": "{state_dir}",
    }
    fresh = place.session()

    seen = report(
        place, fresh, env=launch_env, inherit=["LD_PRELOAD_PATH_OF_MINE", "NOT_THERE_AT_ALL"]
    )

    assert variables(seen) == {
        b"HOME": os.fsencode(me.pw_dir),
        b"USER": os.fsencode(me.pw_name),
        b"LOGNAME": os.fsencode(me.pw_name),
        b"PATH": DEFAULT_PATH.encode(),
        b"LANG": b"C",
        b"LD_PRELOAD_PATH_OF_MINE": b"/opt/mine",
        b"NCCL_PROTO": b"LL",
        b"HOSTILE": hostile,
        "ÜBER".encode(): "grün\n$(id) `id` 'x' \"y\" \\".encode(),
        b"BIG": b"x" * 65536,
        b"EMPTY": b"",
        b"NCCL_DEBUG_FILE": os.fsencode(f"{place.folder('a')}/nccl.%p.log"),
        b"UNTOUCHED": b"{state_dir}",
        b"EAGLEOPS_SERVER": b"a",
        b"EAGLEOPS_LAUNCH_ID": place.launch_ids[-1].encode(),
    }


def test_the_environment_is_the_same_by_every_way_in(any_place) -> None:
    """Neither a login shell, nor sshd, nor pct adds anything to it."""
    seen = report(any_place, any_place.session(), env={"NCCL_ALGO": "Ring"})

    assert variables(seen) == {
        b"HOME": b"/root",
        b"USER": b"root",
        b"LOGNAME": b"root",
        b"SHELL": b"/bin/bash",
        b"PATH": DEFAULT_PATH.encode(),
        b"LANG": b"C.UTF-8",
        b"NCCL_ALGO": b"Ring",
        b"EAGLEOPS_SERVER": b"a",
        b"EAGLEOPS_LAUNCH_ID": any_place.launch_ids[-1].encode(),
    }


def test_a_server_has_nothing_of_whoever_started_it(any_place) -> None:
    """Stdin is /dev/null, stdout and stderr the log, no other descriptor; no signal is ignored."""
    session = any_place.session()

    seen = report(any_place, session)

    server = session.call("servers")["servers"][0]
    assert seen["open_files"] == {
        "0": "/dev/null",
        "1": server["log"],
        "2": server["log"],
    }
    # Python itself ignores SIGPIPE and SIGXFSZ. GNU make hands 32 and 33 on as ignored, which
    # are the C library's own and no program's to set.
    assert int(seen["ignored"], 16) & ~(1 << 12 | 1 << 24 | 1 << 31 | 1 << 32) == 0
    assert int(seen["blocked"], 16) == 0
    assert (seen["pid"], seen["pgid"]) == (server["pid"], server["pid"])
    assert (seen["sid"], seen["ppid"]) == (server["supervisor_pid"], server["supervisor_pid"])
    assert (seen["cwd"], seen["umask"]) == ("/root", 0o022)


def test_a_server_starts_in_the_folder_of_its_profile(place, session, tmp_path) -> None:
    """``cwd`` is where it starts."""
    assert report(place, session, cwd=str(tmp_path))["cwd"] == str(tmp_path)


def test_ten_launches_of_one_name_at_once_give_one_server(any_place) -> None:
    """Nine are refused, and each names the one that lives."""
    sessions = [any_place.session() for _ in range(5)]
    launches = [any_place.launch(any_place.engine("plain", "--never")) for _ in range(10)]

    def attempt(number: int) -> object:
        try:
            return sessions[number % 5].call("spawn", name="a", launch=launches[number])["server"]
        except OperationFailed as refused:
            return refused

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(attempt, range(10)))

    started = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, OperationFailed)]
    assert len(started) == 1
    assert [error.kind for error in refused] == ["server_exists"] * 9
    assert {error.data["server"]["pid"] for error in refused} == {started[0]["pid"]}
    assert refused[0].problem == f"a server a is starting (PID {started[0]['pid']})"
    assert refused[0].way_out == (
        "Stop it first (eagleops stop --name a), or launch under another --name."
    )
    assert states(sessions[0]) == {"a": "starting"}


def test_ten_launches_on_one_port_at_once_give_one_server(place, port) -> None:
    """A port has one owner too, also while nobody listens on it yet."""
    sessions = [place.session() for _ in range(5)]
    launches = [place.serving("plain", "--never", port=port) for _ in range(10)]

    def attempt(number: int) -> object:
        session, name = sessions[number % 5], f"n{number}"
        try:
            return session.call("spawn", name=name, launch=launches[number])["server"]
        except OperationFailed as refused:
            return refused

    with ThreadPoolExecutor(10) as pool:
        outcomes = list(pool.map(attempt, range(10)))

    started = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, OperationFailed)]
    assert len(started) == 1
    name, pid = started[0]["name"], started[0]["pid"]
    assert {(error.kind, error.problem) for error in refused} == {
        (
            "port_taken",
            f"port {port} belongs to the server {name} (PID {pid}), which does not listen yet",
        )
    }
    assert states(sessions[0]) == {name: "starting"}


def test_a_taken_port_is_refused_with_its_owner(place, session, port) -> None:
    """The owner is named by pid, command line and user, and nothing is started."""
    stranger = subprocess.Popen(place.engine("plain", "--port", port, "--mark", place.mark("m")))
    try:
        until(lambda: place.read_marks("m"))

        with pytest.raises(OperationFailed) as refused:
            session.call("spawn", name="a", launch=place.serving("plain", port=port))
    finally:
        stranger.kill()
        stranger.wait()

    error = refused.value
    title = " ".join(stranger.args)
    assert error.kind == "port_taken"
    shown = title if len(title) <= 80 else title[:77] + "..."
    assert error.problem == (
        f"port {port} is taken by PID {stranger.pid} ({shown}, user {error.data['user']})"
    )
    assert error.way_out == "End that process, or give this server another port."
    assert (error.data["pid"], error.data["title"]) == (stranger.pid, title)
    assert tree_of(place.seen_home / "eagleops/servers") == []


def test_a_port_of_a_running_server_is_refused_with_its_name(place, session, port) -> None:
    """A server that eagleops launched is named as such."""
    session.call("spawn", name="old", launch=place.serving("plain", port=port))
    session.call("watch", name="old", timeout_s=60)

    with pytest.raises(OperationFailed) as refused:
        session.call("spawn", name="new", launch=place.serving("plain", port=port))

    assert refused.value.data["server"] == "old"
    assert refused.value.problem.endswith(", of the server old")
    assert refused.value.way_out == (
        "Stop it (eagleops stop --name old), or give this one another port."
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("", "bad_name"), ("../x", "bad_name"), (".", "bad_name"), ("a/b", "bad_name"),
     ("-x", "bad_name"), ("a b", "bad_name"), ("x" * 65, "bad_name"), ("ü", "bad_name"),
     ("a\n", "bad_name")],
)  # fmt: skip
def test_a_name_that_is_no_folders_name_is_refused(place, session, name, kind) -> None:
    """A server's name is also a folder's, and stands in messages."""
    with pytest.raises(OperationFailed) as refused:
        session.call("spawn", name=name, launch=place.launch(["true"]))

    assert refused.value.kind == kind
    assert not place.seen_home.exists()


def unlaunchable(tmp_path: Path) -> dict[str, tuple[dict, str]]:
    """Launches that cannot be, and what is said of them."""
    (tmp_path / "data").write_text("x")
    orphan = tmp_path / "orphan.sh"
    orphan.write_text("#!/no/such/shell\n")
    orphan.chmod(0o755)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\x7fELF nonsense")
    binary.chmod(0o755)
    return {
        "nothing": ({"argv": []}, "there is no command to launch"),
        "unknown": (
            {"argv": ["no-such-program"]},
            f"no-such-program is on none of the server's PATH {DEFAULT_PATH}",
        ),
        "own PATH": (
            {"argv": ["python3"], "env": {"PATH": "/no"}},
            "python3 is on none of the server's PATH /no",
        ),
        "missing": ({"argv": ["/no/python"]}, "/no/python is not there"),
        "data": ({"argv": [f"{tmp_path}/data"]}, f"{tmp_path}/data is not executable"),
        "folder": ({"argv": [str(tmp_path)]}, f"{tmp_path} is no file"),
        "no folder": (
            {"argv": ["true"], "cwd": "/no/folder"},
            "there is no folder /no/folder to start in",
        ),
        "relative": ({"argv": ["true"], "cwd": "x"}, "the folder x is no absolute path"),
        "no interpreter": (
            {"argv": [str(orphan)]},
            f"cannot execute {orphan}: {NO_FILE}",
        ),
        "binary": ({"argv": [str(binary)]}, f"cannot execute {binary}: Exec format error"),
        "too big": (
            {"argv": ["true"], "env": {"BIG": "x" * 131072}},
            f"cannot execute /usr/bin/true: {TOO_LONG}",
        ),
        "zero in argv": (
            {"argv": ["true", "a\0b"]},
            "an argument has a zero byte in it, which no command can take",
        ),
        "zero in env": ({"argv": ["true"], "env": {"A": "\0"}}, "no environment can hold 'A'"),
        "bad variable": ({"argv": ["true"], "env": {"A=B": ""}}, "no environment can hold 'A=B'"),
    }


CASES = [
    "nothing", "unknown", "own PATH", "missing", "data", "folder", "no folder", "relative",
    "no interpreter", "binary", "too big", "zero in argv", "zero in env", "bad variable",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_started_is_refused_without_a_trace(place, session, tmp_path, case) -> None:
    """The reason is named; no folder, no process and no record of it is left."""
    fields, problem = unlaunchable(tmp_path)[case]

    with pytest.raises(OperationFailed) as refused:
        session.call("spawn", name="a", launch=dict(place.launch([]), **fields))

    assert (refused.value.kind, refused.value.problem) == ("spawn_failed", problem)
    assert tree_of(place.seen_home / "eagleops/servers") == []
    assert of_launches(place.launch_ids, str(place.seen_home)) == []


@pytest.mark.parametrize("case", ["unknown", "binary"])
def test_a_refused_launch_leaves_the_run_before_as_it_was(place, session, tmp_path, case) -> None:
    """Its record, its log and the log of the one before it stay where they are."""
    for text in ("first", "second"):
        session.call("spawn", name="a", launch=place.launch(["echo", text]))
        until(lambda: states(session) == {"a": "exited"})
    before = {path: Path(path).read_bytes() for path in files(place.folder("a"))}

    fields, _ = unlaunchable(tmp_path)[case]
    with pytest.raises(OperationFailed):
        session.call("spawn", name="a", launch=dict(place.launch([]), **fields))

    assert {path: Path(path).read_bytes() for path in files(place.folder("a"))} == before


def files(folder: Path) -> list[str]:
    """The files below a folder."""
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def test_the_run_before_is_kept_and_none_further_back(place, session) -> None:
    """A folder of a dead server is used again; its log and record go to ``previous``."""
    for text in ("first", "second", "third"):
        session.call("spawn", name="a", launch=place.launch(["echo", text]))
        until(lambda: states(session) == {"a": "exited"})

    folder = place.folder("a")
    logs = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("server.log")}
    assert logs == {"server.log": "third\n", "previous/server.log": "second\n"}
    previous = json.loads((folder / "previous/process.json").read_text())
    assert previous["launch_id"] == place.launch_ids[1]


def test_a_new_boot_frees_the_name(place, session) -> None:
    """After a reboot the pids on record are other processes': the server is lost, nobody's."""
    server = session.call("spawn", name="a", launch=place.launch(place.engine("plain", "--never")))[
        "server"
    ]
    record = place.folder("a") / "process.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot_id": "another"}))

    found = session.call("servers")["servers"][0]
    assert (found["state"], found["tree"], found["detail"]) == (
        "lost",
        [],
        "the machine or the container was restarted while it ran",
    )
    assert session.call("stop", name="a")["already_exited"] is True
    again = session.call("spawn", name="a", launch=place.launch(["sleep", "600"]))["server"]
    assert again["state"] == "starting"
    assert Path(f"/proc/{server['pid']}").exists()


def test_secrets_reach_no_file_and_no_command_line(place) -> None:
    """A secret of the environment is in the server's environment, and nowhere else."""
    session = place.session()
    word = "hunter2-" + os.urandom(8).hex()
    launch = place.launch(
        place.engine("plain", "--never"),
        env={
            "HF_TOKEN": word,
            "WANDB_API_KEY": word,
            "PROXY": f"http://u:{word}@proxy.example.com",
        },
        expected={"HF_TOKEN": word, "NCCL_ALGO": "Ring"},
    )

    server = session.call("spawn", name="a", launch=launch)["server"]

    assert f"HF_TOKEN={word}".encode() in Path(f"/proc/{server['pid']}/environ").read_bytes()
    assert [p for p in files(place.seen_home) if word.encode() in Path(p).read_bytes()] == []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            assert word.encode() not in (entry / "cmdline").read_bytes()
    guard = Path(f"/proc/{server['supervisor_pid']}/environ").read_bytes()
    assert guard == b"LANG=C.UTF-8\0"
    spec = json.loads((place.folder("a") / "spec.json").read_text())
    assert spec["expected"] == {"HF_TOKEN": "<redacted>", "NCCL_ALGO": "Ring"}
    assert (spec["env"]["HF_TOKEN"], spec["env"]["PROXY"]) == (
        "<redacted>",
        "http://u:<redacted>@proxy.example.com",
    )


def test_a_secret_argument_is_in_no_file(place, session) -> None:
    """Its command line is the server's own; the record leaves the value out."""
    argv = [*place.engine("plain", "--never"), "--mark", place.mark("m")]
    launch = place.launch(["env", "-u", "X", "API_KEY=sesame-1", *argv, "--model", "m"])

    session.call("spawn", name="a", launch=launch)

    assert [p for p in files(place.seen_home) if b"sesame-1" in Path(p).read_bytes()] == []
    spec = json.loads((place.folder("a") / "spec.json").read_text())
    assert spec["argv"][3] == "API_KEY=<redacted>"


def test_what_the_client_calls_a_secret_is_one_whatever_its_name(place, session) -> None:
    """A variable and a word that were secrets by reference are left out of the record."""
    word = "sesame-2"
    launch = place.launch(
        ["bash", "-c", "sleep 600; exit", word],
        env={"ALERTS": word, "PLAIN": "1"},
        expected={"ALERTS": word, "PLAIN": "1"},
        secret_env=["ALERTS"],
        secret_words=[3],
    )

    session.call("spawn", name="a", launch=launch)

    assert [p for p in files(place.seen_home) if word.encode() in Path(p).read_bytes()] == []
    spec = json.loads((place.folder("a") / "spec.json").read_text())
    assert spec["argv"][3] == "<redacted>"
    assert spec["expected"] == {"ALERTS": "<redacted>", "PLAIN": "1"}
    assert (spec["env"]["ALERTS"], spec["env"]["PLAIN"]) == ("<redacted>", "1")
    (main,) = session.call("environ", name="a")["processes"][:1]
    assert set(main["initial"]["variables"]["ALERTS"]) == {"sha256"}
    assert main["initial"]["variables"]["PLAIN"] == "1"


def test_the_state_folder_is_its_owners_alone(place, session) -> None:
    """Logs show prompts: nobody else may read them."""
    session.call("spawn", name="a", launch=place.launch(["sleep", "600"]))

    folder = place.folder("a")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == dict.fromkeys(
        [
            "spec.json",
            "process.json",
            "exit.json.reserve",
            "server.log",
            "supervisor.py",
        ],
        0o600,
    )


@pytest.mark.parametrize("delay_ms", [0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80])
def test_a_session_that_dies_in_the_middle_leaves_one_consistent_state(place, delay_ms) -> None:
    """Whenever it is killed, there is one server on record or none, and a next launch is clear."""
    session, witness = place.session(), place.session()
    pid = session_pid(session)
    launch = place.launch(place.engine("plain", "--never"))
    thread = threading.Thread(target=attempt, args=(session, launch), daemon=True)
    thread.start()
    time.sleep(delay_ms / 1000)  # the moment is the point

    os.kill(pid, 9)
    thread.join(10)

    second = place.launch(place.engine("plain", "--never"))
    try:
        expected = witness.call("spawn", name="a", launch=second)["server"]
    except OperationFailed as refused:
        expected = refused.data["server"]
    servers = witness.call("servers")["servers"]
    assert [(s["name"], s["state"], s["pid"]) for s in servers] == [
        ("a", "starting", expected["pid"])
    ]
    assert until(lambda: of_launches(place.launch_ids) == [expected["pid"]])


def attempt(session, launch) -> None:
    """A spawn whose session may die."""
    with contextlib.suppress(EagleError):
        session.call("spawn", name="a", launch=launch)


def test_a_server_outlives_its_session_and_all_of_its_process_group(place) -> None:
    """SIGHUP and SIGKILL to the session's whole session of processes do not reach it."""
    session = place.session()
    pid = session_pid(session)
    launch = place.serving("plain")
    server = session.call("spawn", name="a", launch=launch)["server"]

    os.killpg(os.getpgid(pid), 1)
    os.killpg(os.getpgid(pid), 9)

    fresh = place.session()
    assert fresh.call("watch", name="a", timeout_s=60)["outcome"] == "ready"
    assert fresh.call("servers")["servers"][0]["pid"] == server["pid"]


def test_a_server_outlives_the_ssh_connection(sshd, tmp_path) -> None:
    """Sshd's processes for the connection are killed; the server becomes ready all the same."""
    place = local_place(tmp_path, sshd.transport())
    try:
        session = place.session()
        session.call("spawn", name="a", launch=place.serving("plain", "--load-s", 0.5))
        assert sshd.connections() != []

        sshd.kill_connections()

        place.transport = sshd.transport()
        again = place.session()
        assert until(lambda: states(again) == {"a": "ready"})
    finally:
        place.close()


def test_the_supervisor_cannot_be_ended_by_a_stray_signal(place, session) -> None:
    """SIGHUP and SIGINT pass it by; SIGTERM it hands on to the server."""
    server = session.call("spawn", name="a", launch=place.launch(place.engine("plain", "--never")))[
        "server"
    ]
    for number in (1, 2, 3, 13):
        os.kill(server["supervisor_pid"], number)
    assert states(session) == {"a": "starting"}

    os.kill(server["supervisor_pid"], 15)

    until(lambda: states(session) == {"a": "exited"})
    assert session.call("servers")["servers"][0]["signal"] == "SIGTERM"


def test_an_unwritable_state_home_is_told_with_the_way_out(place, tmp_path) -> None:
    """A file where the folder should be: nothing can be kept, so nothing is started."""
    (tmp_path / "file").write_text("")
    session = place.session(state_home=str(tmp_path / "file"))

    with pytest.raises(OperationFailed) as refused:
        session.call("spawn", name="a", launch=place.launch(["true"]))

    assert refused.value.problem == (
        f"no state can be kept in {tmp_path}/file/eagleops/servers: Not a directory"
    )
    assert refused.value.way_out == (
        "Name another folder as `state_home:` of this machine in hosts.yaml."
    )
