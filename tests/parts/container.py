"""A real LXC container, and a ``pct`` that leads into it as Proxmox's does.

Its root holds the machine's own /usr read-only, so it starts in a few hundredths of a
second and has the machine's python3. LXC's monitor runs in the foreground as a child of the
tests and dies with them, whatever happens to them; the container dies with its monitor.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from eagleops.transport.base import Transport
from eagleops.transport.inside import InsideTransport, Pct
from parts import needs
from parts.leftovers import Claim

_CONFIG = """\
lxc.uts.name = llm
lxc.rootfs.path = dir:{rootfs}
lxc.init.cmd = /usr/bin/sleep infinity
lxc.net.0.type = none
lxc.mount.auto = proc:rw sys:ro
lxc.autodev = 1
lxc.apparmor.profile = unconfined
lxc.cgroup.dir.container = lxc/{vmid}
lxc.cgroup.dir.container.inner = ns
lxc.cgroup.dir.monitor = lxc.monitor/{vmid}
lxc.mount.entry = /usr usr none bind,ro 0 0
"""
_FOLDERS = "dev etc home mnt opt proc root run sys tmp usr var/tmp var/lib shared data"
_PASSWD = """\
root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


@attrs.define(eq=False)
class Container:
    """A container of the tests.

    Attributes:
        vmid: Its number, unlike any other's on this machine.
        folder: ``<folder>/containers/<vmid>/`` holds its config and rootfs.
        pct: The program to call instead of ``pct``.
        rootfs: Its root as this machine sees it, without what is mounted inside.
    """

    vmid: int
    folder: Path
    pct: Path
    rootfs: Path
    _monitor: subprocess.Popen[bytes] | None = attrs.field(default=None, init=False)
    _claim: Claim | None = attrs.field(default=None, init=False)

    @classmethod
    def make(
        cls,
        folder: Path,
        vmid: int,
        *,
        mounts: Mapping[str | Path, str] | None = None,
        settings: Sequence[str] = (),
    ) -> Container:
        """Lays out a container; :meth:`start` starts it.

        Args:
            folder: A folder of its own.
            vmid: See :func:`parts.reserved.free_vmid`.
            mounts: Folders or files of this machine by their place inside (absolute),
                mounted writable.
            settings: More lines of the container's config.
        """
        needs.root("an LXC container")
        for name in ("lxc-start", "lxc-attach", "lxc-info", "lxc-wait", "lxc-stop"):
            needs.program(name, "lxc")
        for parent in (folder, *folder.parents):
            if parent.stat().st_mode & 0o001 == 0 and parent.stat().st_uid == os.geteuid():
                parent.chmod(parent.stat().st_mode | 0o011)  # LXC wants to pass through
        own = folder / "containers" / str(vmid)
        rootfs = own / "rootfs"
        for name in _FOLDERS.split():
            (rootfs / name).mkdir(parents=True)
        (rootfs / "tmp").chmod(0o1777)
        for name in ("bin", "sbin", "lib", "lib64"):
            (rootfs / name).symlink_to(f"usr/{name}")
        (rootfs / "etc/passwd").write_text(_PASSWD)
        (rootfs / "etc/group").write_text(_GROUP)
        shutil.copy("/etc/ld.so.cache", rootfs / "etc/ld.so.cache")
        lines = [_CONFIG.format(rootfs=rootfs, vmid=vmid)]
        for source, place in (mounts or {}).items():
            kind = "dir" if Path(source).is_dir() else "file"
            lines.append(
                f"lxc.mount.entry = {source} {place.lstrip('/')} none bind,create={kind} 0 0\n"
            )
        lines.extend(f"{line}\n" for line in settings)
        (own / "config").write_text("".join(lines))
        bin_folder = folder / "bin"
        bin_folder.mkdir()
        pct = bin_folder / "pct"
        shutil.copy(Path(__file__).with_name("pct"), pct)
        pct.chmod(0o755)
        return cls(vmid, folder, pct, rootfs)

    @property
    def containers(self) -> Path:
        """LXC's folder of containers (``lxc-attach -P``)."""
        return self.folder / "containers"

    @property
    def init_pid(self) -> int:
        """The PID of the container's first process, as this machine counts."""
        return int(self._lxc("info", "-pH").stdout)

    @property
    def wrapper(self) -> Pct:
        """The way in, for an :class:`InsideTransport`."""
        return Pct(self.vmid, program=str(self.pct))

    def inside(self, outer: Transport) -> InsideTransport:
        """A transport into here through ``outer``."""
        return InsideTransport(outer, self.wrapper)

    def start(self) -> None:
        """Starts it and waits until it runs."""
        self._claim = Claim.of("container", str(self.vmid))
        log = self.folder / "lxc.log"
        with log.open("ab") as output:
            self._monitor = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "lxc-start", "-F", *self._name],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        waited = self._lxc("wait", "-s", "RUNNING", "-t", "60")
        if waited.returncode != 0 or self._monitor.poll() is not None:
            self.stop()
            needs.cannot(f"LXC does not start a container here: {log.read_text()[-400:]}")

    def stop(self) -> None:
        """Stops it, whatever runs inside, and removes its cgroups."""
        if self._monitor is None:
            return
        self._lxc("stop", "-k")
        try:
            self._monitor.wait(30.0)
        except subprocess.TimeoutExpired:
            self._monitor.kill()
            self._monitor.wait()
        self._monitor = None
        if self._claim is not None:
            self._claim.release()

    def run(self, argv: Sequence[str | Path], **settings: object) -> str:
        """Runs ``argv`` inside by lxc-attach, past every transport, and returns its stdout."""
        command = ["lxc-attach", *self._name, "--clear-env", "--", *map(str, argv)]
        answer = subprocess.run(
            command, check=True, capture_output=True, stdin=subprocess.DEVNULL, **settings
        )
        return answer.stdout.decode()

    @property
    def _name(self) -> tuple[str, ...]:
        return ("-P", str(self.containers), "-n", str(self.vmid))

    def _lxc(self, verb: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        argv = [f"lxc-{verb}", *self._name, *arguments]
        return subprocess.run(argv, check=False, capture_output=True, timeout=120)
