"""Telling other programs: webhooks."""
