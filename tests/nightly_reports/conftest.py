"""Real nights, for what their reports look like."""

from nightly.conftest import boxes

__all__ = ["boxes"]
