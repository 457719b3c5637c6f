"""ssh_config for one host, as OpenSSH itself reads it: ``ssh -G``, or Paramiko's reader.

Paramiko's reader passes over Include, UserKnownHostsFile, HostKeyAlias and more without a
word (https://github.com/paramiko/paramiko/issues/1609), so it is asked only where no ssh
is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import UsageError
from eagleops.remote import process_table
from eagleops.transport.ssh_address import Address
from eagleops.transport.ssh_options import SshOptions

SSH_G_LIMIT_S = 15.0


@attrs.frozen(kw_only=True)
class HostSettings:
    """All that is needed to reach one host, itself or as a jump.

    Attributes:
        alias: As it was asked for.
        host: What to connect to, and, with the port, what known_hosts calls it.
        host_key_alias: What known_hosts calls it instead; empty for none.
        identity_files: Private keys that are there.
        known_hosts: Files of known host keys; the first is where new ones go.
        proxy_command: Empty for none; with its tokens replaced.
        proxy_jump: Jump hosts in order; empty for none.
        hash_known_hosts: Whether new lines hide the host's name.
        agent: Whether the SSH agent is asked for keys.
    """

    alias: str
    host: str
    port: int
    user: str
    host_key_alias: str = ""
    identity_files: tuple[Path, ...] = ()
    known_hosts: tuple[Path, ...] = ()
    proxy_command: str = ""
    proxy_jump: tuple[str, ...] = ()
    hash_known_hosts: bool = False
    agent: bool = True

    @property
    def address(self) -> str:
        """``user@host:port``, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.user}@{host}:{self.port}"

    @property
    def words(self) -> str:
        """It as OpenSSH's client takes it, which would read ``host:port`` as a name.

        By its alias, so that all that ssh_config says of it holds by hand too.
        """
        return f"-p {self.port} {self.user}@{self.alias}"


def route(address: str, options: SshOptions) -> tuple[HostSettings, ...]:
    """The hosts to log in to one after the other; the last one is ``address`` itself.

    Raises:
        UsageError: if the address or an ssh_config cannot be read.
    """
    hops = [settings(address, options)]
    jumps = _jumps(hops)
    plain = attrs.evolve(options, jump=None, proxy_command=None)
    while jumps:
        # `-J a,b` means: b through a, and a as its own configuration says.
        hop = settings(jumps.pop(), plain)
        hops.insert(0, attrs.evolve(hop, proxy_command="", proxy_jump=()) if jumps else hop)
        jumps = jumps or _jumps(hops)
    return tuple(hops)


def settings(address: str, options: SshOptions) -> HostSettings:
    """One host's settings: the options where they say something, else ssh_config.

    Raises:
        UsageError: if the address or an ssh_config cannot be read.
    """
    wanted = Address.parse(address)
    found = lookup(wanted, options.config_file)
    user = wanted.user or _first(found, "user") or _local_user()
    host = _first(found, "hostname") or wanted.host
    port = wanted.port or int(_first(found, "port") or 22)
    tokens = _tokens(wanted.host, host, port, user)
    jump = _first(found, "proxyjump") if options.jump is None else options.jump
    command = options.proxy_command or _first(found, "proxycommand")
    return HostSettings(
        alias=wanted.host,
        host=host,
        port=port,
        user=user,
        host_key_alias=_first(found, "hostkeyalias"),
        identity_files=_identity_files(found, tokens, options),
        known_hosts=_known_hosts(found, tokens, options),
        proxy_command="" if command in _NONE else expand(command, tokens, home=False),
        proxy_jump=() if jump in _NONE or options.proxy_command else tuple(jump.split(",")),
        hash_known_hosts=_first(found, "hashknownhosts") == "yes",
        agent=options.agent and _first(found, "identityagent") != "none",
    )


Found = Mapping[str, Sequence[str]]
_NONE = {"", "none"}


def lookup(wanted: Address, config_file: Path | None) -> Found:
    """What ssh_config says of a host: keys in lower case, a value for each line.

    Raises:
        UsageError: if an ssh_config cannot be read.
    """
    if shutil.which("ssh"):
        return _ask_openssh(wanted, config_file)
    return _ask_paramiko(wanted, config_file)


