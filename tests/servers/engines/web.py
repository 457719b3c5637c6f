"""What the stand-in engines of these tests share: a real HTTP server, and marks for the test."""

import argparse
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def arguments(*more):
    """The command line of every engine; ``more`` are options of one alone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--model", default="/models/right")
    parser.add_argument("--load-s", type=float, default=0.0)
    parser.add_argument("--ready-when", type=Path)
    parser.add_argument("--slow-probe-s", type=float, default=0.0)
    parser.add_argument("--reuse-port", action="store_true")
    parser.add_argument("--silent-model", action="store_true")
    parser.add_argument("--mark")
    parser.add_argument("--workers", type=int, default=0)
    for name, settings in more:
        parser.add_argument(name, **settings)
    return parser.parse_args()


def mark(path, text=None):
    """Tells the test that something happened, and when."""
    if path:
        with Path(path).open("a", encoding="ascii") as file:
            file.write("{:.6f} {}\n".format(time.time(), text or ""))


class Server(ThreadingHTTPServer):
    """Listens as its options say."""

    daemon_threads = True

    def __init__(self, options):
        self.options = options
        self.ready = False
        super().__init__((options.address, options.port), Handler)

    def server_bind(self):
        """With SO_REUSEPORT where that was asked for."""
        if self.options.reuse_port:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


class Handler(BaseHTTPRequestHandler):
    """Answers as SGLang and vLLM do."""

    def do_GET(self):
        """Health, and the model under both engines' paths."""
        options = self.server.options
        if self.path == "/health_generate":
            time.sleep(options.slow_probe_s)
            self.answer(200 if self.server.ready else 503, {})
        elif self.path == "/get_model_info" and not options.silent_model:
            self.answer(200, {"model_path": options.model})
        elif self.path == "/v1/models":
            self.answer(200, {"data": [{"id": "other"}, {"id": options.model}]})
        else:
            self.answer(404, {})

    def answer(self, status, document):
        """Sends JSON."""
        body = json.dumps(document).encode("ascii")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Nothing: the log is the test's."""


def serve(options, after_bind=None):
    """Binds, and becomes ready ``load_s`` later, or when there is a file; serves for good."""
    server = Server(options)
    if after_bind:
        after_bind()

    def become_ready():
        time.sleep(options.load_s)
        while options.ready_when and not options.ready_when.exists():
            time.sleep(0.01)
        server.ready = True
        mark(options.mark, "ready")
        print("The server is fired up and ready to roll!", flush=True)

    threading.Thread(target=become_ready, daemon=True).start()
    server.serve_forever()
    sys.exit(0)
