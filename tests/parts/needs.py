"""What a part needs of the machine; a test that cannot have it skips and says why.

With ``EAGLEOPS_REQUIRE_PARTS=1`` (set where the whole suite is judged) such a skip is a
failure, so that a green run cannot mean "nothing was tried".
"""

from __future__ import annotations

import os
import shutil

import pytest


def cannot(reason: str) -> None:
    """Skips the test with ``reason``, or fails it where every part is required."""
    if os.environ.get("EAGLEOPS_REQUIRE_PARTS") == "1":
        pytest.fail(f"EAGLEOPS_REQUIRE_PARTS=1 and {reason}", pytrace=False)
    pytest.skip(reason)


def program(name: str, package: str) -> str:
    """The path of ``name``; sbin is looked through even where a user's PATH lacks it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which(name, path=path)
    if found is None:
        cannot(f"{name} is not installed (Debian package {package})")
        raise AssertionError
    return found


def root(what: str) -> None:
    """Skips unless this is root."""
    if os.geteuid() != 0:
        cannot(f"{what} needs root")
