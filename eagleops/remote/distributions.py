"""The packages that a Python finds: read from their metadata's files, nothing is imported."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional
from urllib.parse import unquote, urlsplit

METADATA_BYTES = 64 * 1024


class Distribution(NamedTuple):
    """One installed package.

    Attributes:
        name: Normalised as PEP 503 has it.
        metadata: Its .dist-info or .egg-info, a folder (of old, a file).
        site: The folder on ``sys.path`` that it was found in.
    """

    name: str
    version: Optional[str]
    metadata: str
    site: str


def find(path: Iterable[str]) -> Dict[str, Distribution]:
    """Every distribution by its name, as ``sys.path`` finds it: the first of a name wins."""
    found: Dict[str, Distribution] = {}
    for site in path:
        for distribution in _in_folder(site):
            found.setdefault(distribution.name, distribution)
    return found


def as_json(found: Dict[str, Distribution]) -> List[Dict[str, Any]]:
    """Names and versions, by name."""
    return [{"name": name, "version": found[name].version} for name in sorted(found)]


def normalised(name: str) -> str:
    """A project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_folder(site: str) -> Iterable[Distribution]:
    try:
        names = sorted(os.listdir(site))
    except OSError:  # zip files, and folders that are not there
        return
    for entry in names:
        stem, ending = os.path.splitext(entry)
        if ending not in {".dist-info", ".egg-info"}:
            continue
        metadata = os.path.join(site, entry)
        name, _, version = stem.partition("-")
        if ending == ".egg-info" and version:
            version = re.sub(r"-py\d[\d.]*\Z", "", version)
        if not version:  # a development install's folder is called by its name alone
            told = _read_names(metadata)
            name, version = told.get("name", name), told.get("version", "")
        yield Distribution(normalised(name), version or None, metadata, site)


def _read_names(metadata: str) -> Dict[str, str]:
    for inside in ("METADATA", "PKG-INFO", ""):
        text = read_text(os.path.join(metadata, inside) if inside else metadata, METADATA_BYTES)
        if text is not None:
            head = text.partition("\n\n")[0]
            pairs = (line.partition(":") for line in head.splitlines())
            return {key.strip().lower(): value.strip() for key, _, value in pairs if value.strip()}
    return {}


def read_text(path: str, limit: int) -> Optional[str]:
    """The first ``limit`` bytes of a file; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(limit)
    except OSError:
        return None


def source_folder(distribution: Distribution) -> Optional[str]:
    """Where an editable install's source is; None for one that was copied.

    PEP 610's direct_url.json tells it; an .egg-info with sources beside it is a development
    install of the older kind.
    """
    text = read_text(os.path.join(distribution.metadata, "direct_url.json"), METADATA_BYTES)
    if text is not None:
        try:
            told = json.loads(text)
            url = urlsplit(told["url"])
            if told.get("dir_info", {}).get("editable") and url.scheme == "file":
                return unquote(url.path)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
    if distribution.metadata.endswith(".egg-info"):
        for marker in ("setup.py", "pyproject.toml"):
            if os.path.exists(os.path.join(distribution.site, marker)):
                return distribution.site
    return None
