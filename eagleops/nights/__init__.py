"""Nights: what the nightly checks found, kept, and told from night to night."""
