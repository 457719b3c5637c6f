"""Write docs/reference/sixty-nights.md from what the nights told.

``python page.py NIGHTS.json PAGE``; `make nights` runs it after the tests have passed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = """\
# Sixty nights on the embedded box

This page is written by `make nights`: it is what sixty nights of `eagleops nightly` told in its
last run, one after the other, with the clock put forward from night to night. Every night resets,
launches a server on the embedded box, proves its environment, measures three replies of 128 tokens,
judges, writes its reports, and sends its message to a webhook on loopback. The box's speed is drawn
anew each night, with a standard deviation of 1 %.

What was wrong: on **night 12** the GPU was throttled by heat, and 30 % slower; on **night 20** the
host did not answer; from **night 31** on a file of the engine was patched, and decoding 7 %
slower; **night 44** was slower by another 15 % for no reason. The suite of tests lives through
eighteen such nights, in which the file is put back at last.

"""
WORDS = {"began": "begins", "worsened": "worse", "ended": "ends", "events": "told once"}
LONGEST = 240


def page(body: dict[str, Any]) -> str:
    """The page's text."""
    nights = body["nights"]
    rows = [
        f"| {night['night']} | {_figure(night)} | {night['exit_status']} | {WORDS[group]} "
        f"| `{fault['check']}` | {_short(fault['message'])} |"
        for night in nights
        for group, faults in night["news"].items()
        for fault in faults
    ]
    quiet = sum(not any(night["news"].values()) for night in nights)
    failed = [n["night"] for n in nights if any(f["check"].startswith("speed") for f in _worse(n))]
    table = (
        "| night | tok/s | exit | | check | what was seen |\n| --- | --- | --- | --- | --- | --- |"
    )
    return (
        HEAD
        + f"{table}\n"
        + "\n".join(rows)
        + f"\n\nThe other {quiet} nights had no news, and sent no message. "
        f"The change was confirmed in night {', '.join(map(str, failed))}. "
        f"At the end: {body['trend']['drift']['words']}\n\n"
        f"The sixty nights took {body['took_s'] / 60:.1f} minutes.\n"
    )


def _worse(night: dict[str, Any]) -> list[dict[str, Any]]:
    return list(night["news"]["worsened"])


def _figure(night: dict[str, Any]) -> str:
    return "" if night["tok_s"] is None else f"{night['tok_s']:.1f}"


def _short(message: str) -> str:
    text = " ".join(message.split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def main() -> None:
    """Write it."""
    source, target = map(Path, sys.argv[1:])
    target.write_text(page(json.loads(source.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
