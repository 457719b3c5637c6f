"""A package's files against what its wheel held: patched by hand is seen, and what is whole is."""

from __future__ import annotations

import csv
import hashlib
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.wheel_record import Row, parse_record


def compared(result: dict) -> dict:
    """What was found of the one package."""
    (package,) = result["compared"]
    return package


def states(package: dict) -> dict[str, str]:
    """Each modified file's state."""
    return {change["path"]: change["state"] for change in package["modified"]}


def test_an_untouched_installation_is_whole(installed, look) -> None:
    """What pip has installed is all as RECORD has them, byte code or not."""
    before = compared(look(python=str(installed.python)))
    (installed.site / "sglang" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"\0")

    after = compared(look(python=str(installed.python)))

    assert (before["name"], before["version"]) == ("sglang", "0.5.17+test")
    assert (before["checked"], before["problem"], before["modified"]) == (True, None, [])
    assert before["by_size_alone"] == 1  # kernels.so
    assert after == before


def test_a_patched_a_deleted_and_an_added_file_are_named(installed, look) -> None:
    """The three ways in which an engine is changed by hand, each by its path."""
    package = installed.site / "sglang"
    (package / "srt" / "engine.py").write_bytes(b"def launch():\n    return 'patched'\n")
    (package / "srt" / "scheduler.py").unlink()
    (package / "srt" / "hotfix.py").write_text("import os\n")

    found = compared(look(python=str(installed.python)))

    assert states(found) == {
        "sglang/srt/engine.py": "changed",
        "sglang/srt/hotfix.py": "added",
        "sglang/srt/scheduler.py": "missing",
    }
    assert found["modified_count"] == 3
    patched = found["modified"][0]
    content = (package / "srt" / "engine.py").read_bytes()
    assert patched["sha256"] == hashlib.sha256(content).hexdigest()
    assert patched["bytes"] == len(content)


def test_a_patch_of_the_same_length_is_seen(installed, look) -> None:
    """A digit is another digit: the size tells nothing, the hash does."""
    scheduler = installed.site / "sglang" / "srt" / "scheduler.py"
    scheduler.write_bytes(b"STEPS = 2\n")

    assert states(compared(look(python=str(installed.python)))) == {
        "sglang/srt/scheduler.py": "changed"
    }


def test_a_large_library_is_compared_by_size_unless_asked(installed, look) -> None:
    """Hundreds of MiB are not read at each launch; ``thorough`` reads them."""
    kernels = installed.site / "sglang" / "kernels.so"
    data = bytearray(kernels.read_bytes())
    data[-1] = 1
    kernels.write_bytes(bytes(data))

    quick = compared(look(python=str(installed.python)))
    thorough = compared(look(python=str(installed.python), thorough=True))
    kernels.write_bytes(bytes(data) + b"\0")
    longer = compared(look(python=str(installed.python)))

    assert (states(quick), quick["by_size_alone"]) == ({}, 1)
    assert (states(thorough), thorough["by_size_alone"]) == ({"sglang/kernels.so": "changed"}, 0)
    assert states(longer) == {"sglang/kernels.so": "changed"}


def test_a_tuned_configuration_that_was_added_is_seen(installed, look) -> None:
    """A kernel's configuration decides its speed as much as its code does."""
    (installed.site / "sglang/srt/configs/moe_tuned.json").write_text("{}")
    (installed.site / "sglang/srt/link.py").symlink_to("of-nothing.py")

    assert states(compared(look(python=str(installed.python)))) == {
        "sglang/srt/configs/moe_tuned.json": "added",
        "sglang/srt/link.py": "unreadable",
    }


def test_a_package_without_a_record_is_not_called_whole(installed, look) -> None:
    """Debian's packages have none: the answer is "not compared", with the reason."""
    (record,) = installed.site.glob("sglang-*.dist-info/RECORD")
    record.unlink()

    package = compared(look(python=str(installed.python)))

    assert (package["checked"], package["problem"]) == (
        False,
        "no RECORD to compare with: No such file or directory",
    )


def test_any_package_can_be_compared(with_pip, look) -> None:
    """``packages`` names which, however their names are spelled; unknown ones are left out."""
    result = look(python=str(with_pip.python), packages=["PIP", "no-such"])

    assert [(p["name"], p["checked"], p["modified"]) for p in result["compared"]] == [
        ("pip", True, [])
    ]


def test_a_copy_earlier_on_the_path_is_told(installed, look, tmp_path: Path) -> None:
    """A package folder in the server's working directory is imported in the package's place."""
    (tmp_path / "cwd" / "sglang").mkdir(parents=True)
    (tmp_path / "cwd" / "sglang" / "__init__.py").write_text("")
    with subprocess.Popen(
        [installed.python, "-c", "print(flush=True); input()"],
        cwd=tmp_path / "cwd",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        package = compared(look(pid=process.pid, packages=["sglang"]))
        process.communicate(b"\n")

    assert package["shadowed_by"] == str(tmp_path / "cwd" / "sglang")


def test_hashing_says_how_far_it_is(with_pip, session) -> None:
    """Between files it can be called off: who goes away does not leave it hashing."""
    events = []
    arguments = {"python": str(with_pip.python), "packages": ["pip"]}
    session.call("installation", on_event=events.append, **arguments)

    checked = [event["files"] for event in events if event["event"] == "checked"]
    assert checked[:3] == [0, 200, 400]


def test_record_is_read_as_csv() -> None:
    """A path may hold commas and quotes; a row without a hash is byte code or RECORD itself."""
    text = 'a.py,sha256=AbC,12\n"x, ""y"".py",sha384=d,\nz.pyc,,\nshort\n\n'

    assert parse_record(text) == [
        Row("a.py", "sha256", "AbC", 12),
        Row('x, "y".py', "sha384", "d", None),
        Row("z.pyc", "", "", None),
        Row("short", "", "", None),
    ]


@given(st.text())
def test_no_record_breaks_the_reading(text: str) -> None:
    """Whatever stands in the file, it is read or refused, never crashed on."""
    try:
        rows = parse_record(text)
    except csv.Error:
        return
    assert all(row.path for row in rows)
