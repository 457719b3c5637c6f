"""A pasted command becomes a profile."""
