"""What happens when a server shows its host key: known, recorded, or refused with a way out."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import paramiko

from eagleops.errors import HostKeyRefused
from eagleops.transport.host_keys import (
    HostKey,
    Judgement,
    KnownHosts,
    Standing,
    lookup_name,
    record,
)
from eagleops.transport.ssh_config import HostSettings
from eagleops.transport.ssh_options import HostKeys

_SPEAK_TO_ADMIN = "If nobody changed it on purpose, somebody may be in between: ask the admin."


class HostKeyPolicy(paramiko.MissingHostKeyPolicy):
    """Judges every server key; Paramiko's client is given no known keys of its own.

    Args:
        settings: The host that is logged in to.
        accept: What to do with a key that is on no line.
        where: The host as messages name it.
    """

    def __init__(self, settings: HostSettings, accept: HostKeys, where: str) -> None:
        self._settings = settings
        self._accept = accept
        self._where = where
        self._known = KnownHosts.read(settings.known_hosts)
        self._name = settings.host_key_alias or settings.host
        # As in OpenSSH, an alias stands for the host whatever its port.
        self._port = 22 if settings.host_key_alias else settings.port

    def preferred_types(self) -> list[str]:
        """Key algorithms to ask for first: those of the keys on record."""
        algorithms = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
        known = [line.key.type for line in self._known.about(self._name, self._port)]
        return list(dict.fromkeys(a for name in known for a in algorithms.get(name, (name,))))

    def missing_host_key(
        self,
        client: paramiko.SSHClient,  # noqa: ARG002 - Paramiko's signature
        hostname: str,  # noqa: ARG002
        key: paramiko.PKey,
    ) -> None:
        """Called by Paramiko with the key that the server proved to have.

        Raises:
            HostKeyRefused: unless the key is known, or new and to be accepted.
        """
        shown = HostKey(key.get_name(), key.asbytes())
        judgement = self._known.judge(self._name, self._port, shown)
        if judgement.standing is Standing.UNKNOWN and self._accept == "accept-new":
            self._record(shown)
        elif judgement.standing is not Standing.KNOWN:
            self._refuse(shown, judgement)

    def _record(self, shown: HostKey) -> None:
        file = self._file()
        try:
            hashed = self._settings.hash_known_hosts
            record(file, self._name, self._port, shown, hashed=hashed)
        except OSError as error:
            raise self._refusal(
                shown, f"the new host key cannot be recorded: {error}", f"Is {file} writable?"
            ) from error

    def _refuse(self, shown: HostKey, judgement: Judgement) -> NoReturn:
        line = judgement.line
        if line is None:
            files = ", ".join(map(str, self._settings.known_hosts)) or "no file"
            raise self._refusal(
                shown,
                f"the host key is unknown: {_named(shown)} is on no line of {files}",
                self._how_to_record(shown),
            )
        if judgement.standing is Standing.REVOKED:
            problem = f"the host key {_named(shown)} is revoked ({line.place})"
            raise self._refusal(shown, problem, "Do not connect before the machine has a new key.")
        file = line.place.rpartition(":")[0]
        raise self._refusal(
            shown,
            f"the host key has changed: {_named(shown)}, expected {_named(line.key)} "
            f"({line.place})",
            f"If the machine was reinstalled: ssh-keygen -R '{self._lookup_name}' -f {file}\n"
            f"and connect again to see the new fingerprint. {_SPEAK_TO_ADMIN}",
            line.key.fingerprint,
        )

    def _how_to_record(self, shown: HostKey) -> str:
        return (
            "Compare the fingerprint with the machine's own (on its console: ssh-keygen -lf "
            f"/etc/ssh/ssh_host_{_short(shown)}_key.pub), then record it:\n"
            f"  echo '{self._lookup_name} {shown.text}' >> {self._file()}\n"
            "or set `host_keys: accept-new` for this host in hosts.yaml."
        )

    @property
    def _lookup_name(self) -> str:
        return lookup_name(self._name, self._port)

    def _file(self) -> Path:
        return next(iter(self._settings.known_hosts), Path("~/.ssh/known_hosts").expanduser())

    def _refusal(
        self, shown: HostKey, problem: str, way_out: str, expected: str = ""
    ) -> HostKeyRefused:
        return HostKeyRefused(
            problem=problem,
            where=self._where,
            way_out=way_out,
            host=self._where,
            fingerprint=shown.fingerprint,
            expected_fingerprint=expected,
        )


def _short(key: HostKey) -> str:
    """``ed25519`` of ``ssh-ed25519``, ``ecdsa`` of ``ecdsa-sha2-nistp256``."""
    return key.type.removeprefix("ssh-").partition("-")[0]


def _named(key: HostKey) -> str:
    return f"{_short(key).upper()} {key.fingerprint}"