def parse_dump(text: str) -> Found:
    """Reads what ``ssh -G`` prints: ``key value`` lines."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, []).append(value)
    return found


def expand(text: str, tokens: Mapping[str, str], *, home: bool = True) -> str:
    """Replaces ``%`` tokens, and in a path ``${NAME}`` and a leading ``~``, as ssh does."""
    expanded = re.sub(r"%(.)", lambda token: tokens.get(token[1], token[0]), text)
    if not home:
        return expanded
    named = re.sub(r"\$\{(\w+)\}", lambda name: os.environ.get(name[1], name[0]), expanded)
    return str(Path(named).expanduser())


def _ask_openssh(wanted: Address, config_file: Path | None) -> Found:
    argv = ["ssh", "-G"]
    if config_file is not None:
        argv += ["-F", str(config_file)]
    # User and port take part in what `Match` blocks apply.
    if wanted.user is not None:
        argv += ["-l", wanted.user]
    if wanted.port is not None:
        argv += ["-p", str(wanted.port)]
    try:
        answer = subprocess.run(
            [*argv, "--", wanted.host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=SSH_G_LIMIT_S,
        )
    except subprocess.CalledProcessError as error:
        problem = error.stderr.decode("utf-8", "replace").strip()
        raise UsageError(problem=f"ssh_config: {problem}", where=wanted.host) from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            problem=f"ssh -G {wanted.host} did not end within {SSH_G_LIMIT_S:g} s",
            where=wanted.host,
            way_out="Does ssh_config have a `Match exec` that waits for something?",
        ) from error
    return parse_dump(answer.stdout.decode("utf-8", "replace"))


def _ask_paramiko(wanted: Address, config_file: Path | None) -> Found:
    import paramiko

    config = paramiko.SSHConfig()
    try:
        for file in [config_file] if config_file else [_USER_CONFIG, _SYSTEM_CONFIG]:
            path = file.expanduser()
            if path.is_file():
                with path.open(encoding="utf-8") as lines:
                    config.parse(lines)
        found: dict[str, Any] = dict(_looked_up(config, wanted.host))
    except (paramiko.SSHException, ValueError) as error:
        raise UsageError(problem=f"ssh_config: {error}", where=wanted.host) from error
    return {key: value if isinstance(value, list) else [value] for key, value in found.items()}


def _looked_up(config: Any, host: str) -> Mapping[str, Any]:
    """What Paramiko's reader finds; it asks for the user's name, which not every user id has."""
    try:
        found: Mapping[str, Any] = config.lookup(host)
    except (KeyError, OSError) as error:
        raise UsageError(
            problem=f"ssh_config: the user id {os.getuid()} has no name, which its reader wants",
            where=host,
            way_out="Say a name in LOGNAME, or install ssh.",
        ) from error
    return found


_USER_CONFIG = Path("~/.ssh/config")
_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_DEFAULT_KEYS = ("~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519")
_DEFAULT_KNOWN = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_DEFAULT_GLOBAL = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


def _jumps(hops: Sequence[HostSettings]) -> list[str]:
    """The first hop's own jumps, but none that leads back: ssh takes `Host *` lightly too."""
    jumps = hops[0].proxy_jump
    known = {name for hop in hops for name in (hop.alias, hop.host)}
    return [] if any(Address.parse(jump).host in known for jump in jumps) else list(jumps)


def _local_user() -> str:
    """Who runs this, as OpenSSH has it: by the user id, whatever LOGNAME says."""
    return process_table.user(os.getuid())


def _first(found: Found, key: str) -> str:
    return next(iter(found.get(key, ())), "")


def _tokens(alias: str, host: str, port: int, user: str) -> dict[str, str]:
    local = socket.gethostname()
    return {
        "%": "%",
        "d": str(Path.home()),
        "h": host,
        "i": str(os.getuid()),
        "L": local.partition(".")[0],
        "l": local,
        "n": alias,
        "p": str(port),
        "r": user,
        "u": _local_user(),
    }


def _identity_files(
    found: Found, tokens: Mapping[str, str], options: SshOptions
) -> tuple[Path, ...]:
    if options.identity_files is not None:
        return tuple(file.expanduser() for file in options.identity_files)
    names = found.get("identityfile", _DEFAULT_KEYS)
    files = dict.fromkeys(Path(expand(name, tokens)) for name in names if name not in _NONE)
    return tuple(file for file in files if file.is_file())


def _known_hosts(found: Found, tokens: Mapping[str, str], options: SshOptions) -> tuple[Path, ...]:
    if options.known_hosts is not None:
        return tuple(file.expanduser() for file in options.known_hosts)
    names = [
        name
        for key, default in (
            ("userknownhostsfile", _DEFAULT_KNOWN),
            ("globalknownhostsfile", _DEFAULT_GLOBAL),
        )
        for name in (_first(found, key).split() or default)
    ]
    return tuple(Path(expand(name, tokens)) for name in names if name not in _NONE)
