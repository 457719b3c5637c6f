"""A launch, written for a person to read."""

from __future__ import annotations

from eagleops.engines import describe


def test_variables_and_flags_stand_in_a_line_each(profile) -> None:
    """In a shell's spelling, with what is read from the target named as such."""
    made = profile(
        "sglang",
        env={"NCCL_ALGO": "Ring", "NOTE": "it's here"},
        inherit=["HOME_DIR"],
        args={"tp-size": 8, "note": "a b"},
    )

    shown = describe(made, "/opt/env/bin/python3", nccl_log=False)

    assert shown == (
        "SPT_NOENV=1 \\\n"
        "NCCL_ALGO=Ring \\\n"
        "NOTE='it'\"'\"'s here' \\\n"
        "HOME_DIR=<from the target> \\\n"
        "/opt/env/bin/python3 -m sglang.launch_server \\\n"
        "    --model-path /models/m \\\n"
        "    --tp-size 8 \\\n"
        "    --note 'a b' \\\n"
        "    --port 8000"
    )


def test_secrets_are_left_out(profile) -> None:
    """By their names, in variables and flags."""
    made = profile("vllm", env={"HF_TOKEN": "hunter2"}, args={"api-key": "hunter2"})

    shown = describe(made, "python3")

    assert "hunter2" not in shown
    assert "HF_TOKEN='<redacted>'" in shown
    assert "--api-key '<redacted>'" in shown
