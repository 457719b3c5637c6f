"""Which container a process is in, as the path of its cgroup tells it."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

# Matched from the left: the outermost container is the one that this machine knows.
_CONTAINER = re.compile(
    r"(?:^|/)(?:"
    # Proxmox: lxc/129/ns/...; plain LXC of before 4.0: lxc/NAME.
    r"lxc/(?P<lxc>[^/]+)"
    # Plain LXC, LXD and Incus.
    r"|lxc\.payload[./](?P<payload>[^/]+)"
    # Docker, Podman, containerd and CRI-O; under systemd each is a scope.
    r"|(?:docker|podman|libpod|crio|cri-containerd)[-/](?:libpod-)?(?P<id>[0-9a-f]{64})(?:\.scope)?"
    # Kubernetes without systemd: the bare id under the pod.
    r"|kubepods(?:/[^/]+)*?/pod[^/]+/(?P<pod>[0-9a-f]{64})"
    r")(?:/|$)"
)
# Docker and Podman show so many characters of an id.
_SHORT_ID = 12


class Cgroup(NamedTuple):
    """Where a process stands in the hierarchy that tells most of it.

    Attributes:
        path: Its cgroup; ``/`` where nothing is told. Seen from inside a container it is cut.
        container: A vmid, a name, or a short id; None outside of any container.
    """

    path: str
    container: Optional[str]


def parse_cgroup(text: str) -> Cgroup:
    """Reads ``/proc/PID/cgroup``: the v2 line, v1 lines, or both as on a hybrid machine."""
    paths = [
        fields[2] for fields in (line.split(":", 2) for line in text.splitlines()) if fields[2:]
    ]
    for path in paths:
        container = container_of(path)
        if container is not None:
            return Cgroup(path, container)
    # The v2 line stands last and, on a hybrid machine, may say nothing.
    told = [path for path in reversed(paths) if path != "/"]
    return Cgroup(told[0] if told else "/", None)


def container_of(path: str) -> Optional[str]:
    """The outermost container in the path of a cgroup, or None.

    A container's monitor (``lxc.monitor/129``) is a process of the host, not of the container.
    """
    found = _CONTAINER.search(path)
    if found is None:
        return None
    name = found.group("lxc") or found.group("payload")
    return name or (found.group("id") or found.group("pod"))[:_SHORT_ID]
