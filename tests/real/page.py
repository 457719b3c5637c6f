"""Write docs/reference/real-engine.md from the sessions that the tests recorded.

``python page.py SESSIONS PAGE``; `make test-real` runs it after the tests have passed.
"""

from __future__ import annotations

import sys
from pathlib import Path

HEAD = """\
# A real vLLM, from reset to stop

This page is written by `make test-real`: it is what the commands printed in its last run, on a
machine with two processor cores and no GPU. The server is vLLM's own CPU build ({version}) with two
tensor-parallel workers and a model of random weights; the SSH server is OpenSSH, and the container
is LXC's, entered by a `pct` that behaves as Proxmox's does.

`make test-real` installs that vLLM into `.real/` (about 4 GB, some minutes) and takes about six
minutes more.
"""
SECTIONS = {
    "test_the_main_job_over_ssh": (
        "Over SSH, with titles",
        (
            "The profile removes `SPT_NOENV`, so that vLLM's workers overwrite their own\n"
            "`/proc/PID/environ` as they do by default. The first witness is blind\n"
            "then. The others are not."
        ),
    ),
    "test_the_main_job_in_a_container": (
        "In a container, as eagleops launches",
        "SSH to the host, pct from there. `SPT_NOENV=1` keeps the first witness whole.",
    ),
    "test_a_server_that_is_ready_and_cannot_serve": (
        "Ready, and cannot serve",
        (
            "The model has a head size that this build's attention does not take. vLLM gets ready\n"
            "all the same and dies at the first completion."
        ),
    ),
}


def page(sessions: Path, version: str) -> str:
    """The page's text."""
    parts = [HEAD.format(version=version)]
    for name, (title, lead) in SECTIONS.items():
        record = (sessions / f"{name}.txt").read_text(encoding="utf-8")
        # Rules were drawn for this machine's longer paths.
        lines = "\n".join(
            line.rstrip()[: 100 if set(line.strip()) == {"─"} else None]
            for line in record.strip().splitlines()
        )
        parts.append(f"## {title}\n\n{lead}\n\n```text\n{lines}\n```\n")
    return "\n".join(parts)


def main() -> None:
    """Write it."""
    sessions, target = Path(sys.argv[1]), Path(sys.argv[2])
    version = (sessions.parent / "stamp").read_text(encoding="utf-8").split(" recipe")[0]
    target.write_text(page(sessions, version), encoding="utf-8")
    print(f"real engine: {target}")


if __name__ == "__main__":
    main()
