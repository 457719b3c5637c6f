"""A stand-in vLLM: its OpenAI API server, like 0.32.0."""

__version__ = "0.32.0+simulated"
