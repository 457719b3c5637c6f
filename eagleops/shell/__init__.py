"""Reading shell commands, never by running them."""
