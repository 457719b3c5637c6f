"""Commands that measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.api_key import api_key
from eagleops.tasks.command import HOST_HELP, NAME_HELP, Call, command

if TYPE_CHECKING:
    from eagleops.workflows.bench_result import BenchResult
    from eagleops.workflows.load import LoadResult


@command(
    help={
        **HOST_HELP,
        **NAME_HELP,
        "runs": "replies that count",
        "tokens": "of each reply",
        "warmups": "replies before that do not count",
        "prompt": "a shipped text: code, long, prose or short",
        "direct": "connect to the machine's address, not through SSH",
        "telemetry": "watch the GPUs meanwhile",
        "load": "the engine's own load benchmark instead: concurrency=64[,requests=256,...]",
        "record": "record the figures in the ledger",
    }
)
def bench(
    call: Call,
    name: str | None = None,
    host: str | None = None,
    runs: int = 5,
    tokens: int = 256,
    warmups: int = 1,
    prompt: str = "prose",
    load: str | None = None,
    direct: bool = False,
    telemetry: bool = True,
    record: bool = True,
) -> BenchResult | LoadResult:
    """Measure decode speed, with the machine's state beside it; or put on load."""
    key = api_key()
    server = call.host(host).server(name)
    with call.progress() as progress:
        if load:
            return server.load(load, record=record, progress=progress)
        return server.bench(
            runs=runs,
            tokens=tokens,
            warmups=warmups,
            prompt=prompt,
            direct=direct,
            sample=telemetry,
            api_key=key,
            record=record,
            progress=progress,
        )
