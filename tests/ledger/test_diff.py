"""What changed between two runs: the likeliest reason first, the unchanged counted."""

from __future__ import annotations

import io
import json
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from eagleops.ledger import Header, Run
from eagleops.ledger.diff import Change, RunDiff, diff, in_words
from eagleops.ledger.lines import SECTIONS
from eagleops.remote.redact import REDACTED


def gpu(index: int, **facts: Any) -> dict[str, Any]:
    """One GPU's settings."""
    return {"index": index, "uuid": f"GPU-{index}", "power_limit_w": 600, **facts}


def parts(**changes: Any) -> dict[str, Any]:
    """What is recorded of a run, with some of it changed."""
    told = {
        "spec": {
            "argv": ["/env/bin/python3", "-m", "sglang.launch_server", "--tp-size", "8"],
            "env": {"NCCL_PROTO": "LL", "EAGLEOPS_LAUNCH_ID": "1", "HOME": "/root"},
            "cwd": "/root",
        },
        "packages": {
            "python": {"version": "3.12.3", "executable": "/env/bin/python3"},
            "distributions": [
                {"name": "aiohttp", "version": "3.9"},
                {"name": "sglang", "version": "0.5.17"},
                {"name": "torch", "version": "2.9.0"},
            ],
            "compared": [
                {"name": "sglang", "checked": True, "problem": None, "modified": []},
            ],
        },
        "models": {
            "models": [
                {
                    "role": "draft",
                    "name": "/data/eagle3/4",
                    "files": [{"path": "model.safetensors", "bytes": 10, "mtime_s": 5}],
                }
            ]
        },
        "libraries": {
            "libraries": [{"name": "nccl", "path": "/l/libnccl.so.2", "version": "2.28.9"}]
        },
        "gpus": {
            "driver_version": "580.1",
            "cuda_version": "13.0",
            "topology": "\tGPU0\n",
            "gpus": [gpu(index) for index in range(8)],
        },
        "machine": {"kernel": "6.8", "governors": {"performance": 64}, "boot_id": "b1"},
        "telemetry": {
            "gpus": [
                {
                    "index": index,
                    "sm_clock_mhz": {"median": 2500.0},
                    "temperature_c": {"median": 60.0},
                    "throttled": {},
                }
                for index in range(8)
            ]
        },
    }
    return {name: body for name, body in {**told, **changes}.items() if body is not None}


def run(number: int, *, host: str = "llm", tok_s: float | None = None, **changes: Any) -> Run:
    """A recorded run."""
    header = Header(host=host, server="s", profile="baseline", engine="sglang", id=number)
    made = Run.begin(header, parts(**changes))
    return attrs.evolve(made, header=attrs.evolve(made.header, tok_s=tok_s))


def told(difference: RunDiff) -> list[tuple[str, str, str | None, str | None]]:
    """The changes without their GPUs."""
    return [(c.section, c.what, c.before, c.after) for c in difference.changes]


def test_two_runs_alike_have_no_changes() -> None:
    """All that is the same is counted by section, and none of it is listed."""
    same = diff(run(1), run(2))

    assert same.changes == ()
    assert same.unchanged == {
        "env": 2,
        "args": 3,
        "model": 2,
        "versions": 9,
        "clocks": 24,
        "machine": 11,
    }
    assert same.view().conclusion.text == "No change was seen; 51 facts are the same."


def test_the_teams_case_is_told_in_order() -> None:
    """Environment, command, patched engine, model, versions, limits, machine: in that order."""
    before = run(41, tok_s=88.8)
    after = parts()
    after["spec"]["env"] = {"NCCL_ALGO": "Ring", "HOME": "/root"}
    after["spec"]["argv"] = [*after["spec"]["argv"], "--disable-custom-all-reduce"]
    after["packages"]["distributions"][0]["version"] = "3.10"
    after["packages"]["distributions"][1]["version"] = "0.5.18"
    after["packages"]["compared"][0]["modified"] = [
        {"path": "sglang/engine.py", "state": "changed", "sha256": "ab" * 32, "bytes": 7}
    ]
    after["models"]["models"][0]["files"][0]["mtime_s"] = 6
    after["gpus"]["gpus"] = [gpu(index, power_limit_w=450) for index in range(8)]
    after["gpus"]["driver_version"] = "585.0"
    after["machine"]["governors"] = {"performance": 63, "powersave": 1}
    for index in (2, 3):
        after["telemetry"]["gpus"][index] |= {
            "sm_clock_mhz": {"median": 2100.0},
            "throttled": {"sw_power_cap": 0.31},
        }

    changed = diff(before, run(42, tok_s=82.2, **after))

    assert told(changed) == [
        ("env", "NCCL_ALGO", None, "Ring"),
        ("env", "NCCL_PROTO", "LL", None),
        ("args", "--disable-custom-all-reduce", None, "given"),
        (
            "patches",
            "sglang: sglang/engine.py",
            None,
            "changed (sha256 abababababab, 7 bytes)",
        ),
        ("model", "draft: model.safetensors", "10 bytes of time 5", "10 bytes of time 6"),
        ("versions", "driver", "580.1", "585.0"),
        ("versions", "sglang", "0.5.17", "0.5.18"),
        ("versions", "aiohttp", "3.9", "3.10"),
        ("clocks", "power_limit_w", "600", "450"),
        ("clocks", "throttled by sw_power_cap", None, "31 %"),
        ("clocks", "sm_clock_mhz while measured", "2,500 MHz", "2,100 MHz"),
        ("machine", "governors", "performance: 64", "performance: 63, powersave: 1"),
    ]
    assert [change.gpus for change in changed.changes[8:11]] == [
        tuple(range(8)),
        (2, 3),
        (2, 3),
    ]
    assert changed.not_compared == ()


