"""Logging: structlog on stderr, set up by a face and by nobody else.

The library logs steps ("reset: killed 3 processes"), never an environment or an argv:
those may hold secrets.
"""

from __future__ import annotations

import logging
import sys

import structlog


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


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of one module, bound to its name."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(module=name)
    return logger
