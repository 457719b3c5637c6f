"""A thread whose requests leave no trace in logs.

urllib3 logs each request's path at DEBUG, and a webhook's path is its password.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

_LIBRARIES = ("urllib3", "requests", "charset_normalizer", "idna")


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Drops what HTTP's libraries log in this thread meanwhile; other threads' lines go on."""
    import requests.adapters  # noqa: F401 - all of their loggers are there from now on

    thread = threading.get_ident()

    def others(_: logging.LogRecord) -> bool:
        return threading.get_ident() != thread

    # A filter counts for the logger that it stands on alone, not for those below it.
    loggers = [
        logging.getLogger(name)
        for name in list(logging.root.manager.loggerDict)
        if name.partition(".")[0] in _LIBRARIES
    ]
    for logger in loggers:
        logger.addFilter(others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(others)
