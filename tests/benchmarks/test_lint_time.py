"""Lint is no reason to skip lint."""

from __future__ import annotations

import time

import pytest

from eagleops.inventory import load, shipped
from eagleops.lint import lint

PROFILES = 100
LIMIT_S = 0.050


@pytest.mark.alone
def test_a_hundred_profiles_are_linted_within_50_ms(record_property) -> None:
    """In this process, once the tables are read: the best of five, of CPU time."""
    inventory = load(shipped())
    names = inventory.profile_names()
    profiles = [
        inventory.profile(names[n % len(names)]).with_(name=f"p{n}", port=8000 + n)
        for n in range(PROFILES)
    ]
    lint(profiles[0])
    taken = []
    for _ in range(5):
        begin = time.process_time()
        for profile in profiles:
            lint(profile)
        taken.append(time.process_time() - begin)
    record_property("lint_100_profiles_ms", round(min(taken) * 1000, 1))

    assert min(taken) < LIMIT_S
