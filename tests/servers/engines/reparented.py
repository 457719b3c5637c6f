"""An engine whose workers have sessions of their own and lose their parent at once.

``--titled``: they also write a title over the environment block that /proc shows.
"""

import os
import signal
import time

import web


def start_worker(options):
    """Forks twice: the worker's parent is gone at once."""
    if os.fork():
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.titled:
        import setproctitle

        setproctitle.setproctitle("sglang::scheduler_TP0")
    web.mark(options.mark, f"worker {os.getpid()}")
    time.sleep(600)
    os._exit(0)


if __name__ == "__main__":
    options = web.arguments(("--titled", {"action": "store_true"}))
    for _ in range(options.workers):
        start_worker(options)
    for _ in range(options.workers):
        os.wait()
    web.serve(options)
