"""A timer on a machine: a real systemd starts nights, and ends them, in a container of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.transport.local import LocalTransport
from eagleops.workflows import timer
from parts import needs
from parts.poll import until
from parts.sshd import public

UNIT = "eagleops-nightly-default"
# The container's kernel is this machine's: its systemd may set nothing of it.
SETTINGS = (
    "lxc.mount.auto =",
    "lxc.mount.auto = proc:mixed sys:ro cgroup:mixed",
    "lxc.net.0.type = empty",
    "lxc.cap.drop = sys_time sys_module sys_boot sys_rawio syslog mac_admin mac_override",
    "lxc.environment = container=lxc",
    "lxc.signal.halt = SIGRTMIN+3",
    "lxc.init.cmd = /usr/lib/systemd/systemd --system --unit=timers.target --log-level=warning",
)
MASKED = (
    *(f"systemd-{name}.service" for name in ("sysctl", "udevd", "udev-trigger", "modules-load")),
    *(f"systemd-{name}.service" for name in ("remount-fs", "tmpfiles-setup", "random-seed")),
    *(f"systemd-{name}.service" for name in ("journald", "journal-flush", "timesyncd")),
    *(f"systemd-{name}.service" for name in ("tmpfiles-setup-dev", "sysusers", "update-utmp")),
    "systemd-tmpfiles-clean.timer",
    *(f"systemd-journald{name}.socket" for name in ("", "-dev-log", "-audit")),
    *(f"systemd-udevd-{name}.socket" for name in ("kernel", "control")),
    *(f"{name}.timer" for name in ("apt-daily", "apt-daily-upgrade", "dpkg-db-backup")),
    *(f"{name}.timer" for name in ("e2scrub_all", "fstrim", "logrotate", "man-db")),
    "dbus.socket",
    "dbus.service",
    *(f"sys-kernel-{name}.mount" for name in ("debug", "tracing", "config")),
    "sys-fs-fuse-connections.mount",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "proc-sys-fs-binfmt_misc.automount",
    "proc-sys-fs-binfmt_misc.mount",
    "network-online.target",
)
# In eagleops' place: it notes how it was started, leaves a server behind, and waits to be ended.
NIGHT = """\
#!/usr/bin/python3
import json, os, signal, subprocess, sys, time
def note(name, what):
    with open("/data/." + name, "w") as file:
        file.write(json.dumps(what))
    os.rename("/data/." + name, "/data/" + name)
server = subprocess.Popen(["/usr/bin/sleep", "1000"], start_new_session=True)
if os.path.exists("/data/login"):
    ssh = subprocess.run(json.load(open("/data/login")), capture_output=True, text=True)
    note("ssh", [ssh.returncode, ssh.stdout, ssh.stderr])
def interrupted(number, frame):
    note("ended", signal.Signals(number).name)
    sys.exit(130)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, interrupted)
told = {"argv": sys.argv, "folder": os.getcwd(), "environ": dict(os.environ)}
note("started", {**told, "server": server.pid, "pid": os.getpid()})
while "WAIT" in os.environ:
    time.sleep(0.05)
