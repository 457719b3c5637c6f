"""Logging: structlog on stderr, set up by a face and by nobody else.

The library logs steps ("reset: killed 3 processes"), never an environment or an argv:
those may hold secrets.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

import structlog

Logger = structlog.typing.FilteringBoundLogger

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
KEPT_BYTES = 1024 * 1024
KEPT_FILES = 5


def configure(*, debug: bool = False) -> None:
    """Sends log lines to stderr: warnings and worse, or everything with ``debug``."""
    level = logging.DEBUG if debug else logging.WARNING
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str) -> Logger:
    """The logger of one module, bound to its name."""
    logger: Logger = structlog.get_logger(module=name)
    return logger


@contextlib.contextmanager
def kept(path: Path, *, max_bytes: int = KEPT_BYTES, files: int = KEPT_FILES) -> Iterator[Logger]:
    """A logger whose lines stay in a file, from info up: what a night did, read in the morning.

    A full file becomes ``<path>.1``, that one ``<path>.2``; the oldest goes, so that all of them
    hold no more than ``max_bytes * files``. One process may write at a time. The file is the
    owner's alone. A log that cannot be written is told of once, on stderr, and costs nothing else.

    Args:
        path: The file; folders above it are made.
        max_bytes: Of one file.
        files: How many there are, the newest included; 2 or more.
    """
    handler = _Rotating(path, max_bytes, files)
    try:
        yield structlog.wrap_logger(
            _Lines(handler),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                # One line an event, whatever stands in it.
                structlog.processors.LogfmtRenderer(
                    key_order=("timestamp", "level", "event"), bool_as_flag=False
                ),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        )
    finally:
        # What could not be written before is tried once more, and was told of.
        with contextlib.suppress(OSError):
            handler.close()


class _Rotating(RotatingFileHandler):
    def __init__(self, path: Path, max_bytes: int, files: int) -> None:
        self._told = False
        super().__init__(
            path,
            maxBytes=max_bytes,
            backupCount=files - 1,
            encoding="utf-8",
            errors="backslashreplace",
            delay=True,  # so that a file that cannot be opened is told of as any other trouble
        )

    def _open(self) -> TextIOWrapper:
        folder = Path(self.baseFilename).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return open(
            self.baseFilename,
            "a",
            encoding=self.encoding,
            errors=self.errors,
            opener=lambda name, flags: os.open(name, flags | os.O_CLOEXEC, 0o600),
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - logging's own
        if not self._told:
            self._told = True
            error = sys.exc_info()[1]
            why = getattr(error, "strerror", None) or type(error).__name__
            sys.stderr.write(f"{self.baseFilename}: no log is kept: {why}\n")


class _Lines:
    """What structlog hands its finished lines to."""

    def __init__(self, handler: logging.Handler) -> None:
        self._handler = handler

    def info(self, line: str) -> None:
        # What a machine said may hold what moves a terminal's cursor, or ends a line for some.
        safe = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], line)
        self._handler.handle(logging.makeLogRecord({"msg": safe}))

    warning = error = critical = info
