"""What is a secret, and how it is left out: names with TOKEN, KEY, SECRET or PASSWORD in them.

Pure; the client imports it too. A name decides, the value never: except that what cannot be
a secret (empty, ``None``, true, false) and a count of tokens (``max_total_num_tokens=4096``)
stay readable, for engines have dozens of such names and a log without them is worthless.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Sequence

REDACTED = "<redacted>"

_MARKERS = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.IGNORECASE)
# Words of the trade and of Python that hold a marker and name no secret.
_HARMLESS = re.compile(
    r"(DE)?TOKENI[SZ]\w*|TOKENSPEED|TOKEN_MAP|TOKEN_IDS?|PER_TOKEN|KEYERROR|KEYBOARD\w*|KEYWORD\w*"
    r"|KEYFILE|MONKEY|KEY_?VALUE|KEY_?CACHE|PUBLIC_?KEYS?",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(none|null|true|false|yes|no|on|off)?\Z", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d{1,12}(\.\d+)?\Z")
_COUNT = re.compile(
    r"TOKENS|INTER_TOKEN|(NEW|CACHED|PENDING|OUTPUT|INPUT|PROMPT)_TOKEN\Z"
    r"|TOKEN_(USAGE|LATENCY|DISTRIBUTION|BUDGET|COUNT|LIMIT|NUM|RATIO|STEP)",
    re.IGNORECASE,
)

# name=value, name: value, "name": "value" and --name value, in running text. A name after
# "#" is a count ("#cached-token: 0"); a bare value ends at a blank or a quote.
_NAMED = r"[\w.-]*(?:{})[\w.-]*".format(_MARKERS.pattern)
# A quotation that a cut line leaves open is one too.
_QUOTED = (
    r"'(?:[^'\\]|\\.)*(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\\?\Z)"
    r"|\\\"(?:[^\\]|\\[^\"])*(?:\\\"|\\?\Z)"
)
_BARE = r"(?![(\[{])[^\s'\"\\]+?(?=[,;:)\]}]*(?:[\s'\"\\]|\Z))"
_ASSIGNED = re.compile(
    r"(?<![\w#.-])(?P<before>(?P<quote>\\?[\"']|)(?P<name>{0})(?P=quote)\s*[=:]\s*"
    r"|(?P<flag>--?{0})\s+(?!--))(?P<value>{1}|{2})".format(_NAMED, _QUOTED, _BARE),
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?i)\b(authorization\s*[=:]\s*[\"']?\s*)?(bearer|basic)\s+[\w.~+/=-]{6,}")
_URL_PASSWORD = re.compile(r"(\w+://[^\s/:@]*):[^\s/@]+@")


def is_secret(name: str, value: str = "?") -> bool:
    """Whether ``value`` must not be shown, going by its name.

    Args:
        name: A variable's, a flag's or a field's, for example ``HF_TOKEN`` or ``--api-key``.
        value: Lets what cannot be a secret through: see the module.
    """
    remaining = _HARMLESS.sub("", name.replace("-", "_"))
    found = {marker.upper() for marker in _MARKERS.findall(remaining)}
    if not found or _PLAIN.match(value):
        return False
    return not (found == {"TOKEN"} and _NUMBER.match(value) and _COUNT.search(remaining))


def value(name: str, content: str) -> str:
    """``content`` as it may be shown under ``name``."""
    return REDACTED if is_secret(name, content) else text(content)


def environment(variables: Mapping[str, str]) -> Dict[str, str]:
    """An environment with the values of secret names replaced."""
    return {name: value(name, content) for name, content in variables.items()}


def argv(arguments: Sequence[str]) -> List[str]:
    """A command with secret values replaced: ``--api-key X``, ``--api-key=X``, ``NAME=X``."""
    shown: List[str] = []
    awaited = ""
    for argument in arguments:
        if awaited and not argument.startswith("--"):
            shown.append(REDACTED if is_secret(awaited, argument) else text(argument))
            awaited = ""
            continue
        name, equals, content = argument.partition("=")
        awaited = argument if argument.startswith("-") and not equals else ""
        if equals and _is_name(name.lstrip("-")):
            shown.append(name + equals + value(name, content))
        else:
            shown.append(text(argument))
    return shown


def json_value(content: Any, name: str = "") -> Any:
    """A JSON value with the values of secret fields replaced, at any depth."""
    if isinstance(content, dict):
        return {key: json_value(item, str(key)) for key, item in content.items()}
    if isinstance(content, list):
        return [json_value(item, name) for item in content]
    if isinstance(content, str):
        return value(name, content)
    if isinstance(content, (int, float)) and not isinstance(content, bool):
        return REDACTED if is_secret(name, repr(content)) else content
    return content


def text(line: str) -> str:
    """Running text, for example a line of a log, with what reads like a secret replaced."""
    if _MARKERS.search(line):
        line = _without_values(line)
    if "://" in line:
        line = _URL_PASSWORD.sub(r"\1:" + REDACTED + "@", line)
    lower = line.lower()
    if "bearer" in lower or "basic" in lower:
        line = _BEARER.sub(lambda match: (match[1] or "") + match[2] + " " + REDACTED, line)
    return line


def _without_values(line: str) -> str:
    shown: List[str] = []
    done = 0
    match = _ASSIGNED.search(line)
    while match:
        content = match["value"]
        mark = _OPENING.match(content)
        width = mark.end() if mark else 0
        closed = width if len(content) >= 2 * width and content.endswith(content[:width]) else 0
        start, end = match.start("value") + width, match.end("value") - closed
        name = match["flag"] or match["name"]
        prose = name.lower() in _PROSE and match["before"].rstrip().endswith(name + ":")
        if is_secret(name, line[start:end]) and not prose:
            shown += [line[done:start], REDACTED]
            done = end
            match = _ASSIGNED.search(line, match.end())
        else:  # what it holds may itself be an assignment: --env HF_TOKEN=x
            match = _ASSIGNED.search(line, start)
    return "".join(shown) + line[done:]


_OPENING = re.compile(r"\\?[\"']")
# "missing key: lm_head.weight" names a tensor, not a secret.
_PROSE = {"key", "keys"}


def _is_name(candidate: str) -> bool:
    return re.match(r"[A-Za-z_][\w.-]*\Z", candidate) is not None
