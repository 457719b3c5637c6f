"""The reports of the nightly checks: a page for people, and files for whoever watches them."""
