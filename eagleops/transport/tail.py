"""The end of a stream that may be endless."""

from __future__ import annotations

import collections

import attrs

TAIL_BYTES = 1024 * 1024


@attrs.define
class Tail:
    """Keeps the last :data:`TAIL_BYTES` of what is added."""

    _chunks: collections.deque[bytes] = attrs.field(factory=collections.deque, init=False)
    _size: int = attrs.field(default=0, init=False)

    def add(self, data: bytes) -> None:
        """Adds what came next."""
        self._chunks.append(data)
        self._size += len(data)
        while self._size - len(self._chunks[0]) >= TAIL_BYTES:
            self._size -= len(self._chunks.popleft())

    def bytes(self) -> bytes:
        """What is kept."""
        return b"".join(self._chunks)[-TAIL_BYTES:]
