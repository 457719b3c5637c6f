"""A message to a webhook: sent until it is taken, within a limit, and without telling the URL.

A webhook's URL is its password: no log, exception or result holds more of it than the host.
"""

from __future__ import annotations

import json
import math
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import attrs

from eagleops._version import __version__
from eagleops.notify.attempt import Answer, attempt
from eagleops.phrases import counted

ATTEMPTS = 4
LIMIT_S = 90.0
ATTEMPT_LIMIT_S = 20.0
FIRST_PAUSE_S = 1.0
KEY_HEADER = "Idempotency-Key"


def _stripped(url: str) -> str:
    return url.strip()


def _frozen(headers: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(headers))


@attrs.frozen
class Webhook:
    """Where messages go.

    Attributes:
        url: http or https; a secret. Blanks around it are none of it.
        headers: Sent with each message; their values may be secrets.
    """

    url: str = attrs.field(repr=False, converter=_stripped)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, converter=_frozen)

    @property
    def where(self) -> str:
        """Its host, and its port where it is named: all of it that may be shown."""
        try:
            split = urlsplit(self.url)
            port = f":{split.port}" if split.port else ""
        except ValueError:
            return "a webhook"
        return f"{split.hostname}{port}" if split.hostname else "a webhook"


@attrs.frozen(kw_only=True)
class Delivery:
    """What became of one message. It holds neither the URL nor a header.

    Attributes:
        where: The webhook's host.
        ok: Whether it was taken: an answer with a status from 200 to 299 came.
        status: Of the last answer; None where none came.
        attempts: How often it was sent, at most.
        problem: Why it was not taken; empty if it was.
        key: The ``Idempotency-Key`` that it was sent with.
        took_s: All attempts and pauses.
    """

    where: str
    ok: bool
    status: int | None = None
    attempts: int = 0
    problem: str = ""
    key: str = ""
    took_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The delivery as JSON."""
        return attrs.asdict(self)


def deliver(
    webhook: Webhook,
    body: Mapping[str, Any],
    *,
    key: str = "",
    attempts: int = ATTEMPTS,
    limit_s: float = LIMIT_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery:
    """Sends a message by POST as JSON, again where that may help; never raises for the network.

    It is sent again after a connection that failed, an answer that did not come, a 429 and a
    5xx; then after the pause that ``Retry-After`` asks for, else after 1, 2, 4 seconds, less up
    to a half by chance. A 4xx is final. Where an answer is lost, the message may have been
    taken: each attempt bears the same key in the header ``Idempotency-Key``, by which a receiver
    can tell (IETF draft-ietf-httpapi-idempotency-key-header).

    Proxies (``HTTPS_PROXY``, ``NO_PROXY``) and ``REQUESTS_CA_BUNDLE`` of the environment are
    heeded, ``.netrc`` is not. TLS is always verified. A redirect is followed on the same host
    alone.

    Args:
        webhook: Where it goes.
        body: JSON; a number that JSON lacks (NaN, infinity) becomes null.
        key: The message's own name, the same whenever it is sent; without one, a new one.
        attempts: How often it is sent at most.
        limit_s: Of everything, pauses included, in seconds.
        sleep: Waits so many seconds.
    """
    began_s = time.monotonic()
    named = key or str(uuid.uuid4())
    data = json.dumps(_plain(body), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    ours = {
        "Content-Type": "application/json",
        "User-Agent": f"eagleops/{__version__}",
        KEY_HEADER: named,
    }
    theirs = {name.lower() for name in webhook.headers}
    headers = {n: v for n, v in ours.items() if n.lower() not in theirs} | dict(webhook.headers)
    answer, number = Answer(), 0
    while number < attempts:
        number += 1
        left_s = limit_s - (time.monotonic() - began_s)
        answer = attempt(webhook.url, data, headers, limit_s=min(ATTEMPT_LIMIT_S, left_s))
        pause_s = _pause_s(answer, number)
        left_s = limit_s - (time.monotonic() - began_s)
        if answer.ok or not answer.again or number == attempts or pause_s >= left_s:
            break
        sleep(pause_s)
    return Delivery(
        where=webhook.where,
        ok=answer.ok,
        status=answer.status,
        attempts=number,
        problem=_problem(answer, number, attempts),
        key=named,
        took_s=round(time.monotonic() - began_s, 3),
    )


def _pause_s(answer: Answer, number: int) -> float:
    """After the ``number``-th attempt."""
    if answer.retry_after_s is not None:
        return answer.retry_after_s
    # Many boxes that were refused in the same second must not come back in the same one.
    chance = secrets.randbelow(1024) / 1024
    return FIRST_PAUSE_S * 2.0 ** (number - 1) * (1 - chance / 2)


def _problem(answer: Answer, number: int, attempts: int) -> str:
    if answer.ok or not answer.again:
        return answer.problem
    times = counted(number, "attempt")
    if number == attempts:
        return f"{answer.problem}, after {times}"
    if answer.retry_after_s is not None:
        return f"{answer.problem}: it asks to wait {answer.retry_after_s:g} s, which is too long"
    return f"{answer.problem}, after {times}: no time is left"


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {str(name): _plain(item) for name, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [_plain(item) for item in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
