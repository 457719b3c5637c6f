"""What the servers of nights on a real GPU have in common: a CUDA graph, and OpenAI's API."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any


def captured(step: Callable[[], None]) -> Any:
    """A step, as a CUDA graph to be replayed."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def serve(port: int, decode: Callable[[int], Iterable[None]]) -> None:
    """Serves completions for good, one at a time, as far as a measurement asks for them.

    Args:
        port: On loopback.
        decode: Makes so many tokens, and yields when each is there.
    """
    turn = threading.Lock()

    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = json.dumps({"data": [{"id": "loop"}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            count = asked["max_tokens"]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            with turn:
                for number, _ in enumerate(decode(count), 1):
                    ended = "length" if number == count else None
                    choice = {"index": 0, "text": " x", "finish_reason": ended}
                    self.tell({"id": "1", "choices": [choice]})
            usage = {"prompt_tokens": 8, "completion_tokens": count}
            self.tell({"id": "1", "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def tell(self, event: dict[str, Any]) -> None:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Nothing: the log is for what goes wrong."""

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()
