"""Named values, environment files and secrets by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagleops.engines import describe, engine
from eagleops.errors import InventoryError, ProfileError
from eagleops.inventory import parse
from eagleops.profile import Profile, SecretReference, filled
from eagleops.workflows.secrets import revealed, secret_values, with_values
from eagleops.workflows.show_profile import show_profile

HOSTS = "hosts: {sim: {transport: sim}}\nprofiles:\n"


def test_a_named_value_stands_for_itself_wherever_texts_are() -> None:
    """In the model, in flags, in variables and in JSON; inherited name by name."""
    inventory = parse(
        HOSTS + "  base: {abstract: true, values: {size: 8, models: /models}}\n"
        "  p:\n"
        "    extends: base\n"
        "    engine: sglang\n"
        "    model: ${models}/kimi\n"
        "    port: 8000\n"
        "    values: {size: 4}\n"
        '    env: {A: "x${size}", B: "$${size}"}\n'
        '    args: {tp-size: "${size}", json: {path: "${models}", n: 2}}\n'
    )

    profile = inventory.profile("p")

    assert profile.model == "/models/kimi"
    assert dict(profile.env) == {"A": "x4", "B": "${size}"}
    assert dict(profile.args) == {"tp-size": "4", "json": {"path": "/models", "n": 2}}


def test_a_name_without_a_value_is_an_error_of_the_inventory() -> None:
    """With file, line and key, as soon as the file is read."""
    with pytest.raises(InventoryError) as caught:
        parse(HOSTS + "  p:\n    engine: sglang\n    model: /m\n    args:\n      a: ${nope}\n")

    assert str(caught.value) == (
        "hosts.yaml:7: profiles.p.args.a: no value is named nope\n"
        "Write it under `values:`. There are none. A text that is meant so: $${nope}."
    )


@pytest.mark.parametrize("text", ["$(date)", "`date`", "${x!r}", "${x.y}", "{x}", "$x", "${}"])
def test_nothing_but_a_name_is_looked_at(text: str) -> None:
    """There is no code in a template: whatever is no name in ``${}`` stays as it is."""
    profile = Profile(name="p", engine="sglang", env={"A": text}, values={"x": "1"})

    assert filled(profile).env["A"] == text


def test_environment_files_come_under_what_the_profile_says(tmp_path: Path) -> None:
    """Comments, `export` and quotes are understood; findings name the file's own line."""
    (tmp_path / "prod.env").write_text("# both\nexport A=1\nB='x y'\nC=3 # no comment\n")
    text = HOSTS + "  p: {engine: sglang, model: /m, port: 1, env_file: prod.env, env: {B: mine}}\n"
    profile = parse(text, folder=tmp_path).profile("p")

    assert dict(profile.env) == {"A": "1", "B": "mine", "C": "3 # no comment"}
    assert profile.place("env.A") == f"{tmp_path}/prod.env:2: profiles.p.env.A"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "prod.env cannot be read: no such file or directory"),
        ("A = hush\n", "prod.env:1: expected NAME=VALUE, got the name 'A '\nNo blank stands"),
        ("A=1\nhush\n", "prod.env:2: expected NAME=VALUE, got a line without ="),
        ("A=1\nmy-hf=hush\n", "prod.env:2: expected NAME=VALUE, got the name 'my-hf'"),
    ],
)
def test_an_environment_file_that_sets_nothing_is_an_error(tmp_path, content, problem) -> None:
    """It names the profile's key, and the file's line; what stands there may be secret."""
    if content is not None:
        (tmp_path / "prod.env").write_text(content)

    with pytest.raises(InventoryError, match=r"profiles\.p\.env_file") as caught:
        parse(HOSTS + "  p: {engine: sglang, env_file: prod.env}\n", folder=tmp_path)

    assert problem in str(caught.value)
    assert "hush" not in str(caught.value)


