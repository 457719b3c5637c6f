"""Inheritance: what comes later wins, null removes, and each value knows where it is from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.errors import ProfileError
from eagleops.profile import Profile, ProfileEntry, lineage, resolve


def entries(**profiles) -> dict[str, ProfileEntry]:
    """Profiles by name."""
    return {name: ProfileEntry(name=name, **values) for name, values in profiles.items()}


def test_mappings_are_put_together_name_by_name() -> None:
    """A child adds to its parent's env, args and sim, and replaces what it names again."""
    known = entries(
        base={"engine": "sglang", "env": {"A": 1, "B": 2}, "args": {"x": 1}, "sim": {"tok_s": 80}},
        child={"extends": "base", "env": {"B": 3}, "args": {"y": 2}, "sim": {"cycle_ms": 30}},
    )

    profile = resolve("child", known)

    assert profile.env == {"A": "1", "B": "3"}
    assert profile.args == {"x": "1", "y": "2"}
    assert profile.sim == {"tok_s": 80, "cycle_ms": 30}
    assert profile.engine == "sglang"


def test_everything_else_is_replaced_whole() -> None:
    """A child's list is not added to its parent's."""
    known = entries(
        base={"inherit": ["A"], "gpus": [0, 1], "command": ["a", "b"], "cwd": "/a"},
        child={"extends": "base", "inherit": ["B"], "gpus": [2], "command": ["c"]},
    )

    profile = resolve("child", known)

    assert (profile.inherit, profile.gpus, profile.command) == (("B",), (2,), ("c",))
    assert profile.cwd == "/a"


def test_null_removes_a_name_or_a_whole_field() -> None:
    """A removed variable is remembered, so that eagleops does not add it either."""
    known = entries(
        base={"engine": "sglang", "port": 8000, "env": {"A": 1}, "args": {"x": True, "y": 1}},
        child={"extends": "base", "env": {"A": None, "SPT_NOENV": None}, "args": {"x": None}},
        bare={"extends": "base", "removed": frozenset({"port", "args", "env"})},
    )

    child, bare = resolve("child", known), resolve("bare", known)

    assert (child.env, child.args) == ({}, {"y": "1"})
    assert child.unset == {"A", "SPT_NOENV"}
    assert (bare.port, bare.args, bare.env, bare.engine) == (None, {}, {}, "sglang")


def test_a_variable_that_is_set_again_is_no_longer_removed() -> None:
    """A grandchild may give what its parent took away."""
    known = entries(
        base={"env": {"A": 1}},
        child={"extends": "base", "env": {"A": None}},
        grandchild={"extends": "child", "env": {"A": 2}},
    )

    profile = resolve("grandchild", known)

    assert (profile.env, profile.unset) == ({"A": "2"}, frozenset())


def test_a_flag_that_is_given_anew_keeps_its_place() -> None:
    """A child changes a command as little as it says."""
    known = entries(
        base={"args": {"a": 1, "b": 2, "c": 3}},
        child={"extends": "base", "args": {"d": 4, "b": 9}},
    )

    assert list(resolve("child", known).args.items()) == [
        ("a", "1"),
        ("b", "9"),
        ("c", "3"),
        ("d", "4"),
    ]


def test_of_two_parents_the_later_one_wins() -> None:
    """The last word of `extends` is the strongest."""
    known = entries(
        a={"env": {"X": "a", "Y": "a"}}, b={"env": {"X": "b"}}, c={"extends": ["a", "b"]}
    )

    assert resolve("c", known).env == {"X": "b", "Y": "a"}


def test_what_one_parent_changes_of_a_common_ancestor_holds() -> None:
    """The other parent does not bring the ancestor's value back."""
    known = entries(
        base={"env": {"X": "base"}},
        a={"extends": "base", "env": {"X": "a"}},
        b={"extends": "base", "env": {"Y": "b"}},
        c={"extends": ["a", "b"]},
    )

    assert lineage("c", known) == ("base", "a", "b", "c")
    assert resolve("c", known).env == {"X": "a", "Y": "b"}


def test_each_value_names_the_profile_it_came_from() -> None:
    """Sources follow overriding and removal."""
    known = entries(
        base={"engine": "sglang", "port": 1, "env": {"A": 1, "B": 1}, "args": {"x": 1}},
        child={"extends": "base", "env": {"A": 2, "B": None}, "removed": frozenset({"port"})},
    )

    assert resolve("child", known).sources == {
        "engine": "base",
        "env.A": "child",
        "args.x": "base",
    }


def test_a_profile_is_not_abstract_because_its_parent_is() -> None:
    """What is said of a profile itself is not inherited: name, origin, abstract."""
    known = entries(
        base={"abstract": True, "origin": "hosts.yaml:3"},
        child={"extends": "base", "origin": "hosts.yaml:5"},
    )

    profile = resolve("child", known)

    assert (profile.name, profile.origin) == ("child", "hosts.yaml:5")
    assert profile.where == "hosts.yaml:5: profiles.child"


