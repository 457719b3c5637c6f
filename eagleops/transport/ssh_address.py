"""``user@host:port`` as a person writes it."""

from __future__ import annotations

import re

import attrs

from eagleops.errors import UsageError

_ADDRESS = re.compile(
    r"""(?:ssh://)?
        (?:(?P<user>.+)@)?
        (?: \[(?P<literal>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?)\]
          | (?P<ipv6>[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?)
          | (?P<name>[^:@\[\]]+) )
        (?::(?P<port>[0-9]{1,5}))?/?""",
    re.VERBOSE,
)
# What OpenSSH refuses too: these names stand in proxy commands, which a shell reads.
_HOSTILE = re.compile(r"""[\s'"`$\\;&<>|(){}\x00-\x1f\x7f]""")


@attrs.frozen
class Address:
    """``user@host:port`` as a person wrote it; host may be an alias of ssh_config.

    Attributes:
        user: None where it was not given.
        port: None where it was not given.
    """

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads ``[user@]host[:port]``; an IPv6 address with a port stands in brackets.

        Raises:
            UsageError: if it is no address, or holds what a shell could read.
        """
        found = _ADDRESS.fullmatch(text)
        if not found:
            raise _bad_address(text, "expected user@host, user@host:port or an alias")
        host = found["literal"] or found["ipv6"] or found["name"]
        user, port = found["user"], found["port"]
        for word in (host, user or ""):
            if word.startswith("-") or _HOSTILE.search(word):
                raise _bad_address(text, "a name that begins with - or holds shell characters")
        if port is not None and not 0 < int(port) < 65536:  # noqa: PLR2004
            raise _bad_address(text, f"{port} is no port")
        return cls(host, user, None if port is None else int(port))


def _bad_address(text: str, why: str) -> UsageError:
    return UsageError(
        problem=f"{text!r} is no SSH address: {why}",
        way_out="Write user@host, user@host:port, user@[::1]:port, or an alias of ssh_config.",
    )
