"""An engine that ignores SIGTERM, as one does that drains requests without limit."""

import multiprocessing
import signal
import time

import web


def work(mark):
    """One worker's life; it ignores SIGTERM too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    web.mark(mark, "worker")
    time.sleep(600)


if __name__ == "__main__":
    options = web.arguments()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    spawning = multiprocessing.get_context("spawn")
    for _ in range(options.workers):
        spawning.Process(target=work, args=(options.mark,)).start()
    web.serve(options)
