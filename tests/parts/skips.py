"""Where every part is required, a skip is a failure, whoever skips and for whatever reason.

With ``EAGLEOPS_REQUIRE_PARTS=1`` (set where the whole suite is judged) a green run cannot mean
"nothing was tried": a test, a fixture or a whole module that skips fails, unless its reason is one
of :data:`BEYOND`, which are beyond both package indexes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

BEYOND = (
    r"no Python 3\.\d+ here .*",  # Debian has one version of it, PyPI none
    r"no cgroup v1 freezer here",  # gone from newer kernels
    r"no user namespaces here",  # a kernel's setting
    r"/dev/kmsg: .*",  # shut in containers of other people's
    r"kernel\.dmesg_restrict is 0: .*",  # a kernel's setting
    r"no 32-bit programs on .*",
    r"no GPU here",
)


def refused(reason: str) -> str | None:
    """Why a skip for ``reason`` must fail this run; None where it may stand."""
    if os.environ.get("EAGLEOPS_REQUIRE_PARTS") != "1":
        return None
    if any(re.fullmatch(beyond, reason, re.DOTALL) for beyond in BEYOND):
        return None
    return f"EAGLEOPS_REQUIRE_PARTS=1, and this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fails a test that is skipped, by itself or by what it stands on."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Fails a module that is skipped whole."""
    report = yield
    _judge(report)
    return report


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped:
        return
    _path, _line, told = report.longrepr
    failure = refused(told.removeprefix("Skipped: "))
    if failure is not None:
        report.outcome = "failed"
        report.longrepr = failure