def test_an_environment_file_at_nobodys_home_is_an_error() -> None:
    """It is no bug of eagleops that nobody has that name."""
    with pytest.raises(InventoryError) as caught:
        parse(HOSTS + "  p: {engine: sglang, env_file: ~no-such-user/prod.env}\n")

    assert str(caught.value) == (
        "hosts.yaml:3: profiles.p.env_file: ~no-such-user/prod.env cannot be read: nobody's home "
        "is named so here"
    )


def test_a_named_value_that_a_secret_is_made_of_is_one() -> None:
    """The server gets it; neither the profile's JSON nor its repr shows it, whatever its name."""
    inventory = parse(
        HOSTS + "  p:\n"
        "    engine: sglang\n"
        "    model: /m\n"
        "    port: 1\n"
        "    values: {mine: hush, other: hush, api_key: hush, plain: seen}\n"
        '    env: {HF_TOKEN: "${mine}", A: "${plain}"}\n'
        '    args: {api-key: "x${other}"}\n'
    )

    profile = inventory.profile("p")

    assert profile.env["HF_TOKEN"] == "hush"
    assert profile.args["api-key"] == "xhush"
    for shown in (str(profile.to_dict()), repr(profile), str(show_profile(inventory, "p").view())):
        assert "hush" not in shown
        assert "seen" in shown


def test_a_secret_is_a_reference_until_the_launch(tmp_path: Path, monkeypatch) -> None:
    """From a variable, a file or a command; nothing that shows a profile shows the value."""
    (tmp_path / "key").write_text("from-a-file\n")
    (tmp_path / "other").write_text("from-a-command\n")
    monkeypatch.setenv("MY_TOKEN", "from-a-variable")
    inventory = parse(
        HOSTS + "  p:\n"
        "    engine: sglang\n"
        "    model: /m\n"
        "    port: 8000\n"
        "    env:\n"
        "      HF_TOKEN: {secret: env:MY_TOKEN}\n"
        f"      A_KEY: {{secret: 'file:{tmp_path}/key'}}\n"
        "    args: {api-key: {secret: 'cmd:cat " + str(tmp_path / "other") + "'}}\n"
    )
    profile = inventory.profile("p")
    values = {"from-a-variable", "from-a-file", "from-a-command"}

    command = engine("sglang").command(profile, "py")
    shown = repr(profile) + str(profile.to_dict()) + describe(profile, "py") + str(command)
    assert not any(value in shown for value in values)
    assert profile.to_dict()["env"]["HF_TOKEN"] == {"secret": "env:MY_TOKEN"}
    assert revealed(profile.env) == {"HF_TOKEN": "from-a-variable", "A_KEY": "from-a-file"}
    assert revealed(command)[-3:] == ["from-a-command", "--port", "8000"]
    assert set(secret_values(profile)) == values
    assert with_values(profile).env["A_KEY"] == "from-a-file"


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("env:NOT_SET_ANYWHERE", "the variable is not set where eagleops runs"),
        ("file:/nowhere", "the file cannot be read: No such file or directory"),
        ("cmd:false", "the command ended with status 1"),
        ("cmd:/nowhere/at/all", "the command gave nothing: FileNotFoundError"),
        ("cmd:true", "it is empty"),
    ],
)
def test_a_secret_that_cannot_be_had_stops_the_launch(reference: str, problem: str) -> None:
    """The error names the reference and the reason."""
    with pytest.raises(ProfileError) as caught:
        revealed(SecretReference(reference))

    assert f"secret {reference}: {problem}" in str(caught.value)


def test_a_reference_that_names_no_place_is_an_error_of_the_inventory() -> None:
    """With the forms that there are."""
    with pytest.raises(InventoryError) as caught:
        parse(HOSTS + "  p:\n    engine: sglang\n    env:\n      A: {secret: vault}\n")

    assert "hosts.yaml:6: profiles.p.env.A: it says of no secret where its value is" in str(
        caught.value
    )
    assert "secret: file:PATH" in str(caught.value)
