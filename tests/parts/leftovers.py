"""What a test run that was killed leaves on the machine, and the next one removes.

Whoever makes something that outlives its process claims it: a file by its name, locked for as
long as it is there. The kernel lets go of the lock when the run dies, whatever kills it; so what
is claimed and not locked was ours, and nobody's any more. Nothing else is ever touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from parts.poll import until

CLAIMS = Path(tempfile.gettempdir(), f"eagleops-tests-{os.getuid()}-claims")
_CGROUPS = Path("/sys/fs/cgroup")


@attrs.define(eq=False)
class Claim:
    """Something that this run has made, until it is released."""

    kind: str
    name: str
    _descriptor: int

    @classmethod
    def of(cls, kind: str, name: str) -> Claim:
        """Claims what is about to be made; ``kind`` is one of :data:`REMOVERS`."""
        CLAIMS.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(CLAIMS / f"{kind}:{name}", flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(kind, name, descriptor)

    def release(self) -> None:
        """Removes the thing, and the claim on it."""
        REMOVERS[self.kind](self.name)
        (CLAIMS / f"{self.kind}:{self.name}").unlink(missing_ok=True)
        os.close(self._descriptor)


def remove_leftovers() -> list[str]:
    """Removes what runs that are over have claimed; says what that was.

    What cannot be removed yet keeps its claim.
    """
    if not CLAIMS.is_dir() or CLAIMS.stat().st_uid != os.getuid():
        return []
    return [file.name for file in sorted(CLAIMS.iterdir()) if _removed(file)]


def _removed(file: Path) -> bool:
    kind, _, name = file.name.partition(":")
    try:
        with file.open("r+") as claim:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            REMOVERS[kind](name)
            file.unlink()
    except (OSError, AssertionError):  # it is somebody's, or busy
        return False
    return True


def _remove_cgroups(vmid: str) -> None:
    places = [*_CGROUPS.glob(f"**/lxc/{vmid}"), *_CGROUPS.glob(f"**/lxc.monitor/{vmid}")]

    def removed() -> bool:
        for place in places:
            for folder, _, _ in os.walk(place, topdown=False):
                # Busy until the kernel has let go of the last task, a moment later.
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
        return not any(place.exists() for place in places)

    until(removed, limit_s=30.0)


def _remove_namespace(name: str) -> None:
    subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


REMOVERS: Mapping[str, Callable[[str], None]] = {
    "container": _remove_cgroups,
    "netns": _remove_namespace,
}
