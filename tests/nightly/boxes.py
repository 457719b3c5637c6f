"""A hosts.yaml with boxes in fast mode, a ledger and nights of one test's own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import EagleError
from eagleops.library import Library, load
from eagleops.machine import Machine
from eagleops.nights.finding import Finding
from eagleops.sim.box import SimBox
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.progress import Step

SECRET = "hf_never_shown"
HOLDS = "import sys, time; held = open(sys.argv[1]); print('held', flush=True); time.sleep(600)"


@attrs.define(eq=False)
class Boxes:
    """One hosts.yaml, its library, and whoever uses its boxes' GPUs."""

    folder: Path
    port: int
    other_port: int
    gpus: int = 1
    _opened: list[Library] = attrs.field(factory=list, init=False)
    _users: list[subprocess.Popen[str]] = attrs.field(factory=list, init=False)

    def write(
        self,
        suite: str = "profiles: [baseline]",
        *,
        hosts: Sequence[str] = ("sim",),
        sim: str = "",
        second: str = "fail: ''",
        more: Sequence[str] = (),
        uses: str = "null",
        env: str = "",
    ) -> Path:
        """Writes the hosts.yaml.

        Args:
            suite: Keys of the suite beside how it measures, as a flow mapping has them.
            hosts: Names of boxes.
            sim: Of `baseline`, more keys of its `sim:` section.
            second: Of `second`, likewise.
            more: Lines of `hosts:`.
            uses: The profiles' `gpus:`.
            env: More of their variables.
        """
        boxes = [
            f"  {name}: {{transport: sim, sim: {{gpus: {self.gpus}, directory: box-{name}}}}}"
            for name in hosts
        ]
        lines = [
            f"defaults: {{host: {hosts[0]}, profile: baseline}}",
            "ledger: ledger.db",
            "hosts:",
            *boxes,
            *more,
            "profiles:",
            "  baseline:",
            "    engine: sglang",
            "    model: /shared/kimi-k2.5-int4",
            f"    port: {self.port}",
            f"    gpus: {uses}",
            "    args: {tp-size: 1, host: 127.0.0.1}",
            f"    env: {{NCCL_PROTO: LL, HF_TOKEN: {SECRET}, {env}}}",
            f"    sim: {{start_s: 0.2, warmup_s: 0.1, speed: 20, {sim}}}",
            "  second:",
            "    extends: baseline",
            f"    port: {self.other_port}",
            f"    sim: {{{second}}}",
            "nightly:",
            f"  default: {{measure: {{runs: 2, tokens: 48, warmups: 0}}, {suite}}}",
        ]
        file = self.folder / "hosts.yaml"
        file.write_text("\n".join(lines) + "\n")
        return file

    def open(self, suite: str = "profiles: [baseline]", **settings: Any) -> Library:
        """Writes the hosts.yaml, and opens it."""
        self._opened.append(load(self.write(suite, **settings)))
        return self._opened[-1]

    def night(self, suite: str = "profiles: [baseline]", **settings: Any) -> NightReport:
        """One night by a client of its own."""
        return self.open(suite, **settings).nightly().run()

    def box(self, host: str = "sim") -> SimBox:
        """The box behind a host."""
        return SimBox.prepare(self.folder / f"box-{host}", gpus=self.gpus)

    def use_gpu(self, index: int = 0) -> subprocess.Popen[str]:
        """Somebody who uses a GPU of the box `sim`, and was not started by eagleops."""
        device = Path(self.box().layout.devices, f"nvidia{index}")
        argv = [sys.executable, "-c", HOLDS, str(device)]
        user = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self._users.append(user)
        assert user.stdout is not None
        assert user.stdout.readline() == "held\n"
        return user

    def servers(self, host: str = "sim") -> dict[str, str]:
        """Each server's state, those that have ended and left nothing left out."""
        machine = self._opened[-1].host(host).machine
        told = machine.call("servers")["servers"]
        return {
            one["name"]: one["state"] for one in told if one["tree"] or one["state"] != "exited"
        }

    def close(self) -> None:
        """Ends whatever still runs."""
        for user in self._users:
            user.kill()
            user.communicate()
        for library in self._opened:
            for host in library.inventory.hosts:
                with contextlib.suppress(EagleError):
                    end_all(library.host(host).machine)
            library.close()


def end_all(machine: Machine) -> None:
    """Stops whatever servers still run there."""
    for server in machine.call("servers")["servers"]:
        if server["state"] != "exited" or server["tree"]:
            machine.call("stop", name=server["name"], grace_s=0.1)


def states(report: NightReport, host: str | None = None) -> dict[str, str]:
    """Each check's state; those of `doctor` are this computer's own affair."""
    return {
        finding.id: finding.state
        for finding in report.findings
        if finding.kind != "doctor" and host in {None, finding.host}
    }


def found(report: NightReport, check: str, host: str = "sim") -> Finding:
    """What a check found."""
    finding = report.night.finding(host, check)
    assert finding is not None, f"{check} was not made: {sorted(states(report))}"
    return finding


def at(stage: str, action: Callable[[], object]) -> Callable[[Step], None]:
    """A progress that acts when a stage begins, once."""
    acted: list[Step] = []

    def watch(step: Step) -> None:
        if step.stage == stage and not acted:
            acted.append(step)
            action()

    return watch
