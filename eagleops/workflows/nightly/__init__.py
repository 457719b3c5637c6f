"""Nightly checks: a suite's pass over its hosts, unattended."""
