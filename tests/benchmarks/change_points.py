"""Who finds a change of level among nightly figures: ruptures, Otava, and what is made of them.

Each detector is asked as it would be used: after every night, with the nights so far. Told are,
per kind of history: in which share of the histories each change was found, how many nights it
took, how far its date was off when it was first told, in which share of the histories something
was ever called a change that is none, and in how many nights a change that had been told was
not told any more.

    python tests/benchmarks/change_points.py --seeds 1000:1300
    python tests/benchmarks/change_points.py --seeds 0:100 --detectors l1:6 l2:15 rbf:2 own

Otava pins its numpy and scipy to single releases, so it runs in an environment of its own; only
the standard library is shared:

    python3 -m venv otava && otava/bin/pip install apache-otava==0.8.0
    otava/bin/python tests/benchmarks/change_points.py --detectors otava:0.001 otava-last:1e-6

The figures in docs/explanation/drift.md were made with it; constants were chosen on seeds below
1000, and the figures are of others.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from parts.histories import HISTORIES, History

FIRST_JUDGED = 6
NEAR = 2
SMALLEST_PCT = 3.0
LEAST = 3

Detector = Callable[[Sequence[float]], list[int]]
"""Figures in; out come the indices at which a new level begins."""


class Outcome(NamedTuple):
    """What a detector made of one history."""

    delays: tuple[int | None, ...]
    errors: tuple[int | None, ...]
    false: bool
    dropped: int


def judged(history: History, seed: int, detector: Detector) -> Outcome:
    """One history, night by night."""
    nights = history.make(seed)
    truth = [night for night, _ in history.steps]
    first: dict[int, tuple[int, int]] = {}
    false, dropped = False, 0
    for upto in range(FIRST_JUDGED, len(nights) + 1):
        told = [nights[index][0] for index in detector([figure for _, figure in nights[:upto]])]
        false |= any(all(abs(at - true) > NEAR for true in truth) for at in told)
        for true in truth:
            near = [at for at in told if abs(at - true) <= NEAR]
            if near and true not in first:
                first[true] = (nights[upto - 1][0] - true, near[0] - true)
            elif not near and true in first:
                dropped += 1
    delays = tuple(first[true][0] if true in first else None for true in truth)
    errors = tuple(first[true][1] if true in first else None for true in truth)
    return Outcome(delays, errors, false, dropped)


def own(_: str) -> Detector:
    """What eagleops uses."""
    from eagleops.drift.judging import judge
    from eagleops.drift.series import Point, Series

    began = datetime(2026, 1, 1, 2, 30, tzinfo=timezone.utc)

    def detect(figures: Sequence[float]) -> list[int]:
        points = tuple(
            Point((began + timedelta(night)).isoformat(), figure, night)
            for night, figure in enumerate(figures)
        )
        drift = judge(Series("box", "p", "tok_s", "tok/s", points), smallest_pct=SMALLEST_PCT)
        return [points.index(change.after) for change in drift.changes]

    return detect


def _noise(figures: Sequence[float]) -> float:
    steps = [abs(math.log(b / a)) for a, b in itertools.pairwise(figures)]
    return max(0.001, statistics.median(steps) * 1.4826 / math.sqrt(2))


def _that_count(figures: Sequence[float], begins: Sequence[int]) -> list[int]:
    """Those with at least the smallest change that counts, as any user would ask."""
    edges = [0, *begins, len(figures)]
    levels = [statistics.median(figures[a:b]) for a, b in itertools.pairwise(edges)]
    pairs = zip(begins, levels[:-1], levels[1:], strict=True)
    return [at for at, old, new in pairs if abs(new / old - 1) >= SMALLEST_PCT / 100]


def ruptures_by(cost: str) -> Callable[[str], Detector]:
    """By ruptures alone: a cost, three points a level, figures in units of their noise."""

    def make(penalty: str) -> Detector:
        import numpy as np
        import ruptures

        def detect(figures: Sequence[float]) -> list[int]:
            noise = _noise(figures)
            signal = np.asarray([math.log(figure) / noise for figure in figures])
            if cost == "l1":
                search = ruptures.Pelt(model="l1", min_size=LEAST, jump=1)
            elif cost == "l2":
                search = ruptures.KernelCPD(kernel="linear", min_size=LEAST)
            else:
                gamma = {"gamma": 1 / 12.5} if cost == "rbf-noise" else None
                search = ruptures.KernelCPD(kernel="rbf", min_size=LEAST, params=gamma)
            ends = search.fit(signal.reshape(-1, 1)).predict(pen=float(penalty))
            return _that_count(figures, ends[:-1])

        return detect

    return make


def otava(level: str, *, later: int = 1) -> Detector:
    """Apache Otava as its command asks it; ``later`` points have to follow a change."""
    from otava.analysis import compute_change_points

    def detect(figures: Sequence[float]) -> list[int]:
        found, _ = compute_change_points(
            list(figures), max_pvalue=float(level), min_magnitude=SMALLEST_PCT / 100
        )
        return [point.index for point in found if point.index <= len(figures) - later]

    return detect


DETECTORS: dict[str, Callable[[str], Detector]] = {
    "own": own,
    "l1": ruptures_by("l1"),
    "l2": ruptures_by("l2"),
    "rbf": ruptures_by("rbf"),
    "rbf-noise": ruptures_by("rbf-noise"),
    "otava": otava,
    "otava-last": lambda level: otava(level, later=LEAST),
}


def row(name: str, history: History, detector: Detector, seeds: range) -> str:
    """One line of the table."""
    began = time.perf_counter()
    outcomes = [judged(history, seed, detector) for seed in seeds]
    taken_ms = 1000 * (time.perf_counter() - began) / len(outcomes) / history.nights
    delays = [delay for one in outcomes for delay in one.delays]
    found = [delay for delay in delays if delay is not None]
    errors = collections.Counter(abs(e) for one in outcomes for e in one.errors if e is not None)
    false = sum(one.false for one in outcomes)
    dropped = sum(one.dropped for one in outcomes)
    share = f"{100 * len(found) / len(delays):.1f}" if delays else ""
    when = "/".join(map(str, _quantiles(found))) if found else ""
    late = f"{100 * sum(d <= 5 for d in found) / len(delays):.1f}" if delays else ""
    off = " ".join(f"{days}:{count}" for days, count in sorted(errors.items()))
    return (
        f"| {name} | {share} | {late} | {when} | {off} | {100 * false / len(outcomes):.1f} "
        f"| {dropped} | {taken_ms:.2f} |"
    )


def _quantiles(found: Sequence[int]) -> Iterator[int]:
    ordered = sorted(found)
    for share in (0.5, 0.95, 1.0):
        yield ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> None:
    """Prints a table a detector."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--seeds", default="1000:1300", help="FROM:TO")
    asked.add_argument("--detectors", nargs="+", default=["own"], help="NAME[:SETTING]")
    asked.add_argument("--only", default="", help="histories whose name holds this")
    flags = asked.parse_args()
    first, last = map(int, flags.seeds.split(":"))
    for wanted in flags.detectors:
        name, _, setting = wanted.partition(":")
        detector = DETECTORS[name](setting)
        print(f"\n{wanted}, {last - first} histories of each kind\n")
        print(
            "| history | found % | within 5 nights % | nights it took (50/95/100 %) "
            "| date off: how often | any false % | dropped | ms |"
        )
        print("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |")
        for kind, history in HISTORIES.items():
            if flags.only in kind:
                print(row(kind, history, detector, range(first, last)), flush=True)


if __name__ == "__main__":
    main()