def test_the_view_names_figures_gpus_and_counts() -> None:
    """A person reads which figure moved, which GPUs, and how much is the same."""
    after = parts()
    after["gpus"]["gpus"] = [gpu(index, power_limit_w=450) for index in range(8)]
    after["spec"]["env"] = {"NCCL_PROTO": "Simple", "HOME": "/root"}
    changed = diff(run(41, tok_s=88.8), run(42, tok_s=82.2, **after))

    shown = io.StringIO()
    Console(width=120, file=shown).print(changed.view())
    text = shown.getvalue()
    assert "GPU 0-7: power_limit_w   600      450" in text
    assert "NCCL_PROTO   LL       Simple" in text
    assert "88.8 tok/s; run 42" in text
    assert "-7.4 %" in text
    assert "Changed: 1 env, 1 clocks. The same: 42 facts." in text
    assert "<table>" in changed._repr_html_()


def test_changes_stand_in_a_sentence() -> None:
    """The first of them with both sides; of a boot's name that it is another; the rest counted."""
    changes = [
        Change("clocks", "power_limit_w", "700", "600", (0, 1)),
        Change("machine", "boot_id", "5f0c", "77aa"),
        Change("versions", "torch", None, "2.9.1"),
    ]

    assert in_words(changes, 3) == (
        "GPU 0-1: power_limit_w: 700 → 600; the machine was rebooted; torch: none → 2.9.1"
    )
    assert in_words(changes, 1) == "GPU 0-1: power_limit_w: 700 → 600; and 2 more"


def test_measurements_differ_only_by_more_than_chance() -> None:
    """A clock that is half a percent lower is the same clock; a reason for no time is none."""
    after = parts()
    after["telemetry"]["gpus"][0] = {
        "index": 0,
        "sm_clock_mhz": {"median": 2490.0},
        "temperature_c": {"median": 64.0},
        "throttled": {"sw_power_cap": 0.001},
    }

    assert diff(run(1), run(2, **after)).changes == ()


def test_one_launch_s_own_names_are_no_difference() -> None:
    """The launch's id and the place of NCCL's log differ always, and mean nothing."""
    after = parts()
    after["spec"]["env"] |= {"EAGLEOPS_LAUNCH_ID": "2", "NCCL_DEBUG_FILE": "/s/nccl.%p.log"}

    assert diff(run(1), run(2, **after)).changes == ()


def test_a_secret_is_not_called_the_same() -> None:
    """Its value is in no ledger: whether it changed cannot be told, and that is told."""
    secret = parts()
    secret["spec"]["env"]["HF_TOKEN"] = REDACTED
    secret["spec"]["argv"] += ["--api-key", REDACTED]

    compared = diff(run(1, **secret), run(2, **secret))

    assert compared.changes == ()
    assert compared.not_compared == (
        "--api-key: its value is in no ledger",
        "HF_TOKEN: its value is in no ledger",
    )
    assert diff(run(1), run(2, **secret)).changes[0] == Change("env", "HF_TOKEN", None, REDACTED)


def test_what_was_recorded_of_one_run_alone_is_not_compared() -> None:
    """An older run without packages: no hundred versions that seem to be new."""
    compared = diff(run(1, packages=None, telemetry=None), run(2))

    assert compared.changes == ()
    assert compared.not_compared == (
        "packages: not recorded of run 1",
        "telemetry: not recorded of run 1",
    )


