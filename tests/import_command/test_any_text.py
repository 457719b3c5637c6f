"""Whatever is pasted, it is imported or refused: nothing else comes of it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eagleops.errors import UsageError
from eagleops.inventory import parse
from eagleops.pasted import commented, import_command

PIECES = [
    "python3", "-m", "sglang.launch_server", "--model-path", "/m", "--port", "8000", "vllm",
    "serve", "ssh", "root@h", "'", '"', "\\", "\n", " ", "&", "&&", "||", "|", ";", ">", "2>&1",
    "<<EOF", "EOF", "$(", ")", "(", "`", "${X", "}", "{a,b}", "A=1", "A =", "export", "env", "-u",
    "nohup", "bash", "-c", "pct", "exec", "129", "--", "docker", "-e", "sudo", "if", "then", "fi",
    "while", "do", "done", "#", "~", "$X", "*", "!", "=", "--x=", "-5", "\0", "é", "“", "\t",
    "tmux", "new", "-d", "screen", "timeout", "cd", "source", "kill", "echo", "xargs", "\r", "$'",
]  # fmt: skip
pieces = st.sampled_from(PIECES)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(pieces, st.text(max_size=4)), max_size=30), st.sampled_from(["", " "]))
@example(["ssh"], " ")
@example(["env", "-u"], " ")
@example(['0"', "$(", "“"], "")
@example(['0"', "`", '"'], "")
@example(["${X", "\U00010000"], "")
@example(["°\U0003c2f0{\U000e367f"], "")
@example(["x $(')')y"], "")
@example(['x $("a)") "$(echo ")")"'], "")
@example(["""x "${X:-it's}" """], "")
@example(["bash", "-c", "'", "bash", "-c", '"', "ssh", "h", '"', "'"], " ")
def test_nothing_but_a_usage_error_stops_an_import(words: list[str], between: str) -> None:
    """And what is imported is an inventory that can be read, its comments comments."""
    text = between.join(words)
    try:
        imported = import_command(text, file="F")
    except UsageError:
        return
    parse(commented(imported.findings) + imported.yaml)
