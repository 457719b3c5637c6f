"""Installing: units are written as a whole, systemd is told, and again is no harm."""

from __future__ import annotations

import json
import pwd
import subprocess
from pathlib import Path

import pytest

from eagleops.errors import CheckFailed, UsageError
from eagleops.workflows import timer
from eagleops.workflows.timer_surroundings import Surroundings


@pytest.fixture
def plan(inventory, around, here):
    """A plan of a person's timer."""
    loaded = inventory()
    return timer.plan(loaded, loaded.suite(), around=around(), here=here)


def test_a_plan_touches_nothing(plan, here) -> None:
    """A dry run writes no file and tells systemd nothing."""
    assert not any(path.exists() for path in plan.files)
    assert here.asked == []
    assert plan.installed is None
    assert plan.ok


def test_a_timer_is_written_enabled_and_started(plan, here) -> None:
    """Both units are there, and systemd is told of them in order."""
    done = timer.install(plan, here=here)

    assert {path: path.read_text() for path in plan.files} == plan.files
    assert {path.stat().st_mode & 0o777 for path in plan.files} == {0o644}
    assert here.asked == [
        "--user daemon-reload",
        "--user enable eagleops-nightly-default.timer",
        "--user restart eagleops-nightly-default.timer",
    ]
    assert (done.installed, done.ok) == (True, True)


def test_again_is_no_harm(plan, here) -> None:
    """The same files, the same calls, nothing beside them."""
    timer.install(plan, here=here)
    again = timer.install(plan, here=here)

    folder = next(iter(plan.files)).parent
    assert again.ok
    assert sorted(folder.iterdir()) == sorted(plan.files)
    assert here.asked[:3] == here.asked[3:]


def test_what_systemd_refuses_is_told(plan, here) -> None:
    """Its own words, and how a session of systemd is had."""
    here.answer(stderr="Failed to connect to bus: No medium found\n", status=1)

    with pytest.raises(CheckFailed) as refused:
        timer.install(plan, here=here)

    assert refused.value.problem == (
        "systemctl --user daemon-reload: Failed to connect to bus: No medium found"
    )
    assert "loginctl enable-linger" in refused.value.way_out


def test_a_folder_that_cannot_be_written_is_told(plan, here) -> None:
    """Before systemd is told anything."""
    folder = next(iter(plan.files)).parent
    folder.parent.mkdir(parents=True)
    folder.write_text("a file in its place")

    with pytest.raises(CheckFailed, match="it cannot be written"):
        timer.install(plan, here=here)

    assert here.asked == []


def test_a_plans_text_is_the_units(plan) -> None:
    """As `systemctl cat` shows them: to be read, and to be copied."""
    text = plan.text or ""

    for path, unit in plan.files.items():
        assert f"# {path}\n{unit}" in text
    assert text.endswith("# Nothing is installed yet: leave --dry-run out.\n")


def test_a_plan_is_json(plan, here) -> None:
    """With the units' text and the next nights, before and after."""
    before, after = plan.to_dict(), timer.install(plan, here=here).to_dict()

    assert json.loads(json.dumps(before)) == before
    assert before["files"] == {str(path): text for path, text in plan.files.items()}
    assert (before["ok"], before["installed"], after["installed"]) == (True, None, True)
    assert before["unit"] == "eagleops-nightly-default.timer"
    assert [night[10:] for night in before["next_utc"]] == ["T04:30:00Z"] * len(before["next_utc"])


def test_an_installed_timer_says_when_it_starts(plan, here, systemd) -> None:
    """The view names the unit and the next night, by systemd's own reckoning."""
    done = timer.install(plan, here=here)

    assert done.text is None
    assert len(done.next_utc) == timer.NIGHTS
    assert done.view().conclusion.text == (
        f"eagleops-nightly-default.timer is on; next: {done.next_utc[0]}"
    )


def test_a_schedule_that_systemd_refuses_is_an_error(inventory, around, here) -> None:
    """What an inventory lets pass and this systemd does not know is told before anything else."""
    loaded = inventory()
    program = here.bin / "systemd-analyze"
    program.write_text(
        "#!/bin/sh\necho \"Failed to parse calendar specification 'x'\" >&2\nexit 1\n"
    )
    program.chmod(0o755)

    with pytest.raises(UsageError, match="Failed to parse calendar specification") as refused:
        timer.plan(loaded, loaded.suite(), around=around(), here=here)

    assert "systemd.time(7)" in refused.value.way_out


def test_without_systemd_nothing_is_installed_and_the_lines_are_shown(
    inventory, around, here
) -> None:
    """Nobody's crontab is edited: the exit status says that it is left to do."""
    loaded = inventory()
    plan = timer.plan(loaded, loaded.suite(), around=around(systemd=False), here=here)
    done = timer.install(plan, here=here)

    assert (plan.manager, plan.files, plan.ok) == ("cron", {}, True)
    assert (done.installed, done.ok, here.asked) == (False, False, [])
    assert plan.crontab in (done.text or "")
    assert "Nothing was installed: no systemd runs here." in (done.text or "")


def test_a_crontabs_line_starts_a_night_in_a_bare_environment(
    inventory, around, here, tmp_path
) -> None:
    """As cron hands it to sh, with names that need quoting: package, file and suite are found."""
    folder = tmp_path / 'it\'s my 100% "é" $HOME'
    folder.mkdir()
    loaded = inventory(
        "hosts: {box: {transport: sim}}\nnightly: {my-suite: {hosts: [box]}}\n",
        name="my 50% hosts/hosts.yaml",
    )
    bare = around(
        systemd=False,
        folder=folder,
        package=Surroundings.here().package,
        environ={"XDG_DATA_HOME": f"{folder}/d", "XDG_STATE_HOME": str(tmp_path / "s")},
    )
    plan = timer.plan(loaded, loaded.suite(), around=bare, here=here)
    line = plan.crontab.splitlines()[-1].split(" ", 5)[5]
    assert line.count("%") == line.count("\\%")  # cron would end the line there

    done = subprocess.run(
        ["/bin/sh", "-c", f"{line} --dry-run --json".replace("\\%", "%")],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LOGNAME": "ann"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "my-suite" in done.stdout


def test_a_crontabs_line_cannot_be_broken_out_of(inventory, around, here, tmp_path) -> None:
    """A name with a line's end is refused before it reaches a crontab."""
    loaded = inventory()

    with pytest.raises(UsageError, match="control character"):
        timer.plan(
            loaded,
            loaded.suite(),
            around=around(systemd=False, folder=Path(f"{tmp_path}/a\n* * * * * rm")),
            here=here,
        )


def test_a_view_shows_in_a_notebook(plan) -> None:
    """As HTML, with the folder that it goes to."""
    assert next(iter(plan.files)).name in plan._repr_html_()


def test_nobody_without_a_home_gets_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user that no passwd knows is told what to set."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)

    with pytest.raises(UsageError, match="HOME is not set"):
        Surroundings.here()


def test_a_night_has_the_time_to_start_again_what_ran_before(inventory, around, here) -> None:
    """A launch takes as long after the night's limit as before it."""
    texts = []
    for suite in ("limit_s: 60", "limit_s: 60, restore: true"):
        loaded = inventory(
            f"hosts: {{h: {{transport: sim}}}}\nnightly: {{s: {{hosts: [h], {suite}}}}}"
        )
        planned = timer.plan(loaded, loaded.suite(), around=around(), here=here)
        texts += [text for path, text in planned.files.items() if path.suffix == ".service"]

    assert "TimeoutStartSec=960\n" in texts[0]
    assert "TimeoutStartSec=4560\n" in texts[1]
