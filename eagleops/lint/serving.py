"""Rules on how a server is reached, and by whom."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject

_OPEN = {"0.0.0.0", "::", "*", ""}  # noqa: S104 - what is looked for
_PRIVILEGED = 1024
# net.ipv4.ip_local_port_range, Linux's default.
_EPHEMERAL = range(32768, 61000)
_RAS_PORT = 28028
_KEYS = ("api-key", "admin-api-key")


@rule("open-bind", "warning", "sglang", "vllm")
def open_bind(subject: Subject) -> Iterator[Told]:
    """A server that listens on every address asks for a key."""
    host = subject.text("host")
    if subject.profile.engine == "vllm" and subject.given("host") is None:
        host = ""
    keyed = subject.given(*_KEYS) is not None or "VLLM_API_KEY" in {
        *subject.profile.env,
        *subject.profile.inherit,
    }
    if host in _OPEN and not keyed:
        place = subject.place("host")
        message = (
            f"it listens on every address ({host or 'no host is given'}) and asks for no key: "
            "whoever reaches the port can use it"
        )
        yield place, message, "Write host: 127.0.0.1, or api-key: {secret: env:NAME}."


@rule("port", "warning")
def port(subject: Subject) -> Iterator[Told]:
    """The port is one that nobody else is likely to have."""
    number = subject.profile.port
    where = subject.profile.place("port")
    if number is None:
        return
    if number < _PRIVILEGED:
        yield (
            where,
            f"port {number} is for root alone, by the kernel's default",
            "Take 1024 or more.",
        )
    elif number in _EPHEMERAL:
        message = f"the kernel hands port {number} out to outgoing connections: it may be taken "
        yield (
            where,
            message + "when the server binds it, minutes after its start",
            ("Take one below 32768."),
        )
    elif number == _RAS_PORT:
        message = f"NCCL's own service (RAS) listens on {number} from 2.24 on"
        yield where, message, "Take another one, or set NCCL_RAS_ENABLE=0."


@rule("port-internal", "error", "sglang", "vllm")
def internal(subject: Subject) -> Iterator[Told]:
    """No other port of the profile is the server's own."""
    for name in ("nccl-port", "master-port", "data-parallel-rpc-port"):
        if subject.profile.port is not None and subject.integer(name) == subject.profile.port:
            message = f"{name} is the port that the server listens on"
            yield subject.place(name), message, "Give it another one."
    address = subject.text("dist-init-addr", "nccl-init-addr") or ""
    if subject.profile.port is not None and address.endswith(f":{subject.profile.port}"):
        message = "dist-init-addr has the port that the server listens on"
        yield subject.place("dist-init-addr", "nccl-init-addr"), message, "Give it another one."
