"""hosts.schema.json is current, and takes what eagleops takes."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

from eagleops.inventory import schema, shipped

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")


def errors(text: str) -> list[str]:
    """What the schema says of a document."""
    validator = jsonschema.Draft202012Validator(schema.schema())
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


def test_the_shipped_schema_is_the_generated_one() -> None:
    """After a key has come or gone: write ``schema.text()`` into the file."""
    file = resources.files("eagleops") / schema.FILE

    assert file.read_text(encoding="utf-8") == schema.text()


@pytest.mark.parametrize("severity", ["off", "on", "warn", "{severity: off}", "null"])
def test_the_schema_takes_a_severity_as_yaml_reads_it(severity: str) -> None:
    """An unquoted off is false, and is meant."""
    assert errors(f"hosts: {{a: {{}}}}\nnightly: {{n: {{checks: {{disk: {severity}}}}}}}") == []


def test_the_schema_is_one_and_takes_the_shipped_inventory() -> None:
    """By the rules of its own draft."""
    jsonschema.Draft202012Validator.check_schema(schema.schema())

    assert errors(shipped().read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "profiles: {}",
        "hosts: {a: {adress: x}}",
        "hosts: {a: {transport: telnet}}",
        "hosts: {a: {}}\ncontainers: {c: {vmid: 1}}",
        "hosts: {a: {}}\nprofiles: {p: {port: 70000}}",
        "hosts: {a: {}}\nprofiles: {p: {engine: tensorrt}}",
        "hosts: {a: {}}\nprofiles: {p: {env: {A: {secret: vault}}}}",
        "hosts: {a: {}}\nprofiles: {p: {args: {x: false}}}",
        "hosts: {a: {}}\nprofile: {}",
        "hosts: {a: {}}\nnightly: {n: {host: a}}",
        "hosts: {a: {}}\nnightly: {n: {checks: {disc: warn}}}",
        "hosts: {a: {}}\nnightly: {n: {checks: {disk: wran}}}",
        "hosts: {a: {}}\nnightly: {n: {checks: {xid: {limit: 3}}}}",
        "hosts: {a: {}}\nnightly: {n: {checks: {speed: {limit: 101}}}}",
        "hosts: {a: {}}\nnightly: {n: {checks: {'disk:x': warn}}}",
        "hosts: {a: {}}\nnightly: {n: {profiles: [{pin: 3}]}}",
        "hosts: {a: {}}\nnightly: {n: {profiles: [{profile: p, pin: last}]}}",
        "hosts: {a: {}}\nnightly: {n: {commands: {c: {run: ls -l}}}}",
        "hosts: {a: {}}\nnightly: {n: {notify: [{url: x}]}}",
        "hosts: {a: {}}\nnightly: {n: {prometheus: a.txt}}",
        "hosts: {a: {}}\nnightly: {n: {measure: {tokens: 1}}}",
    ],
)
def test_the_schema_refuses_what_eagleops_refuses(wrong: str) -> None:
    """A wrong key, a wrong word, a number out of range."""
    assert errors(wrong) != []
