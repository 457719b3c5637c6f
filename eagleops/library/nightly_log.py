"""What a suite's nights did, in a log of their own: to be read when one went wrong."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from eagleops import log
from eagleops.errors import EagleError
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.nightly.visit import HEADING
from eagleops.workflows.progress import Progress, Step

FILE = "nightly.log"

Ended = Callable[[NightReport, Iterable[str]], None]


@contextlib.contextmanager
def logged(folder: Path, progress: Progress) -> Iterator[tuple[Progress, Ended]]:
    """What tells of steps in the log too, and what tells of a night's end there.

    The latter is called with the report and with values that are to be left out. An error that
    ends the night is logged, and goes on.

    Args:
        folder: The suite's, in which its nights are kept.
        progress: Is told of each step as well.
    """
    with log.kept(folder / FILE) as lines:

        def told(step: Step) -> None:
            # The steps below a heading are a minute's progress: the report has what they found.
            if step.stage.startswith(HEADING):
                lines.info("step", what=step.stage.removeprefix(HEADING))
            progress(step)

        def ended(report: NightReport, secrets: Iterable[str]) -> None:
            _ended(report, tuple(secrets), lines)

        lines.info("begins", pid=os.getpid())
        try:
            yield told, ended
        except KeyboardInterrupt:
            lines.warning("interrupted")
            raise
        except EagleError as error:
            lines.error("failed", error=str(error))
            raise
        except Exception as error:
            lines.error("failed", error=f"{type(error).__name__}: {error}")
            raise


def _ended(report: NightReport, secrets: Iterable[str], lines: log.Logger) -> None:
    from eagleops.render.nightly.safe import written

    for finding in report.night.findings:
        if finding.bad:
            tell = lines.error if finding.state == "fail" else lines.warning
            what = written(finding.message, secrets)
            tell("found", check=finding.id, host=finding.host, what=what)
    for notice in report.notices:
        lines.warning("notice", what=written(notice, secrets))
    for name, delivery in report.deliveries.items():
        tell = lines.info if delivery.get("ok") else lines.error
        told = {key: delivery.get(key) for key in ("status", "attempts", "problem")}
        tell("message", to=name, **told)
    lines.info(
        "ends",
        outcome=report.night.outcome,
        exit_status=report.exit_status,
        checks=len(report.night.findings),
        changed=report.changed,
    )
