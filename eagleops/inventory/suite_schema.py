"""What hosts.schema.json says of the ``nightly:`` section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagleops.inventory.suite import (
    CheckEntry,
    CommandCheck,
    MeasureEntry,
    ProfileCheck,
    SuiteEntry,
    WebhookEntry,
)
from eagleops.inventory.suite_readers import SEVERITIES
from eagleops.inventory.suite_values import FEWEST_TOKENS, HIGHEST_PCT, HIGHEST_STATUS
from eagleops.measuring import prompts
from eagleops.nights.catalogue import DOCTOR_KIND, KINDS, CheckKind

_Schema = dict[str, Any]
# YAML reads an unquoted off as false, and on as true.
_SEVERITY: _Schema = {"enum": [*SEVERITIES, "on", False, True]}
_FIGURE: _Schema = {"type": "number"}
_SECONDS: _Schema = {"type": "number", "exclusiveMinimum": 0}
_HANDED_ON: _Schema = {"type": ["string", "number"]}


def nightly(text: _Schema, secret: _Schema, names: str) -> _Schema:
    """The section.

    Args:
        text: The schema of a text that is not empty.
        secret: Of a secret by reference.
        names: The pattern of an entry's name.
    """
    commands = {
        "type": ["object", "null"],
        "propertyNames": {"pattern": names},
        "additionalProperties": _command(text),
    }
    suite = _entry(
        SuiteEntry,
        {
            "hosts": {"anyOf": [text, {"type": "array", "items": text}]},
            "profiles": _profiles(text),
            "commands": commands,
            "checks": _checks(),
            "measure": _measure(),
            "busy": {"enum": ["skip", "wait", "force"]},
            "wait_limit_s": _SECONDS,
            "limit_s": _SECONDS,
            "ready_limit_s": _SECONDS,
            "restore": {"type": "boolean"},
            "resume_within_s": {"type": "number", "minimum": 0},
            "history_nights": {"type": "integer", "minimum": 1},
            "keep_nights": {"type": "integer", "minimum": 1},
            "reports": text,
            "prometheus": {"type": "string", "pattern": "\\.prom$"},
            "notify": {"type": "array", "items": _webhook(secret)},
            "schedule": text,
        },
    )
    return {
        "type": ["object", "null"],
        "propertyNames": {"pattern": names},
        "additionalProperties": suite,
    }


def _profiles(text: _Schema) -> _Schema:
    pin = {"type": ["integer", "string"], "pattern": "^([1-9][0-9]*|[0-9a-f]{8}.*)$"}
    profile = _entry(ProfileCheck, {"profile": text, "pin": pin}, ["profile"])
    return {"anyOf": [text, {"type": "array", "items": {"anyOf": [text, profile]}}]}


def _checks() -> _Schema:
    subjects = [kind for kind in KINDS.values() if kind.of == "profile" or kind.id == DOCTOR_KIND]
    return {
        "type": ["object", "null"],
        "properties": {kind.id: _check(kind) for kind in KINDS.values()},
        "patternProperties": {f"^{kind.id}:\\S": _check(kind) for kind in subjects},
        "additionalProperties": False,
    }


def _measure() -> _Schema:
    return _entry(
        MeasureEntry,
        {
            "runs": {"type": "integer", "minimum": 1},
            "tokens": {"type": "integer", "minimum": FEWEST_TOKENS},
            "warmups": {"type": "integer", "minimum": 0},
            "prompt": {"enum": list(prompts.NAMES)},
        },
    )


def _webhook(secret: _Schema) -> _Schema:
    header = {"anyOf": [_HANDED_ON, secret]}
    return _entry(
        WebhookEntry,
        {
            "url": {"anyOf": [{"type": "string", "pattern": "^https?://"}, secret]},
            "shape": {"enum": ["json", "slack"]},
            "headers": {"type": "object", "additionalProperties": header},
        },
        ["url"],
    )


def _command(text: _Schema) -> _Schema:
    return _entry(
        CommandCheck,
        {
            "run": {"type": "array", "minItems": 1, "items": _HANDED_ON},
            "exit_status": {"type": "integer", "minimum": 0, "maximum": HIGHEST_STATUS},
            "stdout": {"type": ["string", "number"], "minLength": 1},
            "number": text,
            "lowest": _FIGURE,
            "highest": _FIGURE,
            "unit": _HANDED_ON,
            "timeout_s": _SECONDS,
            "needs_idle_gpus": {"type": "boolean"},
            "severity": _SEVERITY,
        },
        ["run"],
    )


def _check(kind: CheckKind) -> _Schema:
    """What may be said of a kind; its sentence is what an editor shows."""
    limits = "check" if kind.limit is None else "limit_pct" if kind.unit == "%" else "limit"
    return {"description": kind.reads, "$ref": f"#/$defs/{limits}"}


def definitions() -> _Schema:
    """What the kinds of checks share."""
    lowest = {"type": "number", "minimum": 0}
    limits: Mapping[str, _Schema] = {
        "check": {},
        "limit": {"limit": lowest},
        "limit_pct": {"limit": {**lowest, "maximum": HIGHEST_PCT}},
    }
    return {
        name: {
            "anyOf": [
                _SEVERITY,
                _entry(CheckEntry, {"severity": _SEVERITY, **limit}),
                {"type": "null"},
            ]
        }
        for name, limit in limits.items()
    }


def _entry(
    kind: type, properties: Mapping[str, _Schema], required: list[str] | None = None
) -> _Schema:
    described = {
        key: {"anyOf": [one, {"type": "null"}]} if key not in (required or ()) else one
        for key, one in properties.items()
    }
    entry = {
        "title": kind.__name__,
        "type": "object" if required else ["object", "null"],
        "properties": described,
        "additionalProperties": False,
    }
    return {**entry, "required": required} if required else entry
