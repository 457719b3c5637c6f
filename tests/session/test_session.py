"""A session over each way: what an operation returns, how it fails, how it is called off."""

import base64
import contextlib
import os
import secrets
import signal
import threading
import time
from pathlib import Path

import pytest

from eagleops import interpreter
from eagleops import session as session_module
from eagleops.errors import LinkLost, NoInterpreter, OperationFailed, TimedOut
from eagleops.remote.operations import OPERATIONS
from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from parts import needs
from parts.poll import acting_when, processes_with, until

PYENV = Path("~/.pyenv/versions").expanduser()


def output(result):
    """What an executed command printed."""
    return base64.b64decode(result["stdout"])


def test_an_operation_returns_its_result(session):
    """A command's output, errors and exit status come back."""
    result = session.call("execute", argv=["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (output(result), base64.b64decode(result["stderr"]), result["exit_status"]) == (
        b"out\n",
        b"err\n",
        3,
    )


def test_an_interpreter_tells_who_it_is(session):
    """The session knows the interpreter's version and PID."""
    version = output(session.call("execute", argv=["python3", "-V"])).decode().split()[1]
    parent = int(output(session.call("execute", argv=["sh", "-c", "echo $PPID"])))
    assert (session.python_version, session.pid) == (version, parent)


def test_operations_follow_one_another(session):
    """One interpreter serves any number of operations, also after one that failed."""
    for number in range(50):
        assert output(session.call("execute", argv=["echo", str(number)])) == b"%d\n" % number
    with pytest.raises(OperationFailed):
        session.call("execute", argv=["no-such-program"])
    assert output(session.call("execute", argv=["echo", "on"])) == b"on\n"


def test_a_typed_failure_comes_back_as_one(session):
    """An operation's failure has its stable kind, its sentence, and names the target."""
    with pytest.raises(OperationFailed) as failed:
        session.call("execute", argv=["no-such-program"])
    assert (failed.value.kind, str(failed.value)) == (
        "not_found",
        f"{session.where}: no such command: no-such-program",
    )


def test_an_operation_that_is_not_there_is_a_typed_failure(session):
    """An unknown name is refused over there with the names there are."""
    with pytest.raises(
        OperationFailed, match="there is no operation 'dance'; there are "
    ) as failed:
        session.call("dance")
    assert failed.value.kind == "unknown_operation"


def test_a_mistake_over_there_comes_back_with_its_traceback(open_session, operate):
    """An exception in an operation is told as internal, with the place in its source."""
    operate("stumble", "def stumble(context):\n    yield {'event': 'x'}\n    1 / 0\n")
    session = open_session(LocalTransport())
    with pytest.raises(OperationFailed, match="ZeroDivisionError: division by zero") as failed:
        session.call("stumble")
    assert failed.value.kind == "internal"
    assert '<eagleops.remote.stumble>", line' in failed.value.data["traceback"]
    assert "1 / 0" in failed.value.data["traceback"]
    assert session.call("execute", argv=["true"])["exit_status"] == 0


@pytest.mark.parametrize("made", ["return {'x': b''}", "yield {'event': 'x', 'y': {1, 2}}"])
def test_what_is_no_json_is_told(open_session, operate, made):
    """A result or event that is no JSON is an internal failure, not a dead session."""
    operate("strange", f"def strange(context):\n    yield {{'event': 'x'}}\n    {made}\n")
    session = open_session(LocalTransport())
    with pytest.raises(OperationFailed, match="JSON") as failed:
        session.call("strange")
    assert failed.value.kind == "internal"
    assert session.call("execute", argv=["true"])["exit_status"] == 0


def test_events_come_as_they_happen(open_session, operate, way):
    """A stream yields each event before the next can happen, and the result last."""
    operate(
        "count",
        """
        def count(context, to, heard):
            for number in range(to):
                yield {"event": "number", "number": number}
                while not os.path.exists("{}-{}".format(heard, number)):
                    context.sleep(0.01)
                os.unlink("{}-{}".format(heard, number))
            return {"to": to}
        """,
    )
    session = open_session(way)
    heard, seen = f"/tmp/heard-{secrets.token_hex(8)}", []
    for event in session.stream("count", to=3, heard=heard, time_limit_s=60.0):
        seen.append(event)
        if event["event"] == "number":
            way.run(["touch", f"{heard}-{event['number']}"])
    assert [event["event"] for event in seen] == ["number", "number", "number", "done"]
    assert seen[-1]["result"] == {"to": 3}


def test_a_slow_operation_is_heard_of(open_session, operate, way):
    """An operation that says nothing for long does not count as a dead link: it is alive."""
    operate(
        "rest",
        "def rest(context):\n    context.sleep(6)\n    yield {'event': 'x'}\n    return {}\n",
    )
    session = open_session(way)
    assert session.call("rest", silence_s=4.0) == {}


def test_a_time_limit_is_kept_over_there(session):
    """A command over its limit is ended over there, and the failure says so."""
    word = f"limit-{secrets.token_hex(8)}"
    started = time.monotonic()
    with pytest.raises(OperationFailed) as failed:
        session.call("execute", argv=["sh", "-c", f"sleep 30; : {word}"], time_limit_s=0.5)
    assert failed.value.kind == "time_limit"
    assert time.monotonic() - started < 25.0
    until(lambda: not processes_with(word))
    assert session.call("execute", argv=["true"])["exit_status"] == 0


def test_an_operation_that_hangs_uninterruptibly_is_given_up(open_session, operate, monkeypatch):
    """A driver call that never returns keeps saying alive; the limit is kept here as well."""
    monkeypatch.setattr(session_module, "OVERRUN_S", 1.0)
    operate("hang", "def hang(context):\n    yield {'event': 'x'}\n    time.sleep(30)\n")
    session = open_session(LocalTransport())
    started = time.monotonic()
    with pytest.raises(TimedOut) as given_up:
        session.call("hang", time_limit_s=0.5)
    assert time.monotonic() - started < 25.0
    assert str(given_up.value) == (
        "this machine: hang: no result 1 s after its limit of 0.5 s: it hangs where nothing can "
        "interrupt it (a driver call?); the outcome is unknown\n"
        "Look before you act: eagleops status."
    )
    assert session.usable is False
    # Killed with its stdin after a grace period, driver call or not.
    until(lambda: not Path(f"/proc/{session.pid}").exists(), limit_s=20.0)


def test_a_stream_left_early_calls_the_operation_off(open_session, operate, way):
    """Leaving a stream ends what runs over there; the session serves the next operation."""
    operate(
        "keep",
        """
        def keep(context, word):
            child = subprocess.Popen([word, "30"], executable="/usr/bin/sleep")
            try:
                while True:
                    yield {"event": "kept"}
                    context.sleep(0.05)
            finally:
                child.kill()
                child.wait()
        """,
    )
    session = open_session(way)
    word = f"left-{secrets.token_hex(8)}"
    with contextlib.closing(session.stream("keep", word=word)) as stream:
        next(stream)
        until(lambda: processes_with(word))
    assert processes_with(word) == []
    assert session.call("execute", argv=["true"])["exit_status"] == 0


def test_an_operation_that_is_called_off_at_once_is_called_off(open_session, operate):
    """A cancel that overtakes the start of its operation is not lost."""
    operate(
        "tick",
        """
        def tick(context):
            while True:
                yield {"event": "tick"}
                context.sleep(0.01)
        """,
    )
    session = open_session(LocalTransport())
    for _ in range(20):
        with contextlib.closing(session.stream("tick")) as stream:
            assert next(stream)["event"] == "tick"
    assert session.usable
    for number in range(100, 120):
        request = {"id": number, "op": "tick", "args": {}, "time_limit_s": None}
        session._send(request)
        session._send({"cancel": number})
        while (event := session._receive("tick", number, 5.0))["event"] != "error":
            pass
        assert event["kind"] == "cancelled"


def test_an_operation_that_ignores_being_called_off_costs_the_session(
    open_session, operate, monkeypatch, tmp_path
):
    """A stream that cannot be called off in time closes its session rather than wait for ever."""
    monkeypatch.setattr(session_module, "CALL_OFF_S", 0.5)
    operate(
        "deaf",
        """
        def deaf(context, begun):
            yield {"event": "x"}
            open(begun, "w").close()
            time.sleep(30)
        """,
    )
    session = open_session(LocalTransport())
    stream = session.stream("deaf", begun=str(tmp_path / "begun"))
    next(stream)
    until((tmp_path / "begun").exists)
    started = time.monotonic()
    stream.close()
    assert time.monotonic() - started < 25.0
    assert session.usable is False


def test_an_interrupt_does_not_leave_the_rest_for_the_next(open_session, operate):
    """Ctrl-C while waiting ends operation and session; nothing of it is taken for another's."""
    operate(
        "work",
        "def work(context):\n    yield {'event': 'x'}\n    context.sleep(30)\n    return {}\n",
    )
    session = open_session(LocalTransport())
    main = threading.main_thread().ident
    later = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        session.call("work", on_event=lambda _event: later.start())
    assert session.usable is False
    until(lambda: not Path(f"/proc/{session.pid}").exists())


def test_an_error_of_the_listener_calls_the_operation_off(session):
    """What on_event raises reaches the caller, and the session is free again."""

    def listen(event):
        raise LookupError(event["event"])

    with pytest.raises(LookupError):
        session.call("execute", argv=["true"], on_event=listen)
    assert session.call("execute", argv=["true"])["exit_status"] == 0


def test_a_session_asked_inside_of_its_own_stream_says_so(session):
    """A second operation within the first, from the same thread, is an error and no deadlock."""

    def listen(_event):
        session.call("execute", argv=["true"])

    with pytest.raises(RuntimeError, match="last stream over the session has not ended"):
        session.call("execute", argv=["true"], on_event=listen)


def test_threads_wait_for_one_another(session):
    """30 threads may ask one session; each gets its own answer."""
    answers = {}

    def ask(number):
        answers[number] = output(session.call("execute", argv=["echo", str(number)]))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
    assert answers == {number: b"%d\n" % number for number in range(30)}


def test_closing_leaves_no_process_behind(way, monkeypatch):
    """After close the interpreter is gone, with the command that it ran."""
    word = secrets.token_hex(8)
    monkeypatch.setattr(interpreter.secrets, "token_hex", lambda _size: word)
    session = Session.open(way)

    def run():
        with pytest.raises(LinkLost):
            session.call("execute", argv=["sh", "-c", f"sleep 30; : {word} child"])

    caller = threading.Thread(target=run)
    caller.start()
    until(lambda: processes_with(f"{word} child"))
    assert processes_with(f"eagleops-{word}")
    session.close()
    caller.join(60.0)
    until(lambda: processes_with(word) == [])


def test_a_closed_session_refuses(session):
    """After close, an operation is refused before anything is sent."""
    session.close()
    with pytest.raises(LinkLost, match="the session has ended"):
        session.call("execute", argv=["true"])


def test_a_killed_interpreter_is_told_as_such(open_session):
    """An interpreter that somebody killed is not a broken link, and its outcome is unknown."""
    session = open_session(LocalTransport())
    argv = ["sleep", f"60.{secrets.randbelow(10**9):09d}"]
    acting_when(lambda: processes_with(argv[1]), lambda: os.kill(session.pid, signal.SIGKILL))
    with pytest.raises(LinkLost) as lost:
        session.call("execute", argv=argv)
    for pid in processes_with(argv[1]):
        os.kill(pid, signal.SIGKILL)
    assert str(lost.value) == (
        "this machine: execute: the interpreter over there was ended by SIGKILL, the outcome is "
        "unknown\nLook before you act: eagleops status."
    )


def test_what_an_operation_prints_is_no_event(open_session, operate):
    """print() and a child's output over there go to stderr, and break nothing."""
    operate(
        "chat",
        """
        def chat(context):
            print('{"id": 1, "event": "done", "result": {}}', flush=True)
            subprocess.run(["echo", "{}"])
            yield {"event": "x"}
            return {"true": True}
        """,
    )
    assert open_session(LocalTransport()).call("chat") == {"true": True}


def test_options_reach_the_operations(open_session, operate, way):
    """What the inventory says of a machine is there for every operation."""
    operate(
        "tell", "def tell(context):\n    yield {'event': 'x'}\n    return dict(context.options)\n"
    )
    session = open_session(way, options={"device_prefix": "/tmp/dev/nvidia"})
    told = session.call("tell")
    assert (told["device_prefix"], told["nvml"]) == ("/tmp/dev/nvidia", True)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_where_its_name_says(name):
    """Each name in the table is a function of that name in a module of that name."""
    module = __import__(f"eagleops.remote.{name}", fromlist=[name])
    assert callable(getattr(module, name))


def test_a_python_that_is_too_old_says_so():
    """A python below 3.8 is reached and refused, with its version."""
    for version in ("3.6.15", "3.7.16"):
        python = PYENV / version / "bin" / "python"
        if not python.exists():
            continue
        with pytest.raises(NoInterpreter) as refused:
            Session.open(LocalTransport(), python=str(python))
        short = version.rpartition(".")[0]
        assert f"Python {short} is too old: 3.8 or newer is needed" in str(refused.value)
        assert refused.value.way_out.startswith("Name a python3 of 3.8 or newer")


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_every_python_since_3_8_serves(version, open_session, operate):
    """The remote package starts, and all its modules import, on each python3 from 3.8 on."""
    python = needs.python(version)
    operate(
        "import_all",
        """
        import importlib
        def import_all(context):
            import __main__
            for name in __main__.SOURCES:
                importlib.import_module(name)
                yield {"event": "imported", "name": name}
            return {"modules": len(__main__.SOURCES)}
        """,
    )
    session = open_session(LocalTransport(), python=python)
    assert session.python_version.startswith(version)
    assert session.call("import_all")["modules"] > len(OPERATIONS)
    assert output(session.call("execute", argv=["echo", "served"])) == b"served\n"


def test_a_python_that_is_not_there_is_told(way):
    """A path that names no python is NoInterpreter: the machine itself was reached."""
    with pytest.raises(NoInterpreter) as missing:
        Session.open(way, python="/no/such/python3")
    assert missing.value.exit_status_seen == 127
    assert str(missing.value).startswith(
        f"{way.where}: /no/such/python3 did not answer (exit status 127): "
    )
