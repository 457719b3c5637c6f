"""Floor 2: code that runs on the target, under its own python3 >= 3.8, stdlib alone.

Nothing here imports anything of eagleops outside this package: the client sends these
files over a channel (:mod:`eagleops.session`) and nothing of them is written to the
target's disk, but for the supervisor of a launched server, which stands in its state folder.
"""
