"""The nights' store: a file a night, beside the ledger."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from eagleops.ledger.place import default_path
from eagleops.nights import document, place
from eagleops.nights.faults import open_faults
from eagleops.nights.night import Night, instant


@attrs.define(eq=False)
class NightStore:
    """A folder of nights, a folder a suite in it.

    A night is written whole or not at all, so readers need no lock. Writers take
    :meth:`lock`, so that one process at a time runs a suite.
    """

    folder: Path
    _notices: dict[str, None] = attrs.field(factory=dict, init=False)

    @classmethod
    def beside(cls, ledger: Path | None = None) -> NightStore:
        """The nights that belong to a ledger's file; None is the default one."""
        path = default_path() if ledger is None else ledger.expanduser()
        return cls(path.parent / "nights")

    @property
    def notice(self) -> str:
        """What was met that is no night, and what became of it; empty where all was well."""
        return "\n".join(self._notices)

    def folder_of(self, suite: str) -> Path:
        """Where the nights of that suite lie."""
        return self.folder / document.folder_of(suite)

    def write(self, night: Night, *, secrets: Iterable[str] = ()) -> Path:
        """Keeps a night as it is now, in place of what was kept of it before.

        Args:
            night: Which. Values under a secret's name are left out, wherever they stand.
            secrets: Values that must not be kept whatever name they stand under.

        Raises:
            NightsError: if it cannot be written; what was kept before still stands.
            ValueError: if its ``began_utc`` is no time.
        """
        folder = self.folder_of(night.suite)
        path = folder / document.name_of(night)
        text = document.text_of(night, secrets)
        place.make_folder(folder)
        place.write_whole(path, text)
        return path

    def history(
        self, suite: str, limit: int | None = None, *, facts: bool = True
    ) -> tuple[Night, ...]:
        """The latest finished nights, the oldest first.

        What is damaged, or is no night, is set aside and told by :attr:`notice`.

        Args:
            suite: Its name.
            limit: How many at most; None for all. What is news depends on all of them.
            facts: Whether with ``facts`` and ``journal``, which are most of a night.

        Raises:
            NightsError: if the folder cannot be read.
        """
        found: list[Night] = []
        for _, night in self._latest_first(suite):
            if limit is not None and len(found) >= limit:
                break
            if night.finished:
                found.append(night if facts else attrs.evolve(night, facts={}, journal={}))
        return tuple(sorted(found, key=lambda night: night.order))

    def latest(self, suite: str, limit: int) -> tuple[Night, ...]:
        """The latest nights, finished or not, the latest first.

        Raises:
            NightsError: if the folder cannot be read.
        """
        return tuple(night for _, night in itertools.islice(self._latest_first(suite), limit))

    def unfinished(self, suite: str, within_s: float, now_utc: str) -> Night | None:
        """The night that was cut off and can be taken up; None where there is none.

        To be asked while :meth:`lock` is held: otherwise it may still be running.

        Args:
            suite: Its name.
            within_s: How long after its begin a night may be taken up, in seconds; and how far
                in the future it may have begun, by a clock that was set back.
            now_utc: The time, RFC 3339.

        Raises:
            NightsError: if the folder cannot be read.
            ValueError: if ``now_utc`` is no time.
        """
        now = instant(now_utc)
        for _, night in self._latest_first(suite):
            age_s = (now - instant(night.began_utc)).total_seconds()
            if age_s < -within_s:
                continue
            # After a finished night, one that was cut off before it has been given up.
            return night if not night.finished and age_s <= within_s else None
        return None

    def prune(self, suite: str, keep: int, *, until: Night | None = None) -> tuple[Path, ...]:
        """Removes all but the latest finished nights, and returns what was removed.

        Nights are kept beyond their number while a fault that began in them stands: without
        them it would be told again.

        Args:
            suite: Its name.
            keep: How many at least; one is always kept.
            until: The last one that counts: nights of a clock that was ahead stay, beyond their
                number. All count without.

        Raises:
            NightsError: if a night cannot be removed.
        """
        kept = [(p, attrs.evolve(n, facts={}, journal={})) for p, n in self._latest_first(suite)]
        counted = (n for _, n in kept if n.finished and (not until or n.order <= until.order))
        finished = sorted(counted, key=lambda night: night.order)
        place.remove_partial(self.folder_of(suite))
        if len(finished) <= max(keep, 1):
            return ()
        standing = [instant(fault.began_utc) for fault in open_faults(finished)]
        oldest = min([finished[-max(keep, 1)].order[0], *standing])
        removed = [path for path, night in kept if night.order[0] < oldest]
        for path in removed:
            place.remove(path)
        return tuple(removed)

    @contextlib.contextmanager
    def lock(self, suite: str) -> Iterator[None]:
        """Keeps every other process from running the suite meanwhile.

        Raises:
            NightsHeld: if another one does; it names the PID.
            NightsError: if nothing can be written there.
        """
        folder = self.folder_of(suite)
        place.make_folder(folder)
        with place.held(folder, suite):
            yield

    def _latest_first(self, suite: str) -> Iterator[tuple[Path, Night]]:
        for path in self._files(suite):
            try:
                text = path.read_bytes()
            except FileNotFoundError:  # removed meanwhile
                continue
            except OSError as error:
                self._tell(f"{path} cannot be read, and is passed over: {error.strerror}")
                continue
            try:
                night = document.night_of(text)
                if document.name_of(night) != path.name:
                    raise ValueError("it is not named as its night is")  # noqa: TRY301
            except ValueError as error:
                self._pass_over(path, text, str(error))
            else:
                yield path, night

    def _files(self, suite: str) -> list[Path]:
        folder = self.folder_of(suite)
        try:
            names = [p for p in folder.iterdir() if document.NAMED.fullmatch(p.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise place.refusal(folder, "the nights cannot be read", error) from error
        return sorted(names, reverse=True)

    def _pass_over(self, path: Path, text: bytes, trouble: str) -> None:
        if document.is_newer(text):
            self._tell(f"{path} is of a newer eagleops, and is passed over: {trouble}")
            return
        try:
            new = place.set_aside(path)
        except FileNotFoundError:  # another reader was quicker
            return
        except OSError as error:
            self._tell(f"{path} is no night ({trouble}), and stays: {error.strerror}")
            return
        self._tell(f"{path} is no night ({trouble}): it is now {new.name}. The others are whole.")

    def _tell(self, notice: str) -> None:
        self._notices[notice] = None