"""


@attrs.frozen
class Box:
    """A machine that systemd runs."""

    container: Any
    way: Any

    @property
    def data(self) -> Path:
        """What its nights note."""
        return Path(self.container.rootfs, "data")

    def noted(self, name: str) -> Any:
        """What a night has noted under this name."""
        path = self.data / name
        return json.loads(until(lambda: path.exists() and path.read_text()))

    def systemctl(self, *argv: str) -> str:
        """What ``systemctl`` says; a status that is none of success is no error here."""
        return self.way.run(("systemctl", *argv), timeout_s=120.0).stdout.decode()

    def lives(self, pid: int) -> bool:
        """Whether a process of the machine is there."""
        return self.way.run(("kill", "-0", str(pid)), timeout_s=120.0).exit_status == 0


@pytest.fixture
def make_box(make_container) -> Callable[..., Box]:
    """Starts machines with these folders of ours in them."""

    def make_box(**more: Any) -> Box:
        if not Path("/usr/lib/systemd/systemd").exists():
            needs.cannot("systemd is not installed (Debian package systemd)")
        container = make_container(settings=SETTINGS, start=False, **more)
        units = container.rootfs / "etc/systemd/system"
        units.mkdir(parents=True)
        for name in MASKED:
            (units / name).symlink_to("/dev/null")
        (container.rootfs / "etc/machine-id").touch()
        container.start()
        box = Box(container, container.inside(LocalTransport()))
        until(lambda: "timers.target" in box.systemctl("list-units", "--state=active"))
        return box

    return make_box


@pytest.fixture
def install(around, inventory) -> Callable[..., timer.TimerPlan]:
    """Installs a timer of the default suite on a machine; changes of the unit by drop-ins."""

    def install(box: Box, text: str = "", *, service: str = "", when: str = "") -> timer.TimerPlan:
        loaded = inventory(text) if text else inventory()
        root = box.container.rootfs
        program = root / "opt/my venv %n/python"
        program.parent.mkdir(parents=True)
        program.write_text(NIGHT)
        program.chmod(0o755)
        (root / "srv/it's 100%").mkdir(parents=True)
        there = around(
            root=True,
            interpreter=Path("/opt/my venv %n/python"),
            folder=Path("/srv/it's 100%"),
            home=Path("/root"),
            environ={"XDG_DATA_HOME": "/data/my $HOME"},
        )
        planned = timer.plan(loaded, loaded.suite(), around=there)
        for kind, lines in (("service", service), ("timer", when)):
            place = root / f"etc/systemd/system/{UNIT}.{kind}.d/ours.conf"
            place.parent.mkdir()
            place.write_text(lines)
        # Root's units belong to the machine, and this one is not the tests' own.
        files = {root / str(path)[1:]: unit for path, unit in planned.files.items()}
        return timer.install(attrs.evolve(planned, files=files), here=box.way)

    return install


SOON = "[Timer]\nOnCalendar=\nOnCalendar=*:*:0/1\nRandomizedDelaySec=0\nAccuracySec=1ms\n"
WAITING = "[Service]\nEnvironment=WAIT=1\n"


def test_a_timer_that_is_installed_makes_nights(make_box, install) -> None:
    """Its time comes, and what was planned is started: command, folder, variables and secrets."""
    box = make_box()
    secrets = box.container.rootfs / "etc/eagleops/nightly.env"
    secrets.parent.mkdir()
    secrets.write_text("HOOK_TOKEN='a secret'\n")

    done = install(box, when=SOON)
    night = box.noted("started")

    environ = night["environ"]
    assert done.installed
    assert box.systemctl("is-enabled", f"{UNIT}.timer") == "enabled\n"
    assert night["argv"] == [
        "/opt/my venv %n/python",
        "-m",
        "eagleops",
        "nightly",
        "--suite=default",
        "--quiet",
    ]
    assert night["folder"] == "/srv/it's 100%"
    assert environ["XDG_DATA_HOME"] == "/data/my $HOME"
    assert environ["HOME"] == "/root"
    assert environ["EAGLEOPS_INVENTORY"].endswith("/hosts.yaml")
    assert environ["HOOK_TOKEN"] == "a secret"


def test_a_timer_waits_for_its_time(make_box, install) -> None:
    """Installing starts no night; installing again leaves one timer that is on."""
    box = make_box()

    install(box)
    box.systemctl("restart", f"{UNIT}.timer")

    assert box.systemctl("is-active", f"{UNIT}.timer") == "active\n"
    assert box.systemctl("is-active", f"{UNIT}.service") == "inactive\n"
    assert not (box.data / "started").exists()


def test_a_night_that_is_stopped_is_interrupted_and_its_server_goes_on(make_box, install) -> None:
    """SIGINT reaches eagleops alone; what it launched on this machine is not ended with it."""
    box = make_box()
    install(box, service=WAITING)
    box.systemctl("start", "--no-block", f"{UNIT}.service")
    night = box.noted("started")

    box.systemctl("stop", f"{UNIT}.service")

    assert box.noted("ended") == "SIGINT"
    assert not box.lives(night["pid"])
    assert box.lives(night["server"])


def test_a_night_that_ends_leaves_its_server(make_box, install) -> None:
    """What ran before and was started again outlives the night that did so."""
    box = make_box()
    install(box)

    box.systemctl("start", f"{UNIT}.service")
    night = box.noted("started")

    assert box.systemctl("is-active", f"{UNIT}.service") == "inactive\n"
    assert not box.lives(night["pid"])
    assert box.lives(night["server"])


def test_ssh_works_in_the_sandbox(make_box, install, sshd, ssh_keys) -> None:
    """A night that only reaches other machines logs in: by its key, through a ProxyCommand."""
    folders = {sshd.folder: str(sshd.folder), ssh_keys.user.parent: str(ssh_keys.user.parent)}
    box = make_box(mounts=folders)
    root = box.container.rootfs
    known = root / "root/.ssh/known_hosts"
    known.parent.mkdir(mode=0o700)
    known.write_text(f"box {public(sshd.keys.host)}\n")
    # What an sshd wants of a machine.
    box.way.run(("mkdir", "/run/sshd"), timeout_s=120.0)
    with (root / "etc/passwd").open("a") as accounts:
        accounts.write("sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n")
    login = [
        *("ssh", "-o", "BatchMode=yes", "-o", "ControlMaster=auto", "-o", "ControlPath=/tmp/%C"),
        *("-o", f"ProxyCommand=/usr/sbin/sshd -i -f {sshd.config}", "-i", str(ssh_keys.user)),
        *("root@box", "echo in"),
    ]
    (box.data / "login").write_text(json.dumps(login))

    install(box)
    box.systemctl("start", f"{UNIT}.service")

    assert "NoNewPrivileges=yes" in (root / f"etc/systemd/system/{UNIT}.service").read_text()
    assert box.noted("ssh") == [0, "in\n", ""]
