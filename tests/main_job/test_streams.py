"""Who reads a command, and whether anybody does, changes nothing of what it does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.parser.argument import Argument

from eagleops.errors import UsageError
from eagleops.server import require_name
from eagleops.tasks import namespace, numbers

Commands = Callable[..., object]

LINE = '"$@"'
NOBODY_LISTENS = [
    f"{LINE} 2>/dev/full",
    f"{LINE} 2>&-",
    f"{LINE} 2> >(true)",
    f"{LINE} <&- >&- 2>&-",
    f"{LINE} | true; exit ${{PIPESTATUS[0]}}",
    f"{LINE} --json | true; exit ${{PIPESTATUS[0]}}",
]


def shell(commands: Commands, script: str, *words: str, **more: str) -> subprocess.CompletedProcess:
    """Runs a command as part of a line of bash."""
    argv = ["bash", "-c", script, "bash", *commands.argv(*words)]
    return subprocess.run(
        argv,
        cwd=commands.folder,
        env={**commands.environment, **more},
        check=False,
        capture_output=True,
        timeout=300,
    )


@pytest.mark.parametrize("script", NOBODY_LISTENS)
def test_a_job_is_done_whoever_listens(commands: Commands, script: str) -> None:
    """Progress and result may be lost; the server is launched and stopped, and the status 0."""
    assert shell(commands, script, "launch").returncode == 0
    states = [one["state"] for one in commands("status", "--json").document["servers"]]
    assert states == ["ready"]

    assert shell(commands, script, "stop").returncode == 0
    states = [one["state"] for one in commands("status", "--json").document["servers"]]
    assert states == ["exited"]


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["logs"], ["logs", "--json"]])
def test_a_result_that_cannot_be_written_is_an_error(commands: Commands, words: list[str]) -> None:
    """On a full disk: one line on stderr, status 1."""
    commands("launch")

    answer = shell(commands, f"{LINE} >/dev/full", *words)

    expected = "error: the result cannot be written to stdout: No space left on device\n"
    assert answer.stderr.decode() == expected
    assert answer.returncode == 1


WHAT_INVOKE_PRINTS = ["", "--help", "--list", "--version", "launch --help"]
WHAT_INVOKE_REFUSES = ["sttus", "status --bogus", "status --bogus --json", "--help sttus"]
SHUT = {
    "no reader": f"{LINE} | true; exit ${{PIPESTATUS[0]}}",
    "no reader of either": f"{LINE} 2>&1 | true; exit ${{PIPESTATUS[0]}}",
    "closed": f"{LINE} >&- 2>&-",
    "stderr full": f"{LINE} 2>/dev/full",
}


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("script", SHUT.values(), ids=SHUT)
def test_help_ends_quietly_whoever_listens(
    commands: Commands, script: str, unbuffered: str
) -> None:
    """What Invoke prints by itself: no traceback for a reader who has gone, and the status."""
    for words in WHAT_INVOKE_PRINTS + WHAT_INVOKE_REFUSES:
        answer = shell(commands, script, *words.split(), PYTHONUNBUFFERED=unbuffered)

        assert answer.returncode == (2 if words in WHAT_INVOKE_REFUSES else 0), words
        assert b"Error" not in answer.stderr, words


def test_help_for_a_task_that_is_none_tells_what_was_meant(commands: Commands) -> None:
    """As for a task that is none itself: one error, and status 2."""
    answer = commands("--help", "sttus")

    expected = "error: No idea what 'sttus' is!\nDid you mean status? See: eagleops --list"
    assert (answer.exit_status, answer.stdout) == (2, "")
    assert answer.stderr.startswith(expected)


def test_the_program_has_its_own_name_however_it_was_started(commands: Commands) -> None:
    """By ``python -m eagleops`` too: in the usage line, and for a shell's completion."""
    assert commands("--help").stdout.startswith("Usage: eagleops ")
    assert "_complete_eagleops()" in commands("--print-completion-script", "bash").stdout
    completed = commands("--complete", "--", "eagleops", "launch", "--").stdout.split()
    assert {"--profile", "--host", "--json"} <= set(completed)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_that_cannot_be_written_is_an_error(commands: Commands, unbuffered: str) -> None:
    """On a full disk: one line on stderr, status 1; a slip in the words keeps its own status."""
    full = f"{LINE} >/dev/full"
    for words in WHAT_INVOKE_PRINTS:
        answer = shell(commands, full, *words.split(), PYTHONUNBUFFERED=unbuffered)

        expected = "error: the result cannot be written to stdout: No space left on device\n"
        assert (answer.returncode, answer.stderr.decode()) == (1, expected), words

    answer = shell(commands, full, "status", "--bogus", "--json", PYTHONUNBUFFERED=unbuffered)
    assert answer.returncode == 2
    assert "--bogus" in answer.stderr.decode()


@pytest.mark.parametrize("script", [f"{LINE} 2>/dev/full", f"{LINE} 2>&1 >/dev/null | true"])
def test_an_error_that_nobody_is_told_keeps_its_status(commands: Commands, script: str) -> None:
    """The status of a command that failed is the failure's, whatever stderr takes."""
    script += "; exit ${PIPESTATUS[0]}"

    assert shell(commands, script, "status", "--host", "nowhere").returncode == 2


def test_an_error_is_told_where_its_document_cannot_be_written(commands: Commands) -> None:
    """--json and a full stdout: the error's own words on stderr, and its own status."""
    answer = shell(commands, f"{LINE} >/dev/full", "status", "--host", "nowhere", "--json")

    assert answer.returncode == 2
    assert "nowhere" in answer.stderr.decode()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_a_small_alphabet(commands: Commands, encoding: str) -> None:
    """What it does not have becomes a question mark, not an error."""
    for command in ("launch", "status", "verify-env", "hosts"):
        answer = shell(commands, LINE, command, PYTHONIOENCODING=encoding, PYTHONUTF8="0")

        assert answer.returncode == 0, answer.stderr
        answer.stdout.decode(encoding)


