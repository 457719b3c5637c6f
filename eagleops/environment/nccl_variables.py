"""When NCCL reads which variable, and so what its silence about one means.

Sources: NCCL 2.18 to 2.30, misc/param.cc, graph/tuning.cc, graph/connect.cc, init.cc.
"""

from __future__ import annotations

import re

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
    words = value.removeprefix("^").split(",")
    return tuple(word for word in words if word and word.lower() not in _WORDS[name])