def test_files_times_say_nothing_on_another_host() -> None:
    """A copy of the model has other times; its sizes and hashes are compared."""
    after = parts()
    after["models"]["models"][0]["files"][0]["mtime_s"] = 99

    assert diff(run(1), run(2, host="other", **after)).changes == ()
    after["models"]["models"][0]["files"][0]["bytes"] = 11
    assert told(diff(run(1), run(2, host="other", **after))) == [
        ("model", "draft: model.safetensors", "10 bytes", "11 bytes")
    ]


def test_what_an_engine_did_to_a_variable_is_seen() -> None:
    """Given alike, in effect differently: the workers' own words tell it."""

    def environment(value: str, other: str) -> dict[str, Any]:
        seen = [value, value, other]
        processes = [
            {"pid": n, "counted": n < 2, "variables": {"NCCL_ALGO": {"live": one}}}
            for n, one in enumerate(seen)
        ]
        return {"processes": processes}

    before = run(1, environment=environment("Ring", "ignored"))
    after = run(2, environment=environment("Tree", "bystander"))

    assert told(diff(before, after)) == [("env", "NCCL_ALGO in the workers", "Ring", "Tree")]


def test_a_conf_file_that_somebody_edited_is_seen() -> None:
    """It stands in no profile and no command, and NCCL reads it all the same."""

    def environment(**files: dict[str, str]) -> dict[str, Any]:
        return {"processes": [], "conf_files": {f"/{path}": set_ for path, set_ in files.items()}}

    before = run(1, environment=environment(a={"NCCL_ALGO": "Ring"}, b={"NCCL_PROTO": "LL"}))
    after = run(2, environment=environment(a={"NCCL_ALGO": "Tree"}, c={"NCCL_PROTO": "LL"}))

    assert sorted(told(diff(before, after))) == [
        ("env", "NCCL_ALGO in /a", "Ring", "Tree"),
        ("env", "NCCL_PROTO in /b", "LL", None),
        ("env", "NCCL_PROTO in /c", None, "LL"),
    ]


def test_a_checkout_and_a_shadow_are_patches() -> None:
    """An editable install's commit and dirty files, and a copy that hides the package."""

    def compared(commit: str, dirty: list, shadow: str | None) -> dict[str, Any]:
        told = parts()["packages"]
        told["compared"] = [
            {
                "name": "sglang",
                "checked": True,
                "problem": None,
                "modified": [],
                "checkout": {"commit": commit, "dirty": dirty},
                "shadowed_by": shadow,
            }
        ]
        return told

    dirty = [{"path": "a.py", "state": "M", "sha256": "0" * 64, "bytes": 1}]
    before = run(1, packages=compared("c1", [], None))
    after = run(2, packages=compared("c2", dirty, "/cwd/sglang"))

    assert told(diff(before, after)) == [
        ("patches", "sglang: a.py", None, "M (sha256 000000000000, 1 bytes)"),
        ("patches", "sglang: commit", "c1", "c2"),
        ("patches", "sglang: shadowed by", None, "/cwd/sglang"),
    ]


def test_many_changed_files_are_counted_in_the_view() -> None:
    """Sixty-four files of weights are one piece of news; JSON has them all."""

    def models(mtime_s: int) -> dict[str, Any]:
        files = [{"path": f"m-{n:02}", "bytes": 1, "mtime_s": mtime_s} for n in range(64)]
        return {"models": [{"role": "target", "name": "/m", "files": files}]}

    changed = diff(run(1, models=models(1)), run(2, models=models(2)))

    assert len(changed.to_dict()["changes"]) == 64
    (table,) = changed.view().tables
    assert table.rows[-1] == ("and 49 more: see --json", "", "")


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=6), max_size=5), st.data())
def test_a_diff_and_its_reverse_tell_the_same(env: dict[str, str], data: st.DataObject) -> None:
    """Whatever two environments hold, one is the other's mirror, and nothing is lost."""
    other = data.draw(st.dictionaries(st.sampled_from([*env, "X", "Y"]), st.text(max_size=6)))
    spec = parts()["spec"]
    one, two = run(1, spec={**spec, "env": env}), run(2, spec={**spec, "env": other})

    there, back = diff(one, two), diff(two, one)

    assert [(c.what, c.before, c.after) for c in there.changes] == [
        (c.what, c.after, c.before) for c in back.changes
    ]
    names = (set(env) | set(other)) - {"EAGLEOPS_LAUNCH_ID"}
    changed = {c.what for c in there.changes}
    assert changed == {name for name in names if env.get(name) != other.get(name)}
    assert json.dumps(there.to_dict())
    assert {c.section for c in there.changes} <= set(SECTIONS)
