"""One attempt to hand a message over: one POST, and what came of it in words without secrets."""

from __future__ import annotations

import contextlib
import os
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import attrs

from eagleops.notify.unlogged import unlogged

CONNECT_LIMIT_S = 10.0
# What is kept of an answer: Slack's are one word, such as invalid_payload.
_ANSWER_BYTES = 512
_WORD = re.compile(r"[a-z]+(_[a-z]+)*")
_LONGEST_WORD = 40
_HOPS = 3
# The others make a GET of a POST: the message would be lost on the way.
_REDIRECTS = {307, 308}
_OK, _REDIRECTED, _REFUSED = range(200, 300), range(300, 400), range(400, 500)
_TOO_MANY = 429
_PORTS = {"http": 80, "https": 443}
_NO_URL = "its URL does not begin with https:// or http:// and a host"


@attrs.frozen(kw_only=True)
class Answer:
    """What came of one attempt.

    Attributes:
        status: None where no answer came.
        problem: In words; empty if the message was taken.
        again: Whether another attempt may help.
        retry_after_s: The pause that the server asks for; None where it does not.
    """

    status: int | None = None
    problem: str = ""
    again: bool = False
    retry_after_s: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the message was taken."""
        return self.status in _OK


def attempt(url: str, data: bytes, headers: Mapping[str, str], *, limit_s: float) -> Answer:
    """Sends ``data`` once. Nothing is raised, and no text holds more of the URL than its host.

    Args:
        url: A secret.
        data: The body.
        headers: Sent with it.
        limit_s: Of all of it, in seconds: the name's look-up and a server that answers a byte
            at a time are bounded by it, which no timeout of a socket does.
    """
    came: list[Answer] = []

    def work() -> None:
        with unlogged():
            came.append(_answered(url, data, headers, limit_s))

    worker = threading.Thread(target=work, name="eagleops-webhook", daemon=True)
    worker.start()
    worker.join(max(limit_s, 0.0))
    return came[0] if came else _silence(limit_s)


def retry_after_s(header: str, date: str = "", *, now: datetime | None = None) -> float | None:
    """The pause that a ``Retry-After`` asks for: seconds, or a date (RFC 9110, section 10.2.3).

    Args:
        header: Its value.
        date: The same answer's ``Date``: the server's clock, which need not be ours.
        now: Our clock, where that is missing.
    """
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    until = _date(text)
    if until is None:
        return None
    since = _date(date) or now or datetime.now(timezone.utc)
    return max(0.0, (until - since).total_seconds())


def _answered(url: str, data: bytes, headers: Mapping[str, str], limit_s: float) -> Answer:
    from requests import RequestException
    from urllib3.exceptions import HTTPError

    try:
        return _sent(url, data, headers, limit_s)
    except (RequestException, HTTPError, OSError, ValueError) as error:
        return _failed(error)
    except Exception as error:  # noqa: BLE001 - its text may hold the URL, and its trace the secret
        return Answer(problem=f"it could not be sent: {type(error).__name__}")


def _sent(url: str, data: bytes, headers: Mapping[str, str], limit_s: float) -> Answer:
    for _ in range(_HOPS + 1):
        with _post(url, data, headers, limit_s) as reply:
            there = _redirected(url, reply)
            if there is None:
                return _judged(url, reply)
            url = there
    return Answer(problem="it redirects in a circle")


@contextlib.contextmanager
def _post(url: str, data: bytes, headers: Mapping[str, str], limit_s: float) -> Iterator[Any]:
    """Past the session of requests: it would read .netrc, and a redirect's page."""
    import requests
    from requests.adapters import HTTPAdapter
    from requests.utils import get_environ_proxies

    told = {"Accept": "*/*", "Accept-Encoding": "identity", **headers}
    with contextlib.closing(HTTPAdapter()) as adapter:
        reply = adapter.send(
            requests.Request("POST", url, headers=told, data=data).prepare(),
            stream=True,
            timeout=(min(CONNECT_LIMIT_S, limit_s), limit_s),
            proxies=get_environ_proxies(url),
            verify=os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or True,
        )
        with reply:
            yield reply


def _redirected(url: str, reply: Any) -> str | None:
    """Where the same message may be sent instead; None where nowhere."""
    if reply.status_code not in _REDIRECTS:
        return None
    there = _location(url, reply)
    return there.geturl() if there and _same_place(urlsplit(url), there) else None


