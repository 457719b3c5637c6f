"""Rules on NCCL's variables together, and on those that engines and files write beside them."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.knowledge.nccl import words_of
from eagleops.knowledge.numbers import nccl_number
from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject

_SOCKETS = 64
_TITLES = {"sglang": "SGLang", "vllm": "vLLM"}


def _number(subject: Subject, name: str) -> int | None:
    value = subject.profile.env.get(name)
    return None if value is None or value == "" else nccl_number(value)


@rule("nccl-contradiction", "error")
def contradiction(subject: Subject) -> Iterator[Told]:
    """Settings of NCCL do not undo one another."""
    env = subject.profile.env
    if _number(subject, "NCCL_P2P_DISABLE") == 1 and "NCCL_P2P_LEVEL" in env:
        yield (
            subject.env_place("NCCL_P2P_LEVEL"),
            "NCCL_P2P_DISABLE=1 switches P2P off, whatever NCCL_P2P_LEVEL says",
            "Take one of them out.",
        )
    for least, most in (("MIN_NCHANNELS", "MAX_NCHANNELS"), ("MIN_CTAS", "MAX_CTAS")):
        low, high = _number(subject, f"NCCL_{least}"), _number(subject, f"NCCL_{most}")
        if low is not None and high is not None and low > high:
            yield (
                subject.env_place(f"NCCL_{least}"),
                f"NCCL_{least}={low} is more than NCCL_{most}={high}: NCCL sets both to {high}",
                "Lower one, or raise the other.",
            )
    yield from _without_transport(subject)
    threads, sockets = (
        _number(subject, "NCCL_SOCKET_NTHREADS"),
        _number(subject, "NCCL_NSOCKS_PERTHREAD"),
    )
    if threads and sockets and threads * sockets > _SOCKETS:
        yield (
            subject.env_place("NCCL_NSOCKS_PERTHREAD"),
            (
                f"{threads} threads with {sockets} sockets each are more than {_SOCKETS}: "
                "NCCL lowers them"
            ),
            "Their product may be 64 at most.",
        )


def _without_transport(subject: Subject) -> Iterator[Told]:
    env = subject.profile.env
    algorithms = {word.lower() for word in words_of(env.get("NCCL_ALGO", ""))}
    only_nvls = algorithms and algorithms <= {"nvls", "nvlstree"}
    if only_nvls and "^" not in env["NCCL_ALGO"] and _number(subject, "NCCL_NVLS_ENABLE") == 0:
        yield (
            subject.env_place("NCCL_ALGO"),
            "NCCL_ALGO asks for NVLS alone, and NCCL_NVLS_ENABLE=0 switches it off",
            "Set NCCL_NVLS_ENABLE=1, or add Ring.",
        )
    if _number(subject, "NCCL_MNNVL_ENABLE") == 1 and _number(subject, "NCCL_CUMEM_ENABLE") == 0:
        yield (
            subject.env_place("NCCL_MNNVL_ENABLE"),
            "NCCL_MNNVL_ENABLE=1 needs cuMem memory, and NCCL_CUMEM_ENABLE=0 switches it off",
            "Set NCCL_CUMEM_ENABLE=1.",
        )
    if _number(subject, "NCCL_P2P_DISABLE") == 1 and _number(subject, "NCCL_SHM_DISABLE") == 1:
        yield (
            subject.env_place("NCCL_SHM_DISABLE"),
            "without P2P and shared memory the GPUs of one machine talk over its network",
            "Take NCCL_SHM_DISABLE out.",
            "warning",
        )


@rule("nccl-twice", "warning")
def twice(subject: Subject) -> Iterator[Told]:
    """A variable and its newer name are not both set."""
    for old, new, winner in (
        ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "lower"),
        ("NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "higher"),
    ):
        if old in subject.profile.env and new in subject.profile.env:
            message = f"{old} and {new} say the same thing: the {winner} value wins"
            yield subject.env_place(old), message, f"Keep {new}."


@rule("nccl-ll128", "warning")
def ll128(subject: Subject) -> Iterator[Told]:
    """LL128 is not forced: where the machine does not support it, data can be corrupted."""
    value = subject.profile.env.get("NCCL_PROTO", "")
    words = {word.lower() for word in words_of(value)}
    if "ll128" in words and "^" not in value and subject.facts.nvlink is not True:
        yield (
            subject.env_place("NCCL_PROTO"),
            (
                "NCCL_PROTO names LL128, which NCCL leaves out by itself where it is not safe: "
                "named, it runs anyhow, and can corrupt data on GPUs without NVLink"
            ),
            "Leave LL128 out, or NCCL_PROTO unset.",
        )


@rule("nccl-log", "warning")
def log(subject: Subject) -> Iterator[Told]:
    """NCCL's log is left as eagleops sets it: it proves what NCCL took."""
    env = subject.profile.env
    level = env.get("NCCL_DEBUG", "INFO").upper()
    if level in {"VERSION", "WARN"}:
        yield (
            subject.env_place("NCCL_DEBUG"),
            (
                f"with NCCL_DEBUG={level} its log does not say what NCCL took, and verify-env "
                "has one witness less"
            ),
            "Take it out: eagleops sets INFO, into a file of the server's state folder.",
        )
    subsystems = env.get("NCCL_DEBUG_SUBSYS", "ENV").upper()
    if subsystems.startswith("^"):
        shown = "ENV" not in subsystems.strip("^").split(",")
    else:
        shown = bool({"ENV", "ALL"} & set(subsystems.split(",")))
    if not shown:
        yield (
            subject.env_place("NCCL_DEBUG_SUBSYS"),
            (
                "without ENV NCCL's log does not say what NCCL took, and verify-env has one "
                "witness less"
            ),
            "Add ENV to it.",
        )
    file = env.get("NCCL_DEBUG_FILE", "%p")
    if "%p" not in file and not file.startswith("/dev/std"):
        yield (
            subject.env_place("NCCL_DEBUG_FILE"),
            "every worker opens that file and empties it: without %p they overwrite one another",
            "Write %p (the PID) into its name.",
        )


