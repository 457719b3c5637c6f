"""A stand-in vLLM."""

__version__ = "0.0"
