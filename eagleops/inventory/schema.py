"""hosts.schema.json: what an editor needs to complete and to check a hosts.yaml.

The file beside hosts.yaml in the package is made of this module; a test holds it current.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eagleops.engines import ENGINES
from eagleops.inventory.structure import FIELDS, missing_keys
from eagleops.inventory.suite_schema import definitions, nightly

FILE = "hosts.schema.json"
_Schema = dict[str, Any]

_TEXT: _Schema = {"type": "string", "minLength": 1}
_TEXTS: _Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$"
_HANDED_ON: _Schema = {"type": ["string", "number"]}
_SECRET: _Schema = {
    "type": "object",
    "properties": {"secret": {"type": "string", "pattern": "^(env|file|cmd):\\S"}},
    "required": ["secret"],
    "additionalProperties": False,
}
_ENV: _Schema = {
    "type": "object",
    "propertyNames": {"pattern": _VARIABLE},
    "additionalProperties": {"anyOf": [{"type": ["string", "number", "null"]}, _SECRET]},
}
_ARGS: _Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^-?[A-Za-z0-9][A-Za-z0-9_.+-]*$"},
    "additionalProperties": {
        "anyOf": [
            {"type": ["string", "number", "null", "object"]},
            {"const": True},
            {"type": "array", "items": {"type": ["string", "number", "object"]}},
        ]
    },
}
_SIM: _Schema = {
    "type": "object",
    "properties": {"gpus": {"type": "integer", "minimum": 1, "maximum": 32}, "directory": _TEXT},
    "additionalProperties": False,
}

_KEYS: Mapping[str, _Schema] = {
    "host": _TEXT,
    "profile": _TEXT,
    "transport": {"enum": ["ssh", "local", "sim"]},
    "address": _TEXT,
    "python": _TEXT,
    "host_keys": {"enum": ["strict", "accept-new"]},
    "known_hosts": _TEXTS,
    "identity_file": _TEXTS,
    "ssh_config": _TEXT,
    "via": _TEXT,
    "connect_timeout_s": {"type": "number", "exclusiveMinimum": 0},
    "idle_mib": {"type": "integer", "minimum": 0},
    "state_home": {"type": "string", "pattern": "^/"},
    "on": _TEXT,
    "kind": {"enum": ["pct", "docker", "lxc", "incus"]},
    "vmid": {"type": "integer", "minimum": 1},
    "name": _TEXT,
    "program": _TEXT,
    "abstract": {"type": "boolean"},
    "extends": _TEXTS,
    "engine": {"enum": list(ENGINES)},
    "model": _TEXT,
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "args": _ARGS,
    "env": _ENV,
    "env_file": _TEXTS,
    "values": {
        "type": "object",
        "propertyNames": {"pattern": _VARIABLE},
        "additionalProperties": {"type": ["string", "number", "null"]},
    },
    "inherit": _TEXTS,
    "command": {"type": "array", "items": _HANDED_ON},
    "cwd": {"type": "string", "pattern": "^/"},
    "gpus": {"type": "array", "items": {"type": "integer", "minimum": 0}},
    "sim": {"type": "object"},
}


def schema() -> _Schema:
    """The JSON Schema of hosts.yaml (draft 2020-12)."""
    kinds = {kind.__name__: kind for kind in FIELDS}
    section = {
        name: {
            "type": ["object", "null"],
            "propertyNames": {"pattern": _NAME},
            "additionalProperties": _entry(kinds[kind]),
        }
        for name, kind in (
            ("hosts", "HostEntry"),
            ("containers", "ContainerEntry"),
            ("profiles", "ProfileEntry"),
        )
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions(),
        "title": "eagleops: hosts, containers, groups, profiles and nightly checks",
        "type": "object",
        "required": ["hosts"],
        "additionalProperties": False,
        "properties": {
            "defaults": _entry(kinds["Defaults"]),
            **section,
            "groups": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "array", "items": _TEXT},
            },
            "ledger": _TEXT,
            "nightly": nightly(_TEXT, _SECRET, _NAME),
        },
    }


def _entry(kind: type) -> _Schema:
    properties = {
        key: _SIM if key == "sim" and kind.__name__ == "HostEntry" else _nullable(_KEYS[key])
        for key in FIELDS[kind]
    }
    entry: _Schema = {
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": False,
    }
    required = missing_keys(kind, {})
    return {**entry, "type": "object", "required": required} if required else entry


def _nullable(one: _Schema) -> _Schema:
    # null removes what is inherited, and is the same as silence elsewhere.
    return {"anyOf": [one, {"type": "null"}]}


def text() -> str:
    """As the file holds it."""
    return json.dumps(schema(), indent=1) + "\n"
