"""An engine that dies at its start, ``--how status`` or ``--how signal``, after ``--load-s``.

``--serving``: it answers as not ready until then.
"""

import os
import signal
import sys
import threading
import time

import web


def die(options, after_s):
    """Dies when it is time."""
    time.sleep(after_s)
    web.mark(options.mark, "dying")
    if options.how == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    print("Traceback (most recent call last):\nRuntimeError: Not enough memory.", file=sys.stderr)
    sys.stderr.write("the last words, with no end of line")
    sys.stderr.flush()
    os._exit(3)


if __name__ == "__main__":
    options = web.arguments(
        ("--how", {"default": "status"}), ("--serving", {"action": "store_true"})
    )
    threading.Thread(target=die, args=(options, options.load_s), daemon=True).start()
    if options.serving:
        options.load_s = 600
        web.serve(options)
    time.sleep(600)
