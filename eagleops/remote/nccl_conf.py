"""NCCL's conf files: settings that stand in no environment until NCCL puts them there.

When NCCL starts in a process it reads the file that ``NCCL_CONF_FILE`` names, or without one
``~/.nccl.conf``, and then always ``/etc/nccl.conf``, and sets each variable that is not set
yet (NCCL 2.30, misc/param.cc). Its log then says "set by environment" all the same.
``~`` is the home in passwd up to 2.29 and ``$HOME`` since.
"""

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

MAX_BYTES = 1024 * 1024
MAX_VALUE_BYTES = 1023
ETC = "/etc/nccl.conf"
HOME_NAME = ".nccl.conf"


def parse(content: bytes) -> Dict[bytes, bytes]:
    """A file's settings, as NCCL reads them: no quoting, no trimming, the first of a name."""
    variables: Dict[bytes, bytes] = {}
    for line in content.split(b"\n"):
        name, equals, value = line.partition(b"=")
        if equals and name and not line.startswith(b"#"):
            variables.setdefault(name[:MAX_VALUE_BYTES], value[:MAX_VALUE_BYTES])
    return variables


def paths(
    conf_file: Optional[str], passwd_home: Optional[str], home: Optional[str]
) -> Tuple[str, ...]:
    """The files that NCCL would read, strongest first.

    Args:
        conf_file: The process's ``NCCL_CONF_FILE``.
        passwd_home: Its user's home in passwd.
        home: Its ``HOME``.
    """
    if conf_file:
        return (conf_file, ETC)
    homes = [place for place in (passwd_home, home) if place]
    found = [place.rstrip("/") + "/" + HOME_NAME for place in dict.fromkeys(homes)]
    return (*found, ETC)


class ConfFile(NamedTuple):
    """A conf file that exists.

    Attributes:
        problem: Why it could not be read; empty where it could.
    """

    path: str
    variables: Dict[bytes, bytes]
    problem: str


class ConfReader:
    """Reads the conf files of many processes, each file once."""

    def __init__(self) -> None:
        self._read: Dict[Tuple[Tuple[int, int], str], Optional[ConfFile]] = {}
        self._passwd: Dict[Tuple[int, int], Dict[int, str]] = {}

    def of_process(
        self, pid: int, uid: int, conf_file: Optional[str], home: Optional[str]
    ) -> List[ConfFile]:
        """Those that exist in the root that ``pid`` sees, strongest first."""
        root = "/proc/{}/root".format(pid)
        try:
            seen = os.stat(root)
        except OSError:
            return []
        identity = (seen.st_dev, seen.st_ino)
        if identity not in self._passwd:
            self._passwd[identity] = _homes(_content(root + "/etc/passwd"))
        found = []
        for path in paths(conf_file, self._passwd[identity].get(uid), home):
            key = (identity, path)
            if key not in self._read:
                self._read[key] = _read(root, pid, path)
            conf = self._read[key]
            if conf is not None:
                found.append(conf)
        return found


def _read(root: str, pid: int, path: str) -> Optional[ConfFile]:
    place = root + path if path.startswith("/") else "/proc/{}/cwd/{}".format(pid, path)
    try:
        return ConfFile(path, parse(content_of(place)), "")
    except FileNotFoundError:
        return None
    except OSError as error:
        return ConfFile(path, {}, os.strerror(error.errno or 0))


def _homes(passwd: bytes) -> Dict[int, str]:
    homes: Dict[int, str] = {}
    for line in passwd.splitlines():
        fields = line.split(b":")
        if len(fields) >= 6 and fields[2].isdigit():  # noqa: PLR2004 - of passwd(5)
            homes.setdefault(int(fields[2]), fields[5].decode("utf-8", "surrogateescape"))
    return homes


def _content(path: str) -> bytes:
    try:
        return content_of(path)
    except OSError:
        return b""


def content_of(path: str) -> bytes:
    """A file's content, up to :data:`MAX_BYTES`.

    Raises:
        OSError: if it cannot be read, or is a pipe that holds nothing yet.
    """
    # O_NONBLOCK: a pipe in a conf file's place must not make the reading wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)
