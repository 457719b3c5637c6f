"""A server of a tensor-parallel decode loop over a real NCCL, for nccl_nights.py.

    python nccl_server.py PORT RANKS

As an engine does: one process speaks OpenAI's API, a spawned worker a GPU titles itself, and for
each token every worker replays a CUDA graph of matrix products, each followed by an all-reduce of
8 KiB, as decoding is. What NCCL's variables are is its caller's business.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

from completions import captured, serve

LAYERS, WIDTH, REPLAYS = 61, 4096, 2
BOOT_LIMIT_S = 120.0


def work(rank: int, ranks: int, port: int, told: Connection) -> None:
    """A rank: decodes as many tokens as it is told; rank 0 says when each is there."""
    import torch
    import torch.distributed as dist
    from environment_truth import retitle

    retitle(f"loop::scheduler_TP{rank}")
    torch.cuda.set_device(rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("nccl", init_method=address, rank=rank, world_size=ranks)
    graph = forward(ranks)
    told.send("ready")
    while True:
        for _ in range(told.recv()):
            for _ in range(REPLAYS):
                graph.replay()
            torch.cuda.synchronize()
            if rank == 0:
                told.send("token")


def forward(ranks: int) -> Any:
    """One forward pass of a rank's share of the layers, as a CUDA graph."""
    import torch
    import torch.distributed as dist

    torch.manual_seed(1)
    make: dict[str, Any] = {"device": "cuda", "dtype": torch.float16}
    shares = [torch.randn(WIDTH, WIDTH // ranks, **make) / WIDTH for _ in range(LAYERS)]
    backs = [torch.randn(WIDTH // ranks, WIDTH, **make) / WIDTH for _ in range(LAYERS)]
    state = torch.randn(1, WIDTH, **make)

    def step() -> None:
        now = state
        for share, back in zip(shares, backs, strict=True):
            now = torch.relu(now @ share) @ back
            dist.all_reduce(now)
        state.copy_(now / (now.abs().max() + 1e-3))

    return captured(step)


def main(port: int, ranks: int) -> None:
    """Starts the ranks, and serves when all are ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        meeting = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    ends = []
    for rank in range(ranks):
        here, there = context.Pipe()
        context.Process(target=work, args=(rank, ranks, meeting, there), daemon=True).start()
        ends.append(here)
    for end in ends:
        if not end.poll(BOOT_LIMIT_S) or end.recv() != "ready":
            sys.exit("a rank did not come up")
    print("ready with", ranks, "ranks", flush=True)

    def decode(count: int) -> Iterator[None]:
        for end in ends:
            end.send(count)
        for _ in range(count):
            ends[0].recv()
            yield

    serve(port, decode)


if __name__ == "__main__":
    os.chdir("/")
    main(int(sys.argv[1]), int(sys.argv[2]))
