"""A server of a tensor-parallel decode loop over a real NCCL, for nccl_nights.py.

    python nccl_server.py PORT RANKS

As an engine does: one process speaks OpenAI's API, a spawned worker a GPU titles itself, and for
each token every worker replays a CUDA graph of matrix products, each followed by an all-reduce of
8 KiB, as decoding is. What NCCL's variables are is its caller's business.
"""

from __future__ import annotations

import http.server
import json
import multiprocessing
import os
import socket
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

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
    graph = captured(ranks)
    told.send("ready")
    while True:
        for _ in range(told.recv()):
            for _ in range(REPLAYS):
                graph.replay()
            torch.cuda.synchronize()
            if rank == 0:
                told.send("token")


def captured(ranks: int) -> Any:
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

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


class Answer(http.server.BaseHTTPRequestHandler):
    """OpenAI's API as far as a measurement asks for it."""

    protocol_version = "HTTP/1.1"
    ranks: tuple[Connection, ...] = ()
    turn = threading.Lock()

    def do_GET(self) -> None:
        """Ready, and the only model."""
        body = json.dumps({"data": [{"id": "loop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Streams a completion, a token at a time, as rank 0 says that it is there."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        count = asked["max_tokens"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        with self.turn:
            for rank in self.ranks:
                rank.send(count)
            for number in range(1, count + 1):
                self.ranks[0].recv()
                ended = "length" if number == count else None
                choice = {"index": 0, "text": " x", "finish_reason": ended}
                self.tell({"id": "1", "choices": [choice]})
        usage = {"prompt_tokens": 8, "completion_tokens": count}
        self.tell({"id": "1", "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def tell(self, event: dict[str, Any]) -> None:
        """One event of the stream."""
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing: the log is for NCCL and for what goes wrong."""


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
    Answer.ranks = tuple(ends)
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()


if __name__ == "__main__":
    os.chdir("/")
    main(int(sys.argv[1]), int(sys.argv[2]))
