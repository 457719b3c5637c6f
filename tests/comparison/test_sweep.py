"""A grid over a profile's values, and the best point written out."""

from __future__ import annotations

import json

import attrs
import pytest
import yaml

from comparison.examples import BASELINE, EAGLE, example, trials_of
from eagleops.comparison.grid import Axis, grid
from eagleops.comparison.verdict import verdicts
from eagleops.errors import UsageError
from eagleops.inventory import load
from eagleops.library.compare import sweep
from eagleops.workflows.compare_plan import Protocol, plan_comparison
from eagleops.workflows.sweep import SweepResult, heat_map, write_profile

pytest.importorskip("scipy", reason="the [stats] extra is not installed")

AXES = (
    Axis.parse("args.speculative-num-steps=1,2,3"),
    Axis.parse("env.NCCL_PROTO=LL,Simple"),
)


@pytest.fixture
def swept() -> SweepResult:
    """Six points around EAGLE-3, the fourth the fastest."""
    points = grid(EAGLE, AXES)
    plan = plan_comparison("box", "python3", (EAGLE, *(p.profile for p in points)), Protocol())
    speeds = [60.0, 50.0, 55.0, 58.0, 90.0, 61.0, 62.0]
    profiles = [EAGLE, *(point.profile for point in points)]
    base, *others = [
        trials_of(profile, [speed - 0.2, speed, speed + 0.1, speed - 0.1, speed + 0.2, speed])
        for profile, speed in zip(profiles, speeds, strict=True)
    ]
    comparison = attrs.evolve(
        example(), plan=plan, restarts=(base, *others), verdicts=verdicts(base, others)
    )
    result = SweepResult(base=EAGLE, axes=AXES, points=points, comparison=comparison)
    return attrs.evolve(result, comparison=attrs.evolve(comparison, heat_map=heat_map(result)))


def test_a_grid_has_every_combination() -> None:
    """Each point is a profile with a name of its own that extends the base."""
    points = grid(BASELINE, (Axis.parse("args.tp-size=1,2"), Axis.parse("env.NCCL_ALGO=Ring,null")))

    assert [point.profile.name for point in points] == [
        "baseline.tp-size-1.NCCL_ALGO-Ring",
        "baseline.tp-size-1.NCCL_ALGO-none",
        "baseline.tp-size-2.NCCL_ALGO-Ring",
        "baseline.tp-size-2.NCCL_ALGO-none",
    ]
    assert points[0].profile.args["tp-size"] == "1"
    assert "NCCL_ALGO" not in points[1].profile.env


def test_with_top_k_1_the_draft_tokens_follow_the_steps() -> None:
    """SGLang would set them so anyway, whatever was given."""
    points = grid(EAGLE, AXES[:1])

    drafts = [point.profile.args["speculative-num-draft-tokens"] for point in points]
    assert drafts == ["2", "3", "4"]


def test_combinations_that_come_to_the_same_server_are_one_point() -> None:
    """Of true and true, or of a value taken away twice, one is measured."""
    axes = (Axis.parse("args.disable-radix-cache=true,null"), Axis.parse("args.x=null"))

    assert len(grid(BASELINE, (*axes, Axis.parse("env.NOT_THERE=null")))) == 2


@pytest.mark.parametrize("text", ["", "args.x", "x=1,2", "args.x=", "args.x=1,1", "port=1,2"])
def test_an_axis_that_is_none_is_refused(text) -> None:
    """The error shows what one looks like."""
    with pytest.raises(UsageError) as refused:
        Axis.parse(text)

    assert str(refused.value).splitlines() == [
        f"--vary: KEY=VALUE,VALUE with different values is expected, got {text!r}",
        "For example: --vary args.speculative-num-steps=1,2,3 --vary env.NCCL_PROTO=LL,Simple.",
    ]


def test_the_best_point_is_told_with_its_interval(swept) -> None:
    """Its values, its verdict against the base, and where it lies in the grid."""
    assert swept.best is not None
    assert swept.best.profile.name == "eagle3-2step.speculative-num-steps-2.NCCL_PROTO-Simple"
    assert swept.view().conclusion.text.startswith(
        "The best of 6 points: args.speculative-num-steps=2, env.NCCL_PROTO=Simple. "
        "eagle3-2step.speculative-num-steps-2.NCCL_PROTO-Simple is 50 % faster than eagle3-2step "
        "(90.0 against 60.0 tok/s, "
    )
    document = swept.to_dict()
    assert document["vary"] == {
        "args.speculative-num-steps": ["1", "2", "3"],
        "env.NCCL_PROTO": ["LL", "Simple"],
    }
    assert document["best"] == swept.best.profile.name


def test_the_best_point_is_a_profile_that_hosts_yaml_takes(swept, tmp_path) -> None:
    """Written under the base, it resolves to the very profile that was measured."""
    file = tmp_path / "best.yaml"
    write_profile(swept, file)
    best = yaml.safe_load(file.read_text())
    profiles = {
        EAGLE.name: {
            "engine": EAGLE.engine,
            "model": EAGLE.model,
            "port": EAGLE.port,
            "args": {k: str(v) for k, v in EAGLE.args.items()},
            "env": dict(EAGLE.env),
        },
        **best,
    }
    inventory = tmp_path / "hosts.yaml"
    hosts = {"sim": {"transport": "sim"}}
    inventory.write_text(json.dumps({"hosts": hosts, "profiles": profiles}))

    assert swept.best is not None
    resolved = load(inventory).profile(swept.best.profile.name)
    assert dict(resolved.args) == dict(swept.best.profile.args)
    assert dict(resolved.env) == dict(swept.best.profile.env)


def test_two_axes_are_a_heat_map(swept) -> None:
    """Rows and columns in the order in which they were given, drawn as such."""
    pytest.importorskip("matplotlib", reason="the [plots] extra is not installed")
    from eagleops.render.report.plots import heat_map as drawn

    told = swept.comparison.heat_map
    assert (told.rows, told.row_values) == ("speculative-num-steps", ("1", "2", "3"))
    assert [[round(speed) for speed in row] for row in told.tok_s] == [[50, 55], [58, 90], [61, 62]]
    assert "speculative-num-steps 2, NCCL_PROTO Simple: 90.0" in drawn(told).svg
    assert heat_map(attrs.evolve(swept, axes=AXES[:1])) is None


def test_a_sweep_on_real_servers(open_library) -> None:
    """Two points and the base, launched, measured, and the faster one found."""
    library = open_library()
    protocol = Protocol(restarts=1, runs=1, tokens=64, warmups=0, cool_down_s=5.0)

    result = sweep(library.host("sim"), "baseline", ["sim.tok_s=50,90"], protocol)

    assert result.best is not None
    assert result.best.values == {"sim.tok_s": "90"}
    assert len(result.comparison.trials) == 3
