"""Comparisons: synthetic ones for the report, real ones on the embedded box."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from comparison.examples import SECRET, example
from eagleops.library import Library, load
from eagleops.workflows.compare_result import CompareResult
from parts.reserved import free_port


@pytest.fixture
def result() -> CompareResult:
    """EAGLE-3 against the baseline, five restarts each, one of them throttled."""
    pytest.importorskip("scipy", reason="the [stats] extra is not installed")
    return example()


@pytest.fixture
def inventory_of(tmp_path: Path, monkeypatch) -> Callable[..., Path]:
    """Writes a hosts.yaml with a box and a ledger of this test's own."""
    for name in [name for name in os.environ if name.startswith("EAGLEOPS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def write(**sims: str) -> Path:
        lines = [
            "defaults: {host: sim, profile: baseline}",
            "ledger: ledger.db",
            "hosts: {sim: {transport: sim, sim: {gpus: 1}}}",
            "profiles:",
            "  baseline:",
            "    engine: sglang",
            "    model: /shared/kimi-k2.5-int4",
            f"    port: {free_port()}",
            "    args: {tp-size: 1, host: 127.0.0.1}",
            f"    env: {{NCCL_PROTO: LL, HF_TOKEN: {SECRET}}}",
            f"    sim: {{start_s: 0.2, warmup_s: 0.1, speed: 10, {sims.get('baseline', '')}}}",
            "  eagle3-2step:",
            "    extends: baseline",
            "    args: {speculative-algorithm: EAGLE3, speculative-num-steps: 2,",
            "      speculative-draft-model-path: /data/eagle3,",
            "      speculative-eagle-topk: 1, speculative-num-draft-tokens: 3}",
            f"    sim: {{{sims.get('eagle', '')}}}",
        ]
        file = tmp_path / "hosts.yaml"
        file.write_text("\n".join(lines) + "\n")
        return file

    return write


@pytest.fixture
def open_library(inventory_of) -> Iterator[Callable[..., Library]]:
    """Opens an inventory of :func:`inventory_of`; its servers are ended at the end."""
    opened: list[Library] = []

    def open_(**sims: str) -> Library:
        opened.append(load(inventory_of(**sims)))
        return opened[-1]

    yield open_
    for library in opened:
        machine = library.host("sim").machine
        for server in machine.call("servers")["servers"]:
            if server["state"] != "exited" or server["tree"]:
                machine.call("stop", name=server["name"], grace_s=0.1)
        library.close()
