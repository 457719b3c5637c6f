"""Commands are compared by their flags, whatever the order."""

from __future__ import annotations

import pytest

from eagleops.ledger.flags import flags_of, program_of

SGLANG = ["/env/bin/python3", "-m", "sglang.launch_server"]


@pytest.mark.parametrize(
    ("argv", "program", "flags"),
    [
        (
            [*SGLANG, "--tp-size", "8", "--trust-remote-code", "--port=8000"],
            SGLANG,
            {"--tp-size": "8", "--trust-remote-code": "given", "--port": "8000"},
        ),
        (["vllm", "serve", "m", "-tp", "8"], ["vllm", "serve", "m", "-tp", "8"], {}),
        (["vllm", "serve", "--x", "-tp", "8"], ["vllm", "serve"], {"--x": "given", "-tp": "8"}),
        ([*SGLANG, "--max_tokens", "-1", "-0.5"], SGLANG, {"--max-tokens": "-1 -0.5"}),
        ([*SGLANG, "--lora", "a", "--lora", "b"], SGLANG, {"--lora": "a b"}),
        ([*SGLANG, "--sizes", "1", "2", "-"], SGLANG, {"--sizes": "1 2 -"}),
        ([*SGLANG, "--empty", "", "--e2="], SGLANG, {"--empty": "", "--e2": ""}),
        ([], [], {}),
    ],
)
def test_a_command_is_a_program_and_flags(argv, program, flags) -> None:
    """Both engines' ways of writing them; a negative number is a value."""
    assert (list(program_of(argv)), flags_of(argv)) == (program, flags)


def test_another_order_is_the_same() -> None:
    """Two commands that differ in the order of their flags alone have the same flags."""
    one = flags_of([*SGLANG, "--a", "1", "--b-c", "2"])

    assert one == flags_of([*SGLANG, "--b_c=2", "--a", "1"])
