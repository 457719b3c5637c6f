"""The quickstart notebook runs as a reader would run it, and its results show themselves."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import eagleops
from parts.shared import turn

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="the [notebook] extra is not installed")
pytest.importorskip("matplotlib", reason="the [plots] extra is not installed")
pytest.importorskip("scipy", reason="the [stats] extra is not installed")

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/notebooks/quickstart.ipynb"
# The port that it names can be had by one run at a time.
LOCK = Path(tempfile.gettempdir(), f"eagleops-tests-{os.getuid()}-notebook.lock")
# What the kernel's own libraries find out about each other is no fault of the notebook.
pytestmark = pytest.mark.filterwarnings("default")


def kernel(folder: Path) -> None:
    """A kernel of this very interpreter, whatever else is installed on this machine."""
    place = folder / "kernels/this"
    place.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "this", "language": "python"}
    (place / "kernel.json").write_text(json.dumps(spec))


@pytest.fixture(scope="module")
def cells(tmp_path_factory) -> list[Any]:
    """The notebook's code cells after a run, in a home of their own."""
    folder = tmp_path_factory.mktemp("notebook")
    kernel(folder / "jupyter")
    with pytest.MonkeyPatch.context() as patch, turn(LOCK):
        for name in [name for name in os.environ if name.startswith("EAGLEOPS_")]:
            patch.delenv(name)
        patch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
        patch.setenv("PYTHONPATH", str(Path(eagleops.__file__).parents[1]))
        for name in ("XDG_STATE_HOME", "XDG_DATA_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name.lower()))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbclient.NotebookClient(
            notebook,
            kernel_name="this",
            timeout=300,
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cells: list[Any], source: str) -> str:
    """The HTML under the cell whose source ends so."""
    (cell,) = [cell for cell in cells if cell.source.rstrip().endswith(source)]
    outputs = [
        out["data"]["text/html"] for out in cell.outputs if "text/html" in out.get("data", ())
    ]
    return "".join(outputs)


def test_every_result_shows_itself(cells) -> None:
    """A result is a table under its cell, not an object's address."""
    assert "(simulated)" in shown(cells, "box.status()")
    assert "NCCL_PROTO" in shown(cells, "server.verify_env()")
    assert "tok/s" in shown(cells, "\nmeasured")
    assert "at least 4 of each are needed" in shown(cells, "\nresult")
    assert "accepted tokens a cycle to break even" in shown(cells, "\ntold")


def test_progress_is_drawn_under_the_cell(cells) -> None:
    """One output that changes, though the work goes on in another thread."""
    drawn = shown(cells, "\nresult")

    assert "role='status'" in drawn
    assert drawn.count("role='status'") == 1
    assert "waiting" in drawn


def test_plots_come_on_demand(cells) -> None:
    """Speed, change, break-even and accept lengths, drawn in the colours of both themes."""
    drawn = shown(cells, "plots(result)")

    assert drawn.count("<svg") == 4
    assert "prefers-color-scheme: dark" in drawn
    # What is for the notebook's own page stays the notebook's.
    assert ":root" not in drawn


def test_the_notebook_is_kept_without_its_outputs() -> None:
    """What a run printed on somebody's machine is in no commit."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))

    assert [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"] == [
        [] for cell in notebook["cells"] if cell["cell_type"] == "code"
    ]
