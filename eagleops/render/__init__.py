"""Floor 5: what a person sees in a terminal."""
