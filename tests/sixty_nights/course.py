"""A box that lives through nights: its faults by the number of the night, its clock by the night.

Every night is a whole one: servers are launched on the embedded box, measured, judged and told.
Only two things are not what they are: the client's clock, and how fast the box's GPU is.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import random
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import attrs

from eagleops.library import load
from eagleops.sim.box import SimBox
from eagleops.workflows.nightly.report import NightReport
from nightly.boxes import end_all

FIRST_NIGHT = datetime(2026, 3, 1, 4, 30, tzinfo=timezone.utc)
NOISE = 0.01
SLOWER, OUTLYING, HOT = 0.93, 0.85, 0.7
PATCH = "sglang/srt/speculative/eagle_worker.py"


@attrs.frozen(kw_only=True)
class Course:
    """What is wrong in which night, counted from 1.

    Attributes:
        nights: How many there are.
        throttled: A GPU is too hot.
        dead: The host does not answer.
        patched: From here on a file of the engine is changed, and decoding 7 % slower.
        outlier: Decoding is 15 % slower for no reason.
        mended: From here on the file is as installed, and so is the speed; None for never.
    """

    nights: int
    throttled: int
    dead: int
    patched: int
    outlier: int
    mended: int | None = None

    def is_patched(self, number: int) -> bool:
        """Whether the engine is patched in that night."""
        return self.patched <= number < (self.mended or self.nights + 1)


WHOLE = Course(nights=60, throttled=12, dead=20, patched=31, outlier=44)
SHORT = Course(nights=18, throttled=6, dead=8, patched=10, outlier=13, mended=15)


@attrs.define(eq=False)
class Nights:
    """The nights of one box.

    Attributes:
        folder: Where its inventory, its box and its ledger are.
        course: What is wrong in which night.
        port: Of its server.
        webhook: Where its messages go.
        told: Each night's report.
    """

    folder: Path
    course: Course
    port: int
    webhook: str
    seed: int = 1
    told: dict[int, NightReport] = attrs.field(factory=dict)
    _chance: random.Random = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._write()
        self._install_engine()

    @property
    def box(self) -> SimBox:
        """The embedded box."""
        return SimBox.prepare(self.folder / "box", gpus=1)

    def live_through(self, number: int) -> NightReport:
        """One night, with what is wrong in it."""
        course = self.course
        factor = 1 + self._chance.gauss(0, NOISE)
        fault: dict[str, Any] = {}
        if course.is_patched(number):
            factor *= SLOWER
        if number == course.outlier:
            factor *= OUTLYING
        if number == course.throttled:
            factor *= HOT
            fault = {"throttle_reasons": ["hw_thermal_slowdown"], "temperature_c": 91}
        self._write(python="/nowhere/python3" if number == course.dead else None)
        self._engine(patched=course.is_patched(number))
        self.box.break_gpu(0, speed=factor, **fault)
        began = night_of(number)
        with load(self.folder / "hosts.yaml") as library:
            report = library.nightly("default").run(now=_Clock(began))
        self._date_runs(began)
        self.told[number] = report
        return report

    def end_servers(self) -> None:
        """Ends whatever still runs."""
        self._write()
        with load(self.folder / "hosts.yaml") as library:
            end_all(library.host("sim").machine)

    def _write(self, python: str | None = None) -> None:
        named = f", python: {python}" if python else ""
        text = f"""\
defaults: {{host: sim, profile: eagle3}}
ledger: ledger.db
hosts: {{sim: {{transport: sim, sim: {{gpus: 1, directory: box}}{named}}}}}
profiles:
  eagle3:
    engine: sglang
    model: /m
    port: {self.port}
    args: {{tp-size: 1, host: 127.0.0.1, speculative-algorithm: EAGLE3,
      speculative-draft-model-path: /d, speculative-num-steps: 2, speculative-eagle-topk: 1,
      speculative-num-draft-tokens: 3}}
    env: {{NCCL_PROTO: LL}}
    sim: {{cycle_ms: 30.6, accept_length: 1.84, speed: 4, start_s: 0.4, warmup_s: 0.2}}
nightly:
  default:
    hosts: [sim]
    profiles: [eagle3]
    measure: {{runs: 3, tokens: 128, warmups: 1}}
    checks: {{doctor: off, disk: off}}
    notify: [{{url: "{self.webhook}"}}]
"""
        (self.folder / "hosts.yaml").write_text(text, encoding="utf-8")

    def _install_engine(self) -> None:
        """Gives the box's engine a wheel's record, so that its files can be compared with it."""
        site = Path(self.box.layout.site)
        file = self._engine(patched=False)
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
        info = site / "sglang-0.5.9.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.9\n")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text(
            f"{PATCH},sha256={digest.decode().rstrip('=')},{file.stat().st_size}\n"
            "sglang-0.5.9.dist-info/METADATA,,\nsglang-0.5.9.dist-info/RECORD,,\n"
        )

    def _engine(self, *, patched: bool) -> Path:
        """A file of the engine, as its wheel has it or with a quick fix in it."""
        file = Path(self.box.layout.site) / PATCH
        file.parent.mkdir(parents=True, exist_ok=True)
        body = "return 1  # a quick fix" if patched else "return 2"
        file.write_text(f"def draft():\n    {body}\n", encoding="utf-8")
        return file

    def _date_runs(self, began: datetime) -> None:
        """Puts the runs that were recorded just now into their night: ledgers have no clock."""
        at_utc = (began + timedelta(minutes=5)).isoformat().replace("+00:00", "Z")
        with contextlib.closing(sqlite3.connect(self.folder / "ledger.db")) as ledger, ledger:
            ledger.execute(
                "UPDATE runs SET created_utc = ? WHERE created_utc > ?",
                (at_utc, (FIRST_NIGHT + timedelta(days=100)).isoformat()),
            )


@attrs.define
class _Clock:
    """A clock that stands at the night's begin, and goes a minute with each look."""

    at: datetime

    def __call__(self) -> str:
        self.at += timedelta(minutes=1)
        return self.at.isoformat().replace("+00:00", "Z")


def night_of(number: int) -> datetime:
    """When a night begins."""
    return FIRST_NIGHT + timedelta(days=number - 1)


@contextlib.contextmanager
def nights(folder: Path, course: Course, port: int, webhook: str) -> Iterator[Nights]:
    """A box, whose servers are ended at the end."""
    lived = Nights(folder, course, port, webhook)
    try:
        yield lived
    finally:
        lived.end_servers()
