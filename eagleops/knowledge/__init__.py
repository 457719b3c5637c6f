"""What is known of NCCL, of the engines' flags and of Xid errors, as data, and its readers.

The facts and their sources stand in ``nccl.toml``, ``sglang_flags.json``, ``vllm_flags.json`` and
``xid.toml``; whoever judges a variable, a flag or an error (the linter before a launch, the proof
of an environment after it, the nightly checks) reads them here, so that no fact stands twice.
"""
