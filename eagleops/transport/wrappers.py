"""Ways into a container, or to another user, as a prefix of argv.

Each wrapper says what its program needs and how its program refuses, and nothing else. No
pty is ever asked for: lxc-attach would proxy it and cut what passes
(https://github.com/lxc/lxc/pull/825). No wrapper's environment is relied on: pct and
lxc-attach keep or clear it, and a container's own configuration overrides what they keep.
"""

from __future__ import annotations

import re
from typing import Protocol

import attrs

from eagleops.transport.base import Argv, encode

# Of Docker 29, of those before it, to a user who may not ask, and of podman's client.
_NO_DAEMON = (
    r"(?:Cannot|[Ff]ailed to) connect to (?:the [Dd]ocker (?:daemon|API)|Podman)"
    r"|permission denied while trying to connect to the [Dd]ocker (?:daemon|API)"
)
_NO_INIT = r"^lxc-attach: .*Failed to get init pid$"


@attrs.frozen
class Refusal:
    """Why a way in did not let a command through.

    Attributes:
        problem: What is wrong.
        way_out: What to do.
        instead: Another wrapper that this program does understand; the command has not run.
    """

    problem: str
    way_out: str
    instead: Wrapper | None = None


class Wrapper(Protocol):
    """A prefix of argv that leads further in."""

    @property
    def where(self) -> str:
        """The place as messages name it, for example ``pct 129``."""

    def argv(self, argv: Argv) -> tuple[bytes, ...]:
        """``argv`` with the prefix that runs it inside."""

    def refusal(self, stderr: str) -> Refusal | None:
        """The refusal that ``stderr`` of a failed command tells of, if it is one."""


@attrs.frozen
class Pct:
    """``pct exec`` of Proxmox VE: execs lxc-attach with the argv, no shell in between.

    Attributes:
        vmid: The container's number.
        program: pct, where it is not on the PATH.
        keep_env_option: Whether this pct knows ``--keep-env`` (pve-container 5.0.9, March
            2024); with it the Proxmox host's environment stays out.
    """

    vmid: int
    program: str = "pct"
    keep_env_option: bool = True

    @property
    def where(self) -> str:
        """As :attr:`Wrapper.where`."""
        return f"pct {self.vmid}"

    def argv(self, argv: Argv) -> tuple[bytes, ...]:
        """As :meth:`Wrapper.argv`."""
        option = ("--keep-env", "0") if self.keep_env_option else ()
        return encode((self.program, "exec", str(self.vmid), *option, "--", *argv))

    def refusal(self, stderr: str) -> Refusal | None:
        """As :meth:`Wrapper.refusal`."""
        if self.keep_env_option and _says(stderr, r"^Unknown option: keep-env$"):
            return Refusal(
                "this pct does not know --keep-env",
                "Update pve-container to 5.0.9 or newer.",
                attrs.evolve(self, keep_env_option=False),
            )
        if _says(stderr, rf"^Configuration file '\S*/lxc/{self.vmid}\.conf' does not exist$"):
            return Refusal(
                f"there is no container {self.vmid} on this node",
                "See which there are, and on which node: pct list; pvesh get /cluster/resources.",
            )
        # Before 5.0.9 pct did not look, and lxc-attach says it in its own words.
        if _says(stderr, rf"^(Error: )?container '{self.vmid}' not running!$|{_NO_INIT}"):
            return _not_running(f"container {self.vmid}", f"pct start {self.vmid}")
        return _not_installed(stderr, self.program)


@attrs.frozen
class LxcAttach:
    """``lxc-attach`` of plain LXC.

    Attributes:
        name: The container's name.
        path: LXC's folder of containers, where it is not the default one.
    """

    name: str
    path: str | None = None

    @property
    def where(self) -> str:
        """As :attr:`Wrapper.where`."""
        return f"lxc {self.name}"

    def argv(self, argv: Argv) -> tuple[bytes, ...]:
        """As :meth:`Wrapper.argv`."""
        path = () if self.path is None else ("-P", self.path)
        return encode(("lxc-attach", *path, "-n", self.name, "--clear-env", "--", *argv))

    def refusal(self, stderr: str) -> Refusal | None:
        """As :meth:`Wrapper.refusal`."""
        if _says(stderr, _NO_INIT):
            return _not_running(f"container {self.name}", f"lxc-start -n {self.name}")
        return _not_installed(stderr, "lxc-attach")


