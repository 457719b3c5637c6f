"""Floor 4: the order of steps.

A workflow asks machines, decides by pure functions, and returns a frozen result; it prints
nothing.
"""
