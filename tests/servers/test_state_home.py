"""Where servers keep their state."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagleops.remote.context import Context
from eagleops.remote.server_record import home, servers_home

DEFAULT = str(Path(home(), ".local/state/eagleops/servers"))


@pytest.mark.parametrize(
    ("option", "variable", "folder"),
    [
        (None, None, DEFAULT),
        (None, "", DEFAULT),
        (None, "state", DEFAULT),  # XDG's specification: relative paths are to be ignored
        (None, "./state", DEFAULT),
        (None, "~/state", DEFAULT),
        (None, "/var/state", "/var/state/eagleops/servers"),
        ("/srv", "/var/state", "/srv/eagleops/servers"),
        ("/srv", "state", "/srv/eagleops/servers"),
    ],
)
def test_it_is_the_same_folder_wherever_a_session_begins(
    monkeypatch, tmp_path: Path, option: str | None, variable: str | None, folder: str
) -> None:
    """hosts.yaml's, else $XDG_STATE_HOME's, else the home's; never one below where it began."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if variable is not None:
        monkeypatch.setenv("XDG_STATE_HOME", variable)

    assert servers_home(Context({"state_home": option})) == folder