@rule("nccl-conf", "warning")
def conf_files(subject: Subject) -> Iterator[Told]:
    """No file on the machine sets what the profile leaves open (asked with --host)."""
    env, facts = subject.profile.env, subject.facts
    seen: set[str] = set()
    for file in facts.conf_files:
        for name, value in file.settings.items():
            if name in seen:
                continue
            seen.add(name)
            where = f"{facts.where}: {file.path}"
            if name not in env:
                message = f"{file.path} sets {name}={value}, which the profile does not set"
                fix = f"Write it into the profile (env: {name}), or take it out of the file."
                yield where, message, fix
            elif env[name] != value:
                message = f"{file.path} says {name}={value}; the profile's {env[name]} wins"
                yield where, message, "", "note"


@rule("engine-overrides", "warning", "sglang", "vllm")
def overridden(subject: Subject) -> Iterator[Told]:
    """The engine does not replace a value that the profile sets."""
    for override in subject.overrides:
        value = subject.profile.env.get(override.name)
        if override.forced and value is not None and value != override.value:
            told = override.told(_TITLES[subject.profile.engine])
            yield (
                subject.env_place(override.name),
                f"{told}: the profile's {value!r} is lost there",
                "Take it out, or the flag that makes the engine set it.",
            )


@rule("engine-fills-in", "note", "sglang", "vllm")
def filled_in(subject: Subject) -> Iterator[Told]:
    """Variables of NCCL that the engine sets where the profile does not."""
    filled = {
        override.name: override
        for override in subject.overrides
        if override.name.startswith("NCCL_") and override.name not in subject.profile.env
    }
    if filled:
        title = _TITLES[subject.profile.engine]
        told = "; ".join(filled[name].told(title) for name in sorted(filled))
        fix = "Set them yourself if you mean other values."
        yield subject.profile.place(), told, fix
