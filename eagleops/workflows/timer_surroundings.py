"""What a timer must be told of: a night begins with almost none of what a shell has."""

from __future__ import annotations

import os
import pwd
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from eagleops import _version
from eagleops.errors import UsageError

# What decides where files lie, which programs are found, and how messages get out. The lower-case
# names of proxies are the older ones.
KEPT = (
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "PATH",
    "PYTHONPATH",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    *(name for word in ("https", "http", "all", "no") for name in (f"{word}_proxy",)),
    *(name for word in ("HTTPS", "HTTP", "ALL", "NO") for name in (f"{word}_PROXY",)),
)
API_KEY = "EAGLEOPS_API_KEY"


@attrs.frozen(kw_only=True)
class Surroundings:
    """Who asks for a timer, from where, and on what machine.

    Attributes:
        interpreter: Absolute, and not followed where it is a link: a venv's is one.
        package: The folder that holds the package, where the interpreter finds it by no other
            way than the current folder's; None where it is installed.
        folder: The current one.
        home: The person's, as their programs see it.
        account: The login name.
        root: Whether it is root.
        environ: All variables.
        systemd: Whether systemd runs this machine.
        lingers: Whether the person's systemd goes on when they have logged out.
        zone: The machine's time zone by its name; empty where nothing tells it.
    """

    interpreter: Path
    package: Path | None = None
    folder: Path
    home: Path
    account: str
    root: bool
    environ: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    systemd: bool = True
    lingers: bool = False
    zone: str = ""

    @classmethod
    def here(cls) -> Surroundings:
        """Those of this process.

        Raises:
            UsageError: if nothing tells where the person's home is.
        """
        account = _account()
        return cls(
            interpreter=Path(os.path.abspath(sys.executable)),  # noqa: PTH100 - resolve() would leave the venv
            package=_package(),
            folder=Path.cwd(),
            home=_home(),
            account=account,
            root=os.geteuid() == 0,
            environ=dict(os.environ),
            # What sd_booted looks at.
            systemd=Path("/run/systemd/system").is_dir(),
            lingers=Path("/var/lib/systemd/linger", account).exists(),
            zone=_zone(),
        )

    @property
    def config_home(self) -> Path:
        """Where the person's settings are; root's are the machine's."""
        if self.root:
            return Path("/etc")
        named = Path(self.environ.get("XDG_CONFIG_HOME", ""))
        return named if named.is_absolute() else self.home / ".config"

    @property
    def units(self) -> tuple[Path, ...]:
        """Where units belong, the best place first: systemd.unit(5)."""
        if self.root:
            return (Path("/etc/systemd/system"),)
        # A shell's XDG_CONFIG_HOME need not be that of the person's systemd.
        homes = dict.fromkeys((self.config_home, self.home / ".config"))
        return tuple(home / "systemd" / "user" for home in homes)

    @property
    def secrets(self) -> Path:
        """The file that a timer takes secrets from."""
        return self.config_home / "eagleops" / "nightly.env"

    def kept(self) -> dict[str, str]:
        """The variables that a night needs as they are here, without those that hold a password."""
        found = {name: self.environ[name] for name in KEPT if self.environ.get(name)}
        if self.package is not None:
            paths = (str(self.package), found.get("PYTHONPATH", ""))
            found["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        for name in found.keys() & {"PATH", "PYTHONPATH"}:
            found[name] = os.pathsep.join(dict.fromkeys(found[name].split(os.pathsep)))
        if self.root:
            # systemd sets it for services with a User= alone; sudo may have kept another's.
            found["HOME"] = str(self.home)
        return {name: value for name, value in found.items() if not _has_password(value)}

    def left_out(self) -> tuple[str, ...]:
        """Those of them that hold a password."""
        return tuple(name for name in KEPT if _has_password(self.environ.get(name, "")))


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container's user that no passwd knows
        return str(os.geteuid())


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(
            problem="HOME is not set, and the account has no home",
            way_out="Set HOME to where its settings are.",
        ) from error


def _package() -> Path | None:
    folder = Path(_version.__file__).absolute().parent.parent
    installed = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    return None if folder in installed else folder


def _zone() -> str:
    """As timedatectl reads it: localtime(5)."""
    target = os.path.realpath("/etc/localtime")
    return target.partition("/zoneinfo/")[2]


def _has_password(value: str) -> bool:
    try:
        return "://" in value and urlsplit(value).password is not None
    except ValueError:
        return False
