"""A stand-in ``nvidia-smi``: the real one's words and columns, about the box's GPUs."""
