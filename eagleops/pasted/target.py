"""Where a pasted command ran: by SSH, in a container, or at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from eagleops.written import scalar

# ssh's options that take a value.
_WITH_VALUE = set("BbcDEeFIiJLlmOoPpQRSWw")


@attrs.frozen(kw_only=True)
class Target:
    """The machine that the server ran on.

    Attributes:
        address: ``user@host[:port]`` of the SSH login; empty for the machine at hand.
        identity_file: As ``-i`` named it.
        via: Jump hosts as ``-J`` named them.
        container: Kind and name of the container in it: pct, docker, lxc or incus; or nothing.
    """

    address: str = ""
    identity_file: str = ""
    via: str = ""
    container: tuple[str, str] | None = None

    @property
    def user(self) -> str:
        """The user of the login; empty where none is named."""
        if self.container is not None:
            return "root"
        return self.address.rpartition("@")[0]

    @property
    def home(self) -> str:
        """The home of root, which is always there; empty where the home is not known."""
        return "/root" if self.user == "root" else ""

    @property
    def name(self) -> str | None:
        """As it is called in the hosts.yaml that is written; None for the machine at hand."""
        if self.container is not None:
            return _name(f"{self.container[0]}-{self.container[1]}")
        return self.host_name if self.address else None

    @property
    def host_name(self) -> str:
        """What the host is called there."""
        return _name(self.address.rpartition("@")[2]) if self.address else "here"

    def yaml(self) -> Iterator[str]:
        """Its sections of hosts.yaml."""
        yield "hosts:"
        yield f"  {scalar(self.host_name)}:"
        if not self.address:
            yield "    transport: local"
        else:
            yield f"    address: {scalar(self.address)}"
        if self.identity_file:
            yield f"    identity_file: {scalar(self.identity_file)}"
        if self.via:
            yield f"    via: {scalar(self.via)}"
        if self.container is not None:
            kind, name = self.container
            yield "containers:"
            yield f"  {scalar(self.name)}:"
            yield f"    on: {scalar(self.host_name)}"
            yield f"    vmid: {name}" if kind == "pct" else f"    kind: {kind}"
            if kind != "pct":
                yield f"    name: {scalar(name)}"


def _name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:60] or "host"


@attrs.frozen
class SshCall:
    """What an ``ssh`` was told: where to, and the words of the command for over there."""

    target: Target
    command: tuple[str, ...]


def ssh_call(words: Sequence[str]) -> SshCall | None:
    """Reads ssh's arguments; None if no destination is among them."""
    options: dict[str, str] = {}
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        letters = word[1:]
        for n, letter in enumerate(letters):
            if letter in _WITH_VALUE:
                options[letter] = letters[n + 1 :] or (rest.pop(0) if rest else "")
                break
    if not rest:
        return None
    destination = rest.pop(0).removeprefix("ssh://")
    address = _address(destination, options)
    # ssh takes options behind the destination too.
    if rest and rest[0] in {"-p", "-i", "-J", "-l"} and len(rest) > 1:
        return ssh_call([words[0], rest[0], rest[1], *words[1 : -len(rest)], *rest[2:]])
    target = Target(address=address, identity_file=options.get("i", ""), via=options.get("J", ""))
    return SshCall(target, tuple(rest))


def _address(destination: str, options: dict[str, str]) -> str:
    user, at, host = destination.rpartition("@")
    user = user if at else options.get("l", "")
    port = options.get("p", "")
    return f"{user}@{host}" * bool(user) + host * (not user) + (f":{port}" if port else "")
