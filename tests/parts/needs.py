"""What a part needs of the machine; a test that cannot have it skips and says why.

Where every part is required such a skip is a failure: see :mod:`parts.skips`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest


def cannot(reason: str) -> NoReturn:
    """Skips the test, or the module that calls this, with ``reason``."""
    pytest.skip(reason, allow_module_level=True)


def program(name: str, package: str) -> str:
    """The path of ``name``; sbin is looked through even where a user's PATH lacks it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which(name, path=path)
    if found is None:
        cannot(f"{name} is not installed (Debian package {package})")
    return found


def python(version: str) -> str:
    """The path of a Python of that version, for example "3.8": pyenv's or the system's."""
    built = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
    found = [*built, *filter(Path.exists, [Path(f"/usr/bin/python{version}")])]
    if not found:
        cannot(f"no Python {version} here (pyenv can build it)")
    return str(found[0])


def root(what: str) -> None:
    """Skips unless this is root."""
    if os.geteuid() != 0:
        cannot(f"{what} needs root")
