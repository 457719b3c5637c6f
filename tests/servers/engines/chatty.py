"""An engine that writes much, long and odd, then serves: see ``--what``."""

import os
import sys

import web


def flood():
    """100 MB of short lines."""
    line = b"x" * 99 + b"\n"
    block = line * 10_000
    for _ in range(100):
        os.write(1, block)


def long_lines():
    """A line of 10 MB, a progress bar, and bytes that are no text."""
    os.write(1, b"y" * 10_000_000 + b"\n")
    os.write(1, b"Loading:  0%\rLoading: 50%\rLoading: 100%\n")
    os.write(1, b"not UTF-8: \xff\xfe\n")


def reopen():
    """Closes stdout and opens the same file again."""
    path = "/proc/self/fd/1"
    again = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.close(1)
    os.write(2, b"written while stdout was closed\n")
    os.dup2(again, 1)
    print("written after stdout was opened again", flush=True)


if __name__ == "__main__":
    options = web.arguments(("--what", {"default": "flood"}))
    {"flood": flood, "long_lines": long_lines, "reopen": reopen}[options.what]()
    sys.stdout.flush()
    web.serve(options, after_bind=lambda: os.write(1, b"no end of line yet"))
