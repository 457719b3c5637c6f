"""The ledger: what ran, with what, on what, and what came of it.

>>> from eagleops.ledger import Ledger
>>> with Ledger.open() as ledger:
...     for run in ledger.runs(limit=3):
...         print(run.id, run.profile, run.tok_s)
"""

from eagleops.ledger.ledger import Ledger
from eagleops.ledger.place import default_path
from eagleops.ledger.run import Fact, Header, Run

__all__ = ["Fact", "Header", "Ledger", "Run", "default_path"]
