"""Known host keys: reading known_hosts as OpenSSH does, judging a key, recording a new one.

Paramiko's own reader knows no wildcard, no ``@revoked`` and one key a type, so it would
refuse machines that OpenSSH knows and accept keys that OpenSSH refuses.
"""

from __future__ import annotations

import base64
import binascii
import enum
import fcntl
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

import attrs


@attrs.frozen
class HostKey:
    """A public host key.

    Attributes:
        type: For example ``ssh-ed25519``.
        blob: The key as the protocol carries it.
    """

    type: str
    blob: bytes = attrs.field(repr=False)

    @property
    def fingerprint(self) -> str:
        """``SHA256:…`` as OpenSSH prints it."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def text(self) -> str:
        """Type and base64, as a known_hosts line has them."""
        return f"{self.type} {base64.b64encode(self.blob).decode()}"


@attrs.frozen
class KnownKey:
    """One line of a known_hosts file.

    Attributes:
        place: ``file:line``.
        marker: ``@revoked``, ``@cert-authority`` or empty.
        patterns: The first field: host patterns, or one hashed name.
    """

    place: str
    marker: str
    patterns: str
    key: HostKey

    def matches(self, name: str) -> bool:
        """Whether the line is about ``name``."""
        if self.patterns.startswith("|"):
            return _hash_matches(self.patterns, name)
        found = False
        for pattern in self.patterns.lower().split(","):
            if re.fullmatch(_expression(pattern.removeprefix("!")), name):
                if pattern.startswith("!"):
                    return False
                found = True
        return found


class Standing(enum.Enum):
    """What is known of a key that a host shows."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@attrs.frozen
class Judgement:
    """A :class:`Standing` and the line that decided it."""

    standing: Standing
    line: KnownKey | None = None


@attrs.frozen
class KnownHosts:
    """The lines of all known_hosts files that count for a host."""

    lines: tuple[KnownKey, ...]

    @classmethod
    def read(cls, files: Iterable[Path]) -> KnownHosts:
        """Reads ``files``; one that is not there holds nothing."""
        lines: list[KnownKey] = []
        for file in files:
            try:
                text = file.read_text("utf-8", "replace")
            except OSError:
                continue
            lines.extend(parse(text, str(file)))
        return cls(tuple(lines))

    def about(self, host: str, port: int) -> tuple[KnownKey, ...]:
        """The lines about a host; one without the port counts where none has it."""
        named = self._named(lookup_name(host, port))
        return named or self._named(host.lower())

    def judge(self, host: str, port: int, key: HostKey) -> Judgement:
        """What is known of ``key`` as the key of ``host``."""
        revoked = [
            line
            for name in {lookup_name(host, port), host.lower()}
            for line in self.lines
            if line.marker == "@revoked" and line.matches(name) and line.key == key
        ]
        if revoked:
            return Judgement(Standing.REVOKED, revoked[0])
        lines = self.about(host, port)
        for line in lines:
            if line.key == key:
                return Judgement(Standing.KNOWN, line)
        # A known host offers the type we know, for we ask for that first: another type
        # alone is as suspect as another key.
        of_type = [line for line in lines if line.key.type == key.type]
        for line in of_type or lines:
            return Judgement(Standing.CHANGED, line)
        return Judgement(Standing.UNKNOWN)

    def _named(self, name: str) -> tuple[KnownKey, ...]:
        return tuple(line for line in self.lines if not line.marker and line.matches(name))


def lookup_name(host: str, port: int) -> str:
    """The name under which known_hosts has a host: ``host``, or ``[host]:port``."""
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"  # noqa: PLR2004


def parse(text: str, file: str = "known_hosts") -> tuple[KnownKey, ...]:
    """Reads known_hosts text; a line that is none is passed over, as OpenSSH does."""
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#"):  # noqa: PLR2004 - host, type, key
            continue
        patterns, key_type, encoded = fields[:3]
        try:
            blob = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            continue
        lines.append(KnownKey(f"{file}:{number}", marker, patterns, HostKey(key_type, blob)))
    return tuple(lines)


def record(file: Path, host: str, port: int, key: HostKey, *, hashed: bool = False) -> None:
    """Adds a line for ``key`` to a known_hosts file, which it makes if need be.

    Raises:
        OSError: if the file cannot be written.
    """
    name = lookup_name(host, port)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+b") as lines:
        fcntl.flock(lines, fcntl.LOCK_EX)
        text = lines.read()
        if any(
            line.matches(name) and line.key == key for line in parse(text.decode(errors="replace"))
        ):
            return  # another process was quicker
        if text and not text.endswith(b"\n"):
            lines.write(b"\n")
        lines.write(f"{_hashed(name) if hashed else name} {key.text}\n".encode())


def _expression(pattern: str) -> str:
    wild = {"*": ".*", "?": "."}
    return "".join(wild.get(character, re.escape(character)) for character in pattern)


def _hashed(name: str) -> str:
    salt = secrets.token_bytes(20)
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def _hash_matches(hashed: str, name: str) -> bool:
    try:
        _, version, salt, digest = hashed.split("|")
        expected = hmac.digest(base64.b64decode(salt), name.encode(), "sha1")
        return version == "1" and hmac.compare_digest(expected, base64.b64decode(digest))
    except ValueError:
        return False
