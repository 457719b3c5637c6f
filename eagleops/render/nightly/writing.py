"""Writing a night's reports, each whole or not at all.

Each night has files of its own, and the last of them stands under a name that stays as well:
``default-20261130T023000Z.html`` and ``default-latest.html``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timezone
from pathlib import Path

import attrs

from eagleops import whole_file
from eagleops.comparison.loading import load
from eagleops.errors import EagleError, ReportsNotWritten, UsageError
from eagleops.nights.document import folder_of
from eagleops.nights.night import Night, instant
from eagleops.render.console import document as json_document
from eagleops.render.nightly import html, junit, prometheus
from eagleops.render.nightly.safe import presentable
from eagleops.workflows.nightly.report import NightReport

LATEST = "latest"
SUFFIXES: Mapping[str, str] = {"html": ".html", "junit": ".junit.xml", "json": ".json"}
_STAMP = r"\d{8}T\d{6}Z"
# node_exporter reads the file as a user of its own, whatever umask wrote it.
_READABLE = 0o644
_NEEDED = ("jinja2", "matplotlib.figure", "junitparser")
_NEEDED_FOR_METRICS = ("prometheus_client",)


def ready(folder: Path, metrics: Path | None = None) -> None:
    """Makes sure that reports can be written; writes nothing.

    Raises:
        UsageError: if a package is missing, or a folder cannot be made or written to.
    """
    for package in (*_NEEDED, *(_NEEDED_FOR_METRICS if metrics else ())):
        load(package)
    folder = folder.absolute()
    places = [metrics.absolute().parent] if metrics else []
    try:
        # It is made when the first report is written.
        places.append(next(place for place in (folder, *folder.parents) if _is_there(place)))
        for place in reversed(places):
            if not place.is_dir():
                raise _nowhere(place, "is no folder" if place.exists() else "is not there")
            if not os.access(place, os.W_OK | os.X_OK):
                raise _nowhere(place, "is not writable")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise _nowhere(folder, f"cannot be looked at: {why}") from error


def _is_there(place: Path) -> bool:
    """Whether anything has that name, be it a link that leads nowhere."""
    try:
        place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _nowhere(place: Path, trouble: str) -> UsageError:
    return UsageError(
        problem=f"reports cannot be written there: it {trouble}",
        where=str(place),
        way_out="Name another as `reports:` or `prometheus:` of the suite in hosts.yaml.",
    )


def write_all(
    report: NightReport,
    folder: Path,
    metrics: Path | None = None,
    *,
    secrets: Iterable[str] = (),
) -> dict[str, Path]:
    """Writes every report of a night; written again, it takes the place of what stood there.

    Args:
        report: What the night came to.
        folder: Where; it is made.
        metrics: The file for node_exporter's textfile collector; None for none.
        secrets: Values to be left out, whatever name they stand under.

    Returns:
        The place of each, by its kind: ``html``, ``junit``, ``json``, ``prometheus``.

    Raises:
        ReportsNotWritten: if any cannot be written; the others are.
    """
    places = places_of(report.night, folder)
    if metrics is not None:
        places["prometheus"] = metrics
    told = {kind: str(place) for kind, place in places.items()}
    report = presentable(attrs.evolve(report, reports=told), secrets)
    problems = {kind: _trouble(report, kind, place) for kind, place in places.items()}
    if failed := [f"{kind}: {problem}" for kind, problem in problems.items() if problem]:
        raise ReportsNotWritten(
            problem=f"not every report could be written: {'; '.join(failed)}",
            where=str(folder),
            written={kind: told[kind] for kind, problem in problems.items() if not problem},
        )
    return places


def places_of(night: Night, folder: Path) -> dict[str, Path]:
    """Where the reports of a night stand in a folder, by kind."""
    name = f"{folder_of(night.suite)}-{_stamp(night)}"
    return {kind: folder / f"{name}{suffix}" for kind, suffix in SUFFIXES.items()}


def _stamp(night: Night) -> str:
    return instant(night.began_utc).astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def prune(folder: Path, suite: str, keep: int, *, until: Night | None = None) -> tuple[Path, ...]:
    """Removes the reports of all but the last nights.

    Args:
        folder: Where they are; other files in it stay.
        suite: Whose.
        keep: Of how many nights they stay.
        until: The last one that counts: those of a clock that was ahead stay. All count without.

    Returns:
        What was removed.
    """
    name = re.compile(rf"{re.escape(folder_of(suite))}-({_STAMP})(?:{_any_suffix()})\Z")
    found: dict[str, list[Path]] = {}
    for path in folder.glob("*") if folder.is_dir() else ():
        if matched := name.match(path.name):
            found.setdefault(matched[1], []).append(path)
    counted = sorted(stamp for stamp in found if until is None or stamp <= _stamp(until))
    old = [path for stamp in counted[: max(0, len(counted) - keep)] for path in found[stamp]]
    for path in old:
        path.unlink(missing_ok=True)
    return tuple(old)


def _any_suffix() -> str:
    return "|".join(map(re.escape, SUFFIXES.values()))


def _json(report: NightReport) -> str:
    return json_document("nightly", report.to_dict()) + "\n"


_TEXTS: Mapping[str, Callable[[NightReport], str]] = {
    "html": html.page,
    "junit": junit.document,
    "json": _json,
    "prometheus": prometheus.text,
}


def _trouble(report: NightReport, kind: str, place: Path) -> str:
    """Writes a report; why it could not be written, empty where it was."""
    try:
        _write_one(report, kind, place)
    except OSError as error:
        return f"{place}: {error.strerror or error}"
    except EagleError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - one report must not cost the others, or the night
        return f"internal error, a bug of eagleops: {type(error).__name__}: {error}"
    return ""


def _write_one(report: NightReport, kind: str, place: Path) -> None:
    text = _TEXTS[kind](report).encode("utf-8")
    if kind == "prometheus":
        whole_file.write(place, text, mode=_READABLE)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    latest = f"{folder_of(report.night.suite)}-{LATEST}{SUFFIXES[kind]}"
    for path in (place, place.with_name(latest)):
        whole_file.write(path, text)
