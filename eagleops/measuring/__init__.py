"""What a measurement is made of: the reply's figures, and what the GPUs did meanwhile."""