def test_profiles_that_extend_one_another_are_an_error() -> None:
    """The circle is shown."""
    known = entries(a={"extends": "b"}, b={"extends": "c"}, c={"extends": "b"})

    with pytest.raises(ProfileError) as caught:
        resolve("a", known)

    assert str(caught.value) == ("profiles.b: profiles extend one another in a circle: b -> c -> b")


def test_an_unknown_parent_is_an_error() -> None:
    """It is told where it is named."""
    with pytest.raises(ProfileError) as caught:
        resolve("a", entries(a={"extends": "b"}))

    assert str(caught.value) == "profiles.a.extends: there is no profile b"


def test_with_makes_a_new_profile_as_a_child_would() -> None:
    """Mappings are merged, None removes, and what changed names the new profile."""
    base = Profile(
        name="base", engine="sglang", port=8000, args={"tp-size": 8, "x": True}, env={"A": "1"}
    )

    changed = base.with_(name="new", port=8001, args={"x": None, "tp-size": 4}, env={"B": 2})

    assert (changed.name, changed.port, changed.args) == ("new", 8001, {"tp-size": "4"})
    assert changed.env == {"A": "1", "B": "2"}
    assert changed.sources["args.tp-size"] == "new"
    assert base.args == {"tp-size": "8", "x": True}
    assert base.with_(port=None).port is None


def test_with_refuses_what_no_profile_has() -> None:
    """The error names the profile and what it may hold."""
    profile = Profile(name="base", origin="hosts.yaml:7")

    with pytest.raises(ProfileError) as unknown:
        profile.with_(arg={"tp-size": 8})
    with pytest.raises(ProfileError) as wrong:
        profile.with_(env={"A": True})

    assert str(unknown.value) == (
        "hosts.yaml:7: profiles.base: a profile has no arg\nIt has args, command, cwd, engine, "
        "env, gpus, inherit, model, port, python, sim, values."
    )
    assert str(wrong.value).startswith(
        "hosts.yaml:7: profiles.base.env.A: expected a text or a number, got True"
    )


NAMES = "abcdef"


@st.composite
def graphs(draw) -> dict[str, ProfileEntry]:
    """Profiles that extend earlier ones: no circle, any diamond."""
    known: dict[str, ProfileEntry] = {}
    for name in NAMES:
        parents = draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if known else []
        values = st.none() | st.integers(0, 9).map(str)
        env = draw(st.dictionaries(st.sampled_from("XYZ"), values))
        known[name] = ProfileEntry(name=name, extends=tuple(parents), env=env)
    return known


@given(graphs())
def test_any_graph_of_parents_resolves_with_ancestors_first(known) -> None:
    """Each ancestor stands once, before all that extend it; the last to speak is heard."""
    for name in NAMES:
        order = lineage(name, known)
        assert order[-1] == name
        assert len(set(order)) == len(order)
        for member in order:
            for parent in known[member].extends:
                assert order.index(parent) < order.index(member)

        profile = resolve(name, known)
        for variable in "XYZ":
            said = [known[m].env[variable] for m in order if variable in known[m].env]
            last = said[-1] if said else None
            assert profile.env.get(variable) == last
            assert (variable in profile.unset) == (bool(said) and last is None)
            assert (f"env.{variable}" in profile.sources) == (last is not None)


def outcome(name: str, known: dict[str, ProfileEntry]) -> str:
    """The name of what was resolved, or what is wrong."""
    try:
        return resolve(name, known).name
    except ProfileError as error:
        return error.problem


@given(st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3)))
def test_any_graph_at_all_resolves_or_says_why_not(graph) -> None:
    """Circles and unknown names end in a ProfileError, never in a hang or another error."""
    known = {n: ProfileEntry(name=n, extends=tuple(parents)) for n, parents in graph.items()}

    for name in graph:
        told = outcome(name, known)
        assert told == name or "in a circle" in told or told.startswith("there is no profile")


def test_a_profiles_name_is_never_a_secrets_value() -> None:
    """A flag whose name reads like a secret's leaves its profile's name readable in a record."""
    from eagleops.ledger.redaction import without_secrets

    known = {"a-long-name": {"engine": "sglang", "args": {"api-key": "k" * 12, "tp-size": "8"}}}
    entries = {name: ProfileEntry(name=name, **fields) for name, fields in known.items()}

    recorded = without_secrets({"profile": resolve("a-long-name", entries).to_dict()})

    assert recorded["profile"]["name"] == "a-long-name"
    assert "k" * 12 not in str(recorded)
