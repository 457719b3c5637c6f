"""A streamed reply as it was heard: when its tokens came, and how many the engine counts."""

from __future__ import annotations

import attrs


@attrs.frozen
class Reply:
    """One whole reply. Times are seconds from the moment at which its request was sent.

    Attributes:
        first_s: To the first event that brought tokens.
        last_s: To the last one that did.
        first_tokens: How many tokens came at that first moment, as the engine counts; where it
            does not say, how many events.
        completion_tokens: As the engine counts; None where it does not say. An event may bring
            several tokens or none: events are never counted in their place.
        prompt_tokens: Likewise.
        cached_tokens: Of the prompt, those that a cache held.
        verify_cycles: Of speculative decoding; None where it does not say.
        events: How many brought tokens.
        moments: At how many moments they came. Events that come together were held up on the
            way: the time between them is not the engine's.
        finish_reason: ``length``, ``stop``, or another word of the engine's.
        correct_drafts: Cycles by how many of their drafted tokens were right, from 0 on; empty
            where it does not say.
    """

    first_s: float
    last_s: float
    first_tokens: int
    completion_tokens: int | None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    verify_cycles: int | None = None
    events: int = 0
    moments: int = 0
    finish_reason: str = ""
    correct_drafts: tuple[int, ...] = ()

    @property
    def was_held_back(self) -> bool:
        """Whether most events came together with others."""
        return 2 * self.moments < self.events

    @property
    def decode_s(self) -> float:
        """From the first tokens to the last."""
        return self.last_s - self.first_s

    @property
    def decoded_tokens(self) -> int | None:
        """The tokens that came after the first event."""
        if self.completion_tokens is None:
            return None
        return self.completion_tokens - self.first_tokens

    @property
    def tok_s(self) -> float | None:
        """Decode speed; None where the engine counts no tokens or sent all of them at once."""
        if not self.decoded_tokens or self.decode_s <= 0:
            return None
        return self.decoded_tokens / self.decode_s
