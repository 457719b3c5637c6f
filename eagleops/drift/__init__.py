"""Drift: whether a figure that is measured again and again has changed, and when. Pure."""
