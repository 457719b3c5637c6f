"""What is known of NCCL and of the engines' flags, as data with their sources, and its readers.

The facts stand in ``nccl.toml``, ``sglang_flags.json`` and ``vllm_flags.json``; whoever judges a
variable or a flag (the linter before a launch, the proof of an environment after it) reads them
here, so that no fact stands twice.
"""
