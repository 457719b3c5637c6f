"""The processes that a profile must bring up, and which of them are not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from eagleops.engines.roles import Role, ranks_of, ranks_text


@attrs.frozen
class ExpectedWorker:
    """One process that must be there once the server is ready.

    Attributes:
        role: As in :class:`~eagleops.engines.roles.Role`.
        rank: The dimensions that tell it from its like, for example ``TP3``; None where
            there is one alone. A title may name more of them.
        title: The title it is likely to have, for messages.
    """

    role: str
    rank: str | None
    title: str

    def matches(self, found: Role) -> bool:
        """Whether a process of that role and rank can be this one."""
        ranks = found.ranks
        return found.role == self.role and all(
            ranks.get(dimension) == number
            for dimension, number in ranks_of(self.rank or "").items()
        )


@attrs.frozen
class ExpectedWorkers:
    """The processes that a profile must bring up on its machine.

    Attributes:
        workers: Each of them; more may come, for what an engine adds changes by version.
        note: Why some are not listed, for example because Ray starts them; else empty.
    """

    workers: tuple[ExpectedWorker, ...] = ()
    note: str = ""

    def missing(self, found: Iterable[Role]) -> tuple[ExpectedWorker, ...]:
        """Those that none of the ``found`` can be; each process stands for one at most.

        A child without a title fills a gap: an engine whose machine lacks the setproctitle
        package sets none.
        """
        free = list(found)
        untitled = sum(role.role == "untitled" for role in free)
        missing = []
        # The choosiest first, so that a worker without a rank takes what is left.
        for worker in sorted(self.workers, key=lambda worker: -len(ranks_of(worker.rank or ""))):
            match = next((role for role in free if worker.matches(role)), None)
            if match is None:
                missing.append(worker)
            else:
                free.remove(match)
        kept = {id(worker) for worker in missing[untitled:]}
        return tuple(worker for worker in self.workers if id(worker) in kept)

    def count(self, role: str) -> int:
        """How many of one role are expected."""
        return sum(worker.role == role for worker in self.workers)

    def to_dict(self) -> dict[str, Any]:
        """As JSON, the form that a launched server's record keeps."""
        return {"workers": [attrs.asdict(worker) for worker in self.workers], "note": self.note}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> ExpectedWorkers:
        """From the JSON of :meth:`to_dict`; an empty record expects nothing."""
        workers = tuple(ExpectedWorker(**worker) for worker in record.get("workers", ()))
        return cls(workers, record.get("note", ""))


def expected(
    role: str, title: str, ranks: Mapping[str, int] | None = None, *, shown: str | None = None
) -> ExpectedWorker:
    """An expected worker whose title is ``title`` and its rank.

    Args:
        role: As in :class:`~eagleops.engines.roles.Role`.
        title: The title up to its rank.
        ranks: The dimensions that tell it from its like.
        shown: The rank as the title has it, where it names more than that.
    """
    rank = ranks_text(ranks or {})
    tail = shown if shown is not None else rank
    return ExpectedWorker(role, rank, f"{title}_{tail}" if tail else title)
