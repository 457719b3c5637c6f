"""``python -m eagleops <task>``: the console program, where no script is installed."""

from eagleops.tasks.program import main

main()
