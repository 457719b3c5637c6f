"""When NCCL reads which variable, and so what its silence about one means.

Sources: NCCL 2.18 to 2.30, misc/param.cc, graph/tuning.cc, graph/connect.cc, init.cc.
"""

from __future__ import annotations

from eagleops.knowledge.nccl import table, variable, version_number
from eagleops.knowledge.numbers import is_number, nccl_number
from eagleops.knowledge.values import unknown_words

# Read anew for each communicator of two or more ranks; all others once, and then kept.
READ_EACH_TIME = frozenset(v.name for v in table().variables.values() if v.read == "each")

# Read while any communicator of two or more ranks is made, in whatever machine: if NCCL has
# made one and did not name such a variable, it was not set at that moment.
READ_AT_INIT = READ_EACH_TIME | {v.name for v in table().variables.values() if v.read == "init"}

# NCCL never says in its log that it read these.
NEVER_LOGGED = frozenset(v.name for v in table().variables.values() if not v.logged)


def is_nccl(name: str) -> bool:
    """Whether NCCL reads a variable of that name."""
    return name.startswith("NCCL_")


def is_logged(name: str, value: str) -> bool:
    """Whether NCCL would name it in its log when it reads it."""
    if name == "NCCL_P2P_DISABLE" and value != "1":
        return False
    return is_nccl(name) and name not in NEVER_LOGGED and value != ""


def when_read(name: str) -> str:
    """When the variable is read, as a sentence of a story."""
    if name in READ_EACH_TIME:
        return "NCCL reads it anew for each communicator of two or more ranks"
    if name in NEVER_LOGGED:
        return "NCCL reads it once, at its first call, and does not name it in its log"
    if is_nccl(name):
        return "NCCL reads it once, where it first needs it, and keeps what it read"
    return (
        "C code reads it by getenv when it likes; Python code reads os.environ, a copy made when "
        "the interpreter started, which os.putenv and C code do not change"
    )


def unacceptable(name: str, value: str) -> tuple[str, bool]:
    """Why NCCL would not accept a value, and whether that is certain; empty if it may.

    For where its log does not say: of NCCL_ALGO and NCCL_PROTO a newer NCCL may know more.
    """
    known = variable(name)
    if known is None:
        return "", False
    if known.multiple_of is not None:
        number, least, most = nccl_number(value), known.least or 0, known.most or 0
        if number and number > 0 and (number % known.multiple_of or not least <= number <= most):
            takes = f"multiples of {known.multiple_of} from {least} to {most}"
            return f"NCCL takes {takes}, not {number}", True
    if known.kind == "choices" and (unknown := unknown_words(known, value)):
        return f"NCCL up to 2.30 does not know {unknown[0]}", False
    if known.kind == "level" and not is_number(value) and not known.knows(value):
        certain = value.upper() in known.allowed
        why = ", which are told apart by case," if certain else ""
        return f"NCCL's words for it{why} are {', '.join(known.allowed)}", certain
    return "", False


def silently_ignored(name: str, value: str, version: str) -> tuple[str, ...]:
    """The words of ``value`` that this version of NCCL passed over without a word.

    Args:
        name: NCCL_ALGO or NCCL_PROTO; other names have no such words.
        value: What NCCL read.
        version: As its log says, for example ``2.21.5+cuda12.4``.
    """
    known = variable(name)
    number = version_number(version)
    if known is None or not known.fatal_since or not number:
        return ()
    if number >= version_number(known.fatal_since):
        return ()
    return tuple(unknown_words(known, value))
