"""``show-profile``: each value with the line that it comes from."""

from __future__ import annotations

from eagleops.inventory import parse
from eagleops.workflows.show_profile import show_profile

INVENTORY = parse(
    "hosts: {sim: {transport: sim}}\n"
    "profiles:\n"
    "  nccl:\n"
    "    abstract: true\n"
    "    env: {NCCL_ALGO: Ring}\n"
    "  p:\n"
    "    extends: nccl\n"
    "    engine: sglang\n"
    "    model: /m\n"
    "    port: 8000\n"
    "    env:\n"
    "      HF_TOKEN: hf_secret\n"
)


def test_resolved_shows_what_is_inherited_and_where_it_stands() -> None:
    """In the order of the fields; secrets replaced."""
    report = show_profile(INVENTORY, "p", resolved=True)

    assert list(report.rows()) == [
        ("engine", "sglang", "hosts.yaml:8: profiles.p"),
        ("model", "/m", "hosts.yaml:9: profiles.p"),
        ("port", "8000", "hosts.yaml:10: profiles.p"),
        ("env.NCCL_ALGO", "Ring", "hosts.yaml:5: profiles.nccl"),
        ("env.HF_TOKEN", '"<redacted>"', "hosts.yaml:12: profiles.p"),
    ]
    assert "python3 -m sglang.launch_server" in report.command
    assert "hf_secret" not in str(report.to_dict())


def test_without_resolved_the_profile_alone_is_shown() -> None:
    """Nothing of its parents."""
    keys = [key for key, _, _ in show_profile(INVENTORY, "p").rows()]

    assert keys == ["engine", "model", "port", "env.HF_TOKEN"]
