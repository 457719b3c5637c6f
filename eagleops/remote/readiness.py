"""Asking a server, on its own machine, whether it is ready and which model it serves.

A probe may take long (SGLang's /health_generate waits at least 1 s and up to 20 s for a
token), so it runs in a thread of its own and never holds up who watches.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from eagleops.remote import listeners
from eagleops.remote.context import Context
from eagleops.remote.process_table import Stat
from eagleops.remote.server_record import Record
from eagleops.remote.server_tree import tree

# What has no port to ask counts as ready once it has lived this long.
ALIVE_S = 1.0
POLL_S = 0.02
MAX_BODY_BYTES = 4 * 1024 * 1024
NOT_FOUND = 404
OK = 200


class Answer(NamedTuple):
    """What a server said.

    Attributes:
        ready: Whether it is, going by its own word.
        detail: What it said, for people.
        models: The models that it says it serves where those are not the expected one.
    """

    ready: bool
    detail: str
    models: Optional[List[str]] = None


class Prober:
    """Asks in the background, one question at a time."""

    def __init__(self, readiness: Dict[str, Any]) -> None:
        self._readiness = readiness
        self._thread: Optional[threading.Thread] = None
        self._answer: Optional[Answer] = None

    @property
    def idle(self) -> bool:
        """Whether no question is open and no answer waits to be taken."""
        return self._thread is None

    def start(self, addresses: List[str]) -> None:
        """Asks the server at the first of ``addresses`` that accepts."""
        self._thread = threading.Thread(target=self._ask, args=(addresses,), daemon=True)
        self._thread.start()

    def take(self) -> Optional[Answer]:
        """The answer, once; None while it is awaited."""
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        return self._answer

    def _ask(self, addresses: List[str]) -> None:
        try:
            self._answer = ask(addresses, self._readiness)
        except (OSError, http.client.HTTPException) as error:
            self._answer = Answer(False, "no answer: {}".format(str(error) or type(error).__name__))


def ready_by_age(age_s: float) -> bool:
    """Whether a server without a port to ask counts as ready."""
    return age_s >= ALIVE_S


def ask(addresses: List[str], readiness: Dict[str, Any]) -> Answer:
    """Sends the probes, then the identity's question.

    Raises:
        OSError, http.client.HTTPException: if there is no answer.
    """
    port, limit_s = readiness["port"], readiness.get("timeout_s", 25.0)
    if not readiness["probes"]:
        return Answer(True, "")  # that it listens is all that is known of it
    address = _accepting(addresses, port)
    detail = "no path tells whether it is ready"
    for probe in readiness["probes"]:
        status, _ = _get(address, port, probe["path"], limit_s)
        detail = "{} answers {}".format(probe["path"], status)
        if status in probe["ok"]:
            break
        if status not in probe.get("missing_ok", ()):
            return Answer(False, detail)
    else:
        return Answer(False, detail)
    identity = readiness.get("identity")
    if not identity or identity.get("equals") is None:
        return Answer(True, "")
    return _identify(address, port, identity, limit_s)


def field_values(document: Any, field: str) -> List[str]:
    """The strings at a dotted path; ``*`` stands for every element of a list."""
    found = [document]
    for step in field.split("."):
        if step == "*":
            found = [item for value in found if isinstance(value, list) for item in value]
        else:
            found = [v[step] for v in found if isinstance(v, dict) and v.get(step) is not None]
    return [value for value in found if isinstance(value, str)]


def wait_for_probes(
    context: Context,
    records: Iterable[Record],
    processes: Dict[int, Stat],
    limit_s: float,
) -> List[Record]:
    """Those of ``records`` that say they are ready within ``limit_s``, asked all at once."""
    asked = []
    for record in records:
        addresses = own_addresses(record, processes)
        if addresses:
            prober = Prober(record.spec["readiness"])
            prober.start(addresses)
            asked.append((record, prober))
    deadline = time.monotonic() + min(limit_s, context.remaining_s())
    ready = []
    while asked and time.monotonic() < deadline:
        context.sleep(POLL_S)
        for record, prober in list(asked):
            answer = prober.take()
            if answer is not None:
                asked.remove((record, prober))
                if answer.ready and own_addresses(record, processes):
                    ready.append(record)
    return ready


def own_addresses(record: Record, processes: Dict[int, Stat]) -> List[str]:
    """Where to ask ``record``'s server; empty where it does not listen, or not alone."""
    readiness = record.spec.get("readiness")
    if readiness is None:
        return []
    found = listeners.on_port(readiness["port"], record.process["pid"])
    if listeners.strangers(found, tree(record, processes)):
        return []
    return listeners.reachable(found)


def _accepting(addresses: List[str], port: int) -> str:
    """The first address that a connection can be made to; the last one is taken on trust."""
    for address in addresses[:-1]:
        connection = http.client.HTTPConnection(address, port, timeout=1.0)
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.connect()
            return address
    return addresses[-1]


def _identify(address: str, port: int, identity: Dict[str, Any], limit_s: float) -> Answer:
    expected = _plain(identity["equals"])
    status = NOT_FOUND
    for path in identity["paths"]:
        status, body = _get(address, port, path, limit_s)
        if status == OK:
            models = field_values(_json(body), identity["field"])
            if models and expected not in map(_plain, models):
                return Answer(False, "{} names {}".format(path, ", ".join(models)), models)
            if models:
                return Answer(True, "")
    # A server with an API key keeps it to itself; who listens on the port is known anyway.
    return Answer(True, "it does not tell its model (status {})".format(status))


def _plain(model: str) -> str:
    return model.rstrip("/")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _get(address: str, port: int, path: str, limit_s: float) -> "tuple[int, bytes]":
    connection = http.client.HTTPConnection(address, port, timeout=limit_s)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, response.read(MAX_BODY_BYTES)