def _location(url: str, reply: Any) -> SplitResult | None:
    """Where a redirect leads; None where that cannot be read."""
    try:
        there = urlsplit(urljoin(url, str(reply.headers.get("Location", ""))))
        _ = there.port
    except ValueError:
        return None
    return there


def _same_place(here: SplitResult, there: SplitResult) -> bool:
    """Whether both are one server, or the second is the first by TLS."""

    def port(one: SplitResult) -> int | None:
        return one.port or _PORTS.get(one.scheme)

    same = (here.scheme, port(here)) == (there.scheme, port(there))
    upgraded = (port(here), there.scheme, port(there)) == (80, "https", 443)
    return here.hostname == there.hostname and (same or upgraded)


def _judged(url: str, reply: Any) -> Answer:
    status: int = reply.status_code
    if status in _OK:
        return Answer(status=status)
    if status in _REDIRECTED:
        there = _location(url, reply)
        place = (there and there.hostname) or "nowhere"
        what = f"HTTP {status}: it redirects to {place}, and the message was not sent there"
        return Answer(status=status, problem=what)
    said = _word(url, reply)
    return Answer(
        status=status,
        problem=f"HTTP {status}{': ' + said if said else ''}",
        again=status == _TOO_MANY or status not in _REFUSED,
        retry_after_s=retry_after_s(
            reply.headers.get("Retry-After", ""), reply.headers.get("Date", "")
        ),
    )


def _word(url: str, reply: Any) -> str:
    """What the server says, where that is one word of its own: a page may repeat the URL."""
    from urllib3.exceptions import HTTPError

    try:
        text = reply.raw.read(_ANSWER_BYTES).decode("ascii").strip()
    except (HTTPError, OSError, ValueError):
        return ""
    mine = len(text) <= _LONGEST_WORD and _WORD.fullmatch(text) and text not in url.lower()
    return text if mine else ""


def _failed(error: Exception) -> Answer:
    """An error of the libraries below, by its kind: their texts hold the URL."""
    from requests import exceptions

    if isinstance(error, exceptions.SSLError):
        return _untrusted(error)
    if isinstance(error, OSError) and "CA certificate bundle" in str(error):
        return Answer(problem="REQUESTS_CA_BUNDLE names no file of certificates")
    # The first that fits: some are kinds of others.
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, bool], ...] = (
        (exceptions.InvalidHeader, "one of its headers holds a line break or a blank", False),
        (exceptions.InvalidProxyURL, "the proxy that is set here has no valid URL", False),
        ((exceptions.InvalidURL, exceptions.MissingSchema), _NO_URL, False),
        (exceptions.InvalidSchema, "the SOCKS proxy that is set here needs PySocks", False),
        (exceptions.ProxyError, "the proxy that is set here: {cause}", True),
        (exceptions.ConnectTimeout, "no connection came about in time", True),
        (exceptions.Timeout, "no answer came in time: it may have been taken", True),
        (exceptions.ConnectionError, "no answer: {cause}", True),
        (exceptions.RequestException, "the answer broke off: {cause}", True),
        (UnicodeError, "one of its headers holds what no header can", False),
    )
    for kind, words, again in kinds:
        if isinstance(error, kind):
            return Answer(problem=words.format(cause=_cause(error)), again=again)
    return Answer(problem=f"it could not be sent: {_cause(error)}")


def _untrusted(error: Exception) -> Answer:
    refused = next((e for e in _inner(error) if isinstance(e, ssl.SSLCertVerificationError)), None)
    if refused is None:
        return Answer(problem=f"TLS failed: {_cause(error)}", again=True)
    why = refused.verify_message.rstrip(".")
    return Answer(problem=f"its certificate is not trusted: {why}")


def _cause(error: Exception) -> str:
    """The innermost system error in the system's own words; else the name of its kind."""
    for inner in reversed(list(_inner(error))):
        if isinstance(inner, OSError) and inner.strerror and not isinstance(inner, ssl.SSLError):
            return inner.strerror.lower()
    return type(list(_inner(error))[-1]).__name__


def _inner(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        reason = getattr(at, "reason", None)
        wrapped = reason if isinstance(reason, BaseException) else None
        at = wrapped or at.__cause__ or at.__context__


def _silence(limit_s: float) -> Answer:
    return Answer(
        problem=f"no answer came within {max(limit_s, 0.0):.0f} s: it may have been taken",
        again=True,
    )


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
