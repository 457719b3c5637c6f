"""The key that a server wants of its clients: a variable, for everybody can read a command line."""

from __future__ import annotations

import os

VARIABLE = "EAGLEOPS_API_KEY"


def api_key() -> str | None:
    """The key; None where none is set.

    Raises:
        UsageError: if it cannot be sent; before anything is touched.
    """
    key = os.environ.get(VARIABLE)
    if key:
        from eagleops.streaming.http import require_key

        require_key(key)
    return key