@attrs.frozen
class Docker:
    """``docker exec -i``.

    Attributes:
        name: The container's name or id.
        program: ``podman`` understands the same.
    """

    name: str
    program: str = "docker"

    @property
    def where(self) -> str:
        """As :attr:`Wrapper.where`."""
        return f"{self.program} {self.name}"

    def argv(self, argv: Argv) -> tuple[bytes, ...]:
        """As :meth:`Wrapper.argv`."""
        return encode((self.program, "exec", "-i", self.name, *argv))

    def refusal(self, stderr: str) -> Refusal | None:
        """As :meth:`Wrapper.refusal`."""
        if _says(stderr, r"^Error.*: [Nn]o such container"):
            return Refusal(f"there is no container {self.name}", f"See {self.program} ps --all.")
        if _says(stderr, r"^Error.* is not running$|^Error: .*container state improper$"):
            return _not_running(f"container {self.name}", f"{self.program} start {self.name}")
        if _says(stderr, _NO_DAEMON):
            return Refusal(
                f"{self.program} does not reach its daemon",
                f"Does it run, and may this user ask it? By hand: {self.program} ps.",
            )
        return _not_installed(stderr, self.program)


@attrs.frozen
class Incus:
    """``incus exec``, also LXD's ``lxc exec``.

    Attributes:
        name: The instance, with its remote or project as incus takes it.
        program: ``lxc`` for LXD.
    """

    name: str
    program: str = "incus"

    @property
    def where(self) -> str:
        """As :attr:`Wrapper.where`."""
        return f"{self.program} {self.name}"

    def argv(self, argv: Argv) -> tuple[bytes, ...]:
        """As :meth:`Wrapper.argv`."""
        return encode((self.program, "exec", self.name, "--mode=non-interactive", "--", *argv))

    def refusal(self, stderr: str) -> Refusal | None:
        """As :meth:`Wrapper.refusal`."""
        if _says(stderr, r"^Error: .*Instance not found$"):
            return Refusal(f"there is no instance {self.name}", f"See {self.program} list.")
        if _says(stderr, r"^Error: Instance is not running$"):
            return _not_running(f"instance {self.name}", f"{self.program} start {self.name}")
        return _not_installed(stderr, self.program)


@attrs.frozen
class Sudo:
    """``sudo -n``: another user, and never a question for a password.

    Attributes:
        user: root where None.
    """

    user: str | None = None

    @property
    def where(self) -> str:
        """As :attr:`Wrapper.where`."""
        return f"sudo {self.user or 'root'}"

    def argv(self, argv: Argv) -> tuple[bytes, ...]:
        """As :meth:`Wrapper.argv`."""
        user = () if self.user is None else ("-u", self.user)
        return encode(("sudo", "-n", *user, "--", *argv))

    def refusal(self, stderr: str) -> Refusal | None:
        """As :meth:`Wrapper.refusal`."""
        if _says(stderr, r"^sudo: a password is required$|is not in the sudoers file"):
            return Refusal(
                f"sudo to {self.user or 'root'} is not allowed without a password",
                "Allow it with NOPASSWD in sudoers, or log in as that user.",
            )
        return _not_installed(stderr, "sudo")


def _says(stderr: str, pattern: str) -> bool:
    """Whether a line of ``stderr`` is what ``pattern`` describes, from its first word on."""
    return re.search(pattern, stderr, re.MULTILINE) is not None


def _not_running(container: str, start: str) -> Refusal:
    return Refusal(f"{container} does not run", f"Start it: {start}")


def _not_installed(stderr: str, program: str) -> Refusal | None:
    """A login shell's words for it, of bash, dash, zsh or fish."""
    name = re.escape(program)
    missing = "not found|[Nn]o such file or directory"
    if not _says(stderr, rf"(?:^|\s){name}: (?:{missing})$|(?:{missing}|Unknown command): {name}$"):
        return None
    return Refusal(
        f"{program} is not there",
        "Is this the host that holds the container, and is the program on the PATH of a "
        "command that SSH runs?",
    )
