"""A stand-in SGLang: ``python -m sglang.launch_server``, like 0.5.17."""

__version__ = "0.5.17+simulated"
