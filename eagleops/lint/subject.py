"""What a rule looks at: a profile, its flags under the engine's names, and what is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import attrs

from eagleops.engines import Override, engine
from eagleops.engines.flags import dashed
from eagleops.errors import ProfileError
from eagleops.knowledge.flags import Flag, FlagTable, shipped
from eagleops.knowledge.nccl import Variable, variable
from eagleops.knowledge.values import Fault, faults
from eagleops.lint.facts import UNASKED, Facts
from eagleops.profile import ArgValue, Profile, SecretReference

_INTEGER = re.compile(r"-?\d{1,12}\Z")


@attrs.frozen(slots=False, kw_only=True)
class Subject:
    """A profile under examination.

    Attributes:
        facts: What was found out beside it.
    """

    profile: Profile
    facts: Facts = UNASKED

    @cached_property
    def table(self) -> FlagTable | None:
        """The flags that there are: the installed engine's, else the shipped table's."""
        return self.facts.flags or shipped(self.profile.engine)

    @cached_property
    def flags(self) -> dict[str, tuple[str, ArgValue]]:
        """The profile's flags by the name that the engine uses: its own name and value.

        Of two spellings of one flag the last one stands, as argparse has it.
        """
        named: dict[str, tuple[str, ArgValue]] = {}
        known = shipped(self.profile.engine)
        for name, value in self.profile.args.items():
            flag = known.find(dashed(name)) if known else None
            canonical = flag.of if flag is not None else dashed(name)
            named[canonical.lstrip("-").replace("_", "-")] = (name, value)
        return named

    @cached_property
    def flag_places(self) -> tuple[tuple[str, str], ...]:
        """Each flag as it stands in a command, and where it stands in the profile."""
        names = self.profile.args
        return tuple((dashed(name), self.profile.place(f"args.{name}")) for name in names)

    @cached_property
    def nccl(self) -> tuple[tuple[Variable, str], ...]:
        """The profile's variables of NCCL that are described, with their values."""
        return tuple(
            (known, value)
            for name, value in self.profile.env.items()
            if name.startswith("NCCL_") and not isinstance(value, SecretReference)
            if (known := variable(name)) is not None
        )

    @cached_property
    def nccl_faults(self) -> tuple[tuple[Variable, Fault], ...]:
        """All that is wrong with their values."""
        return tuple((known, fault) for known, value in self.nccl for fault in faults(known, value))

    @cached_property
    def overrides(self) -> tuple[Override, ...]:
        """The variables that the engine sets by itself; none where the profile cannot launch."""
        try:
            return engine(self.profile.engine).overrides(self.profile)
        except ProfileError:  # told by not-launchable
            return ()

    def given(self, *names: str) -> ArgValue | None:
        """The value of the first of these flags that is given."""
        for name in names:
            if name in self.flags:
                return self.flags[name][1]
        return None

    def text(self, *names: str) -> str | None:
        """The flag's value where it is one text and no reference."""
        value = self.given(*names)
        if isinstance(value, str) and not isinstance(value, SecretReference):
            return value
        return None

    def integer(self, *names: str) -> int | None:
        """The flag's value where it is a whole number."""
        text = self.text(*names)
        return int(text) if text is not None and _INTEGER.match(text) else None

    def place(self, *names: str) -> str:
        """Where the first of these flags that is given stands; the profile without any."""
        for name in names:
            if name in self.flags:
                return self.profile.place(f"args.{self.flags[name][0]}")
        return self.profile.place()

    def env_place(self, name: str) -> str:
        """Where a variable stands."""
        return self.profile.place(f"env.{name}")

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Every text of the profile with its key, references left out."""
        return tuple(self._texts())

    def _texts(self) -> Iterator[tuple[str, str]]:
        profile = self.profile
        singles: list[tuple[str, Any]] = [("model", profile.model), ("python", profile.python)]
        singles += [(f"env.{name}", value) for name, value in profile.env.items()]
        for name, value in profile.args.items():
            items = value if isinstance(value, tuple) else (value,)
            singles += [(f"args.{name}", item) for item in items]
        singles += [("command", word) for word in profile.command]
        for key, value in singles:
            if isinstance(value, str) and not isinstance(value, SecretReference):
                yield key, value

    def known(self, name: str) -> Flag | None:
        """The flag of the profile's spelling ``name``; None if the table has none."""
        return None if self.table is None else self.table.find(dashed(name))

    @property
    def asked(self) -> bool:
        """Whether the installed engine was asked for its flags."""
        return self.facts.flags is not None
