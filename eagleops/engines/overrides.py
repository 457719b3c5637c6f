"""What an engine sets in its own environment, whatever the launch said.

A worker's variable that differs from the profile's is not always a fault of the launch: the
engines write some themselves, and which ones changes by version. The tables name the place in
the engine's source that each row was read from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from eagleops.profile import Profile


@attrs.frozen
class Override:
    """One variable that an engine sets by itself.

    Attributes:
        name: The variable.
        value: What it is set to; None for a value that the engine makes up (a path, a run id).
        forced: Whether it replaces a value that was set before; else it only fills a gap.
        when: Under which condition, for example ``with --enable-symm-mem``; empty for always.
        versions: Of the engine, for example ``up to 0.5.4``; empty for all that are known.
        source: Where the engine's source says so.
    """

    name: str
    value: str | None
    forced: bool
    when: str = ""
    versions: str = ""
    source: str = ""

    def told(self, engine: str) -> str:
        """The row in words.

        For example ``SGLang up to 0.5.4 sets NCCL_CUMEM_ENABLE=0, whatever was set before``.
        """
        assignment = self.name if self.value is None else f"{self.name}={self.value}"
        words = " ".join(filter(None, (engine, self.versions, "sets", assignment, self.when)))
        return f"{words}, whatever was set before" if self.forced else f"{words}, if it is not set"


@attrs.frozen
class Rule:
    """A row of a table: overrides that hold for the profiles that ``applies`` picks."""

    overrides: tuple[Override, ...]
    applies: Callable[[Profile], bool] = lambda _: True


def applicable(rules: Iterable[Rule], profile: Profile) -> tuple[Override, ...]:
    """The overrides of every rule that applies to ``profile``.

    What only fills a gap is left out where the profile sets the variable itself.
    """
    return tuple(
        override
        for rule in rules
        if rule.applies(profile)
        for override in rule.overrides
        if override.forced or override.name not in profile.env
    )


def flag(*names: str) -> Callable[[Profile], bool]:
    """Whether one of these flags is given, in either spelling of its dashes."""
    return lambda profile: any(name.replace("_", "-") in names for name in profile.args)


def sets(name: str) -> Callable[[Profile], bool]:
    """Whether the profile sets a variable to something that both engines read as true."""
    return lambda profile: profile.env.get(name, "0").lower() in {"1", "true", "yes", "y"}
