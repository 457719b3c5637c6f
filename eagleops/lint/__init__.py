"""Lint: what is wrong in a profile, found before a machine is touched."""
