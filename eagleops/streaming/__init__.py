"""Asking a served model for text, and hearing each token as it comes."""