@pytest.mark.parametrize("text", ["abc", "", "-1", "nan", "inf", "1e400", "0x10", "--json"])
@pytest.mark.parametrize("name", ["lines", "drain_timeout"])
def test_a_number_that_is_none_is_a_slip(name: str, text: str) -> None:
    """It names the flag, what was given, and what holds without."""

    def body(_call: object, lines: int = 100, drain_timeout: float = 60.0) -> None: ...

    with pytest.raises(UsageError) as slip:
        numbers.read(body, {"lines": "7", "drain_timeout": "1.5", name: text})

    flag = "--" + name.replace("_", "-")
    assert slip.value.problem.startswith(f"{flag} takes a ")
    assert slip.value.problem.endswith(f"of 0 or more, not {text!r}")


def test_a_count_has_an_end() -> None:
    """What no database can hold is a slip of the hand too."""

    def body(_call: object, limit: int = 20, timeout: float = 60.0) -> None: ...

    assert numbers.read(body, {"limit": str(2**63 - 1)}) == {"limit": 2**63 - 1}
    with pytest.raises(
        UsageError, match=r"^--limit takes a whole number up to 9223372036854775807"
    ):
        numbers.read(body, {"limit": str(2**63)})


def test_no_command_leaves_a_number_to_invoke() -> None:
    """Invoke sees every number as a text: whoever adds a flag gets the check with it."""
    kinds = {
        argument.kind for task in namespace.tasks.values() for argument in task.get_arguments()
    }

    assert kinds <= {str, bool, list}


def test_a_slip_in_a_number_is_an_error_like_any_other(commands: Commands) -> None:
    """Status 2, as text and as a document."""
    answer = commands("logs", "--lines", "abc")

    assert answer.exit_status == 2
    expected = "error: --lines takes a whole number of 0 or more, not 'abc'\nWithout it: 100.\n"
    assert answer.stderr == expected
    assert commands("stop", "--grace=-1", "--json").document["error"]["type"] == "UsageError"


FLAGS = [
    (task.name, argument)
    for task in namespace.tasks.values()
    for argument in task.get_arguments()
    if argument.kind in {str, list}
]


@pytest.mark.parametrize(("name", "flag"), FLAGS, ids=[f"{n}-{f.name}" for n, f in FLAGS])
def test_an_empty_text_is_no_flag_that_was_left_out(capsys, name: str, flag: Argument) -> None:
    """``--host "$HOST"`` with a variable that is not set: status 2, not the default host."""
    task = namespace[name]
    needed = {one.name: "x" for one in task.get_arguments() if one.positional}
    empty = [""] if flag.kind is list else ""

    with pytest.raises(Exit) as ended:
        task(Context(), **{**needed, flag.name: empty})

    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: --{flag.name.replace('_', '-')} is given, and is empty\n")


@pytest.mark.parametrize(
    "words",
    [["status", "--bogus"], ["sttus"], ["status", "--host"], ["launch", "extra"], ["stop", "-x"]],
)
def test_a_wrong_command_line_is_a_document_too(commands: Commands, words: list[str]) -> None:
    """--json holds for the slips that are seen before any command runs."""
    answer = commands(*words, "--json")

    assert answer.exit_status == 2
    assert json.loads(answer.stdout)["error"]["type"] == "UsageError"
    assert answer.stderr == ""


BAD_NAMES = ["", ".", "../x", "a b", "-x", "ünï", "a/b", "a\n", "x" * 65, "$(reboot)"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_no_server_can_have_is_refused(name: str) -> None:
    """A name is a folder's, a log's and a word of commands; the rule is told."""
    with pytest.raises(UsageError, match="letters, digits, dots"):
        require_name(name)


def test_a_bad_name_is_refused_before_anything_is_touched(commands: Commands) -> None:
    """Status 2; a launch of it has not killed what runs."""
    commands("launch")

    asked = ("launch", "stop", "logs", "verify-env", "bench")
    for command in (*asked, "reproduce --run 1", "import-command --file -"):
        assert commands(*command.split(), "--name=a b").exit_status == 2, command
    states = [one["state"] for one in commands("status", "--json").document["servers"]]
    assert states == ["ready"]


def test_a_second_stop_says_that_there_was_nothing_to_stop(commands: Commands) -> None:
    """It holds, so the status is 0; it was not this command's doing, and that is said."""
    commands("launch")
    assert commands("stop", "--json").document["already_exited"] is False

    again = commands("stop")

    assert again.exit_status == 0
    assert "had ended before" in again.stdout
    assert commands("stop", "--json").document["already_exited"] is True


STAGES = ["create_config", "parse_core", "parse_collection", "parse_tasks", "execute"]


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupt_before_the_command_begins(commands: Commands, stage: str) -> None:
    """Ctrl-C while flags are read or modules load: one word, status 130, no traceback."""
    interrupted = (
        "import os, signal, sys; from invoke.program import Program;"
        "from eagleops.tasks.program import main;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"
        f"Program.{stage} = lambda *_: os.kill(os.getpid(), signal.SIGINT); main()"
    )
    argv = [commands.argv()[0], "-c", interrupted, "status"]

    answer = subprocess.run(
        argv, cwd=commands.folder, env=commands.environment, capture_output=True, check=False
    )

    assert (answer.returncode, answer.stderr) == (130, b"interrupted\n")
