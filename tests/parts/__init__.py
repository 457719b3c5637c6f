"""The real parts that tests stand on: an OpenSSH server, an LXC container, links that fail."""
