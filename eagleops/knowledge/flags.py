"""The flags of an engine: which there are, since when, until when, and what took their place.

The shipped tables were read from the engines' parsers, version by version; a table of one
version is made from the help text of an installed engine.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal

import attrs

# One value, none, several, one or none, a switch that --no-x turns off; any where it is not known.
Takes = Literal["one", "none", "many", "optional", "pair", "any"]
# A value given to one of these is no slip; each may follow it, or need not.
_FREE = {"any", "optional"}
_SHIPPED = {"sglang": "sglang_flags.json", "vllm": "vllm_flags.json"}
# A name this much alike is a slip of the finger.
TYPO = 0.84
_OPTION = re.compile(r"^ {2,4}(?P<spellings>-{1,2}[A-Za-z].*)$")
_SPELLING = re.compile(r"(?:^|,\s)(-{1,2}[A-Za-z][\w.-]*)(?P<value>[^,]*)")


@attrs.frozen(kw_only=True)
class Flag:
    """One spelling of a flag.

    Attributes:
        name: With its dashes.
        of: The spelling that the engine's documents use; ``name`` itself for that one.
        first: Index of the first version of the table that has it; -1 for older than all.
        last: Of the last one.
        choices: The values that its newest version takes; empty for any.
        deprecated: Index of the version from which on the engine warns; None for never.
        heir: What to write instead.
    """

    name: str
    of: str
    takes: Takes
    first: int
    last: int
    choices: tuple[str, ...] = ()
    deprecated: int | None = None
    heir: str = ""


@attrs.frozen(kw_only=True)
class FlagTable:
    """The flags of an engine in some of its versions, oldest first.

    Attributes:
        installed: Whether it was asked of an engine: then what it lacks is not there.
    """

    engine: str
    versions: tuple[str, ...]
    flags: Mapping[str, Flag]
    source: str = ""
    installed: bool = False

    @property
    def newest(self) -> int:
        """The index of the newest version."""
        return len(self.versions) - 1

    def find(self, spelling: str) -> Flag | None:
        """The flag of that spelling, as the engines' parsers take it; None if there is none.

        Underscores count as dashes, ``--no-x`` turns a switch off, ``--x.y`` sets a part of x,
        and the unambiguous beginning of a flag of the newest version stands for it.
        """
        return self.exact(spelling) or self._beginning(spelling)

    def exact(self, spelling: str) -> Flag | None:
        """The flag that is spelled so, or is a switch's ``--no-`` or a part of it."""
        lead = "--" if spelling.startswith("--") else ""
        name = lead + spelling[len(lead) :].replace("_", "-")
        for candidate in (spelling, name, name.partition(".")[0]):
            if candidate in self.flags:
                return self.flags[candidate]
        switch = self.flags.get("--" + name.removeprefix("--no-")) if "--no-" in name else None
        return attrs.evolve(switch, takes="none") if switch and switch.takes == "pair" else None

    def beginnings(self, spelling: str) -> tuple[str, ...]:
        """The flags of the newest version that begin so, one spelling of each."""
        name = spelling.replace("_", "-")
        if not name.startswith("--"):
            return ()
        found = {
            flag.of
            for flag in self.flags.values()
            if flag.last == self.newest and flag.name.startswith(name)
        }
        return tuple(sorted(found))

    def nearest(self, spelling: str, cutoff: float = 0.6) -> str | None:
        """The spelling of the newest version that is most like this one."""
        name = spelling.replace("_", "-")
        known = [flag.name for flag in self.flags.values() if flag.last == self.newest]
        near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
        return near[0] if near else None

    def _beginning(self, spelling: str) -> Flag | None:
        found = self.beginnings(spelling)
        return self.flags.get(found[0]) if len(found) == 1 else None


@cache
def shipped(engine: str) -> FlagTable | None:
    """The table that comes with the package; None for an engine without one."""
    if engine not in _SHIPPED:
        return None
    text = (resources.files("eagleops.knowledge") / _SHIPPED[engine]).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    choices = [tuple(each) for each in document["choices"]]
    flags = {
        name: Flag(
            name=name,
            of=row.get("of", name),
            takes=row["takes"],
            first=row["in"][0],
            last=row["in"][1],
            choices=choices[row["choices"]] if "choices" in row else (),
            deprecated=row.get("deprecated"),
            heir=row.get("heir", ""),
        )
        for name, row in document["flags"].items()
    }
    return FlagTable(
        engine=document["engine"],
        versions=tuple(document["versions"]),
        flags=MappingProxyType(flags),
        source=document["source"],
    )


def from_help(engine: str, version: str, text: str) -> FlagTable:
    """The table of an installed engine, from what ``--help`` printed.

    Args:
        engine: Its name.
        version: As its distribution says.
        text: argparse's help; other lines in it are passed over.
    """
    known = shipped(engine)
    flags: dict[str, Flag] = {}
    for line in text.splitlines():
        option = _OPTION.match(line)
        if option is None:
            continue
        spellings = re.split(r"\s{2,}", option["spellings"].strip())[0]
        found = _SPELLING.findall(re.sub(r"\{[^}]*\}", "{}", spellings))
        if not found:
            continue
        metavar = " ".join(value.strip() for _, value in found if value.strip())
        names = [name for name, _ in found]
        main = next((name for name in names if name.startswith("--")), names[0])
        for name in names:
            heir = known.flags[name].heir if known and name in known.flags else ""
            flags[name] = Flag(
                name=name,
                of=main,
                takes=_takes(names, metavar),
                first=0,
                last=0,
                choices=_choices(spellings),
                heir=heir,
            )
    return FlagTable(
        engine=engine,
        versions=(version,),
        flags=MappingProxyType(flags),
        source=f"{engine} {version}'s --help",
        installed=True,
    )


def _takes(names: list[str], metavar: str) -> Takes:
    if any(name.startswith("--no-") for name in names) and len(names) > 1:
        return "pair"
    if not metavar:
        return "none"
    if "..." in metavar:
        return "many"
    return "optional" if metavar.startswith("[") else "one"


def _choices(metavar: str) -> tuple[str, ...]:
    listed = re.search(r"\{([^}]*)\}", metavar)
    return tuple(word.strip() for word in listed[1].split(",")) if listed else ()


def fits(flag: Flag, value: Any) -> bool:
    """Whether a flag that is given ``value`` (True: none) has as many as it takes."""
    if flag.takes in _FREE:
        return True
    if value is True:
        return flag.takes in {"none", "pair"}
    if isinstance(value, tuple):
        return flag.takes == "many" or (flag.takes == "one" and len(value) == 1)
    return flag.takes in {"one", "many"}
