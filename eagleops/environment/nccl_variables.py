"""When NCCL reads which variable, and so what its silence about one means.

Sources: NCCL 2.18 to 2.30, misc/param.cc, graph/tuning.cc, graph/connect.cc, init.cc.
"""

from __future__ import annotations

import re

from eagleops.environment.values import is_number, nccl_number

# Read anew for each communicator of two or more ranks; all others once, and then kept.
READ_EACH_TIME = frozenset({"NCCL_ALGO", "NCCL_PROTO"})

# Read while any communicator of two or more ranks is made, in whatever machine: if NCCL has
# made one and did not name such a variable, it was not set at that moment.
READ_AT_INIT = READ_EACH_TIME | {
    "NCCL_BUFFSIZE",
    "NCCL_LL_BUFFSIZE",
    "NCCL_LL128_BUFFSIZE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NTHREADS",
}

# NCCL never says in its log that it read these.
NEVER_LOGGED = frozenset(
    {
        "NCCL_CONF_FILE",
        "NCCL_DEBUG",
        "NCCL_DEBUG_FILE",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_DEBUG_TIMESTAMP_FORMAT",
        "NCCL_DEBUG_TIMESTAMP_LEVELS",
        "NCCL_NO_CACHE",
        "NCCL_SET_THREAD_NAME",
        "NCCL_WARN_ENABLE_DEBUG_INFO",
    }
)

# Up to this version an unknown word in NCCL_ALGO or NCCL_PROTO is passed over in silence, and
# what is not named is switched off; later ones refuse it aloud.
LAST_SILENT = (2, 23)
_WORDS = {
    "NCCL_ALGO": frozenset(
        {"tree", "ring", "collnet", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"}
    ),
    "NCCL_PROTO": frozenset({"ll", "ll128", "simple"}),
}
_P2P_LEVELS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")


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
    if name == "NCCL_NTHREADS":
        threads = nccl_number(value)
        if threads is not None and threads > 0 and (threads % 32 or not 64 <= threads <= 512):  # noqa: PLR2004
            return f"NCCL takes multiples of 32 from 64 to 512, not {threads}", True
    if name in _WORDS:
        unknown = [word for word in _words_of(value) if word.lower() not in _WORDS[name]]
        if unknown:
            return f"NCCL up to 2.30 does not know {unknown[0]}", False
    if name == "NCCL_P2P_LEVEL" and not is_number(value) and value not in _P2P_LEVELS:
        certain = value.upper() in _P2P_LEVELS
        why = ", which are told apart by case," if certain else ""
        return f"NCCL's words for it{why} are {', '.join(_P2P_LEVELS)}", certain
    return "", False


def _words_of(value: str) -> list[str]:
    """The words of a list: ``^Ring,Tree`` or, per function, ``allreduce:tree;broadcast:ring``."""
    lists = (part.rpartition(":")[2] for part in value.split(";"))
    return [word for each in lists for word in each.strip("^").split(",") if word]


def silently_ignored(name: str, value: str, version: str) -> tuple[str, ...]:
    """The words of ``value`` that this version of NCCL passed over without a word.

    Args:
        name: NCCL_ALGO or NCCL_PROTO; other names have no such words.
        value: What NCCL read.
        version: As its log says, for example ``2.21.5+cuda12.4``.
    """
    number = re.match(r"(\d+)\.(\d+)", version)
    if name not in _WORDS or number is None:
        return ()
    if (int(number[1]), int(number[2])) > LAST_SILENT:
        return ()
    return tuple(word for word in _words_of(value) if word.lower() not in _WORDS[name])
