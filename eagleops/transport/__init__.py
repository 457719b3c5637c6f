"""Floor 1: how argv and bytes reach a machine and come back."""
