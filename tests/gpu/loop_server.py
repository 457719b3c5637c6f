"""A server that decodes as an engine does, on one GPU, for nights.py.

    python loop_server.py PORT

For each token it replays a CUDA graph of as many matrix products as LAYERS in its environment says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from completions import captured, serve

WIDTH, REPLAYS = 4096, 4


def main(port: int, layers: int) -> None:
    """Serves when the graph is there."""
    import torch

    torch.manual_seed(1)
    make: dict[str, Any] = {"device": "cuda", "dtype": torch.float16}
    weights = [torch.randn(WIDTH, WIDTH, **make) / WIDTH for _ in range(layers)]
    state = torch.randn(1, WIDTH, **make)

    def step() -> None:
        now = state
        for weight in weights:
            now = torch.relu(now @ weight)
        state.copy_(now / (now.abs().max() + 1e-3))

    graph = captured(step)

    def decode(count: int) -> Iterator[None]:
        for _ in range(count):
            for _ in range(REPLAYS):
                graph.replay()
            torch.cuda.synchronize()
            yield

    print("ready with", layers, "layers", flush=True)
    serve(port, decode)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(os.environ["LAYERS"]))
