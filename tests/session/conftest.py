"""Fixtures of the sessions' tests: sessions over each way, and operations of a test's own."""

import textwrap
import zlib

import pytest

from eagleops import interpreter
from eagleops.bundle import bundle
from eagleops.session import Session

_HEADER = """
from __future__ import annotations
import json, os, signal, subprocess, sys, time
from eagleops.remote.failure import Failure
"""


@pytest.fixture
def operate(monkeypatch):
    """``operate("name", source)`` sends a module with an operation of that name along."""
    added = {}

    def program():
        text = zlib.decompress(bundle()).decode()
        extra = "".join(
            f"SOURCES['eagleops.remote.{name}'] = {source!r}\n"
            "SOURCES['eagleops.remote.operations'] = SOURCES['eagleops.remote.operations']"
            f".replace('OPERATIONS = (', 'OPERATIONS = (\"{name}\",')\n"
            for name, source in added.items()
        )
        return zlib.compress(
            text.replace("\nimport importlib.abc", f"\n{extra}\nimport importlib.abc", 1).encode()
        )

    def add(name, source):
        added[name] = _HEADER + textwrap.dedent(source)

    monkeypatch.setattr(interpreter, "bundle", program)
    return add


@pytest.fixture
def open_session():
    """Opens sessions and closes them after the test."""
    opened = []

    def start(transport, **settings):
        opened.append(Session.open(transport, **settings))
        return opened[-1]

    yield start
    for session in opened:
        session.close()


@pytest.fixture
def session(way, open_session):
    """A session over each way."""
    return open_session(way)
