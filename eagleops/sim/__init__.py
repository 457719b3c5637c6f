"""The embedded box: a machine with eight GPUs that needs no GPU, no root and no network.

:class:`eagleops.sim.box.SimBox` makes it. The rest of the package is what runs on it: a
stand-in ``nvidia-smi`` (:mod:`eagleops.sim.nvidia_smi`) and stand-in engines
(:mod:`eagleops.sim.sglang`, :mod:`eagleops.sim.vllm`) that take the real flags, spawn real
worker processes, serve the engines' HTTP API and yield tokens on a clock. What the clock,
the accept length and the memory's release truly are is known, so that what eagleops
measures can be checked against it.

But for ``box``, every module here runs in processes of its own, many at a time: they import
the standard library and one another, nothing else.
"""
