"""A command's flags, so that two commands can be compared whatever their order."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"-\d+(\.\d+)?\Z|-\.\d+\Z")
GIVEN = "given"


def program_of(argv: Sequence[str]) -> tuple[str, ...]:
    """What is started: the words before the first ``--flag``."""
    for at, word in enumerate(argv):
        if word.startswith("--"):
            return tuple(argv[:at])
    return tuple(argv)


def flags_of(argv: Sequence[str]) -> dict[str, str]:
    """Each flag with its values as one text; :data:`GIVEN` for a bare one.

    Underscores count as dashes, ``--a=b`` as ``--a b``; of a flag that is given again all
    values stand, in order.
    """
    found: dict[str, list[str]] = {}
    flag = ""
    for word in argv[len(program_of(argv)) :]:
        if word.startswith("-") and word != "-" and not _NUMBER.match(word):
            name, equals, value = word.partition("=")
            flag = name.replace("_", "-") if name.startswith("--") else name
            found.setdefault(flag, [])
            if equals:
                found[flag].append(value)
        else:
            found[flag].append(word)
    return {name: " ".join(values) if values else GIVEN for name, values in found.items()}
