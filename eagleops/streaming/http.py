"""HTTP to one server over one kept connection, with streams heard chunk by chunk.

The only module that knows ``requests``. No proxy, password file or other setting of the
environment is heeded: a measurement goes where it says, and nowhere else.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import requests

from eagleops.errors import RequestFailed, UsageError
from eagleops.streaming.dialects import Dialect, Reader, StreamError
from eagleops.streaming.reply import Reply
from eagleops.streaming.sse import SseParser

CONNECT_LIMIT_S = 10.0
ANSWER_LIMIT_S = 30.0
STALL_LIMIT_S = 60.0
_READ_BYTES = 64 * 1024
_SHOWN = 300
_SERVER_ERROR, _UNAUTHORIZED = 400, 401
_SENDABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")


@attrs.frozen
class Answer:
    """A whole answer.

    Attributes:
        took_s: From sending the request to the last byte.
    """

    status: int
    body: bytes
    took_s: float

    @property
    def text(self) -> str:
        """Its body; what is no UTF-8 is replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Its body as JSON; None where it is none."""
        with contextlib.suppress(ValueError):
            return json.loads(self.body)
        return None


class HttpClient:
    """One server. Not for several threads. Close it.

    Args:
        url: ``http://host:port``.
        where: The server as messages name it.
        api_key: Sent as a bearer token; it stands in no message.

    Raises:
        UsageError: if the key cannot be sent.
    """

    def __init__(self, url: str, where: str, *, api_key: str | None = None) -> None:
        self._url = url
        self.where = where
        self._session = requests.Session()
        self._session.trust_env = False
        # A body that is compressed comes in other pieces than its tokens.
        self._session.headers.update({"Accept-Encoding": "identity"})
        if api_key:
            require_key(api_key)
            self._session.headers["Authorization"] = f"Bearer {api_key}"

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._session.close()

    def ask(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        method: str = "",
        limit_s: float = ANSWER_LIMIT_S,
    ) -> Answer:
        """One request and its whole answer, whatever its status.

        Args:
            path: With its leading slash.
            body: Sent as JSON, by POST; without one it is a GET.
            method: Another.
            limit_s: Of the wait for each part of the answer.

        Raises:
            RequestFailed: if no whole answer came.
        """
        verb = method or ("GET" if body is None else "POST")
        began_s = time.monotonic()
        with self._told(path):
            answer = self._session.request(
                verb,
                self._url + path,
                json=body,
                timeout=(CONNECT_LIMIT_S, limit_s),
                allow_redirects=False,
            )
        return Answer(answer.status_code, answer.content, time.monotonic() - began_s)

    def stream(
        self, dialect: Dialect, prompt: str, tokens: int, *, stall_s: float = STALL_LIMIT_S
    ) -> Iterator[Reader]:
        """Asks for one streamed reply; yields its reader after each piece that came.

        The last reader yielded has heard all of it.

        Args:
            dialect: How the server is asked.
            prompt: What.
            tokens: How many are wanted.
            stall_s: How long nothing may come.

        Raises:
            RequestFailed: if the server refused, told of an error, fell silent or broke off.
        """
        reader = dialect.reader()
        body = dialect.body(prompt, tokens)
        began_s = time.monotonic()
        try:
            with self._told(dialect.path, reader, tokens, stall_s):
                yield from self._heard(dialect.path, body, reader, began_s, stall_s)
        except StreamError as error:
            raise self._failed(dialect.path, f"the server says: {error}", reader, tokens) from error

    def whole(
        self, dialect: Dialect, prompt: str, tokens: int, *, stall_s: float = STALL_LIMIT_S
    ) -> Reply:
        """As :meth:`stream`, to its end.

        Raises:
            RequestFailed: likewise; and where no token came.
        """
        reader = dialect.reader()
        for heard in self.stream(dialect, prompt, tokens, stall_s=stall_s):
            reader = heard
        reply = reader.reply()
        if reply is None:
            raise self._failed(dialect.path, "the answer ended without a token", None, tokens)
        return reply

    def _heard(
        self, path: str, body: Mapping[str, Any], reader: Reader, began_s: float, stall_s: float
    ) -> Iterator[Reader]:
        limits = (CONNECT_LIMIT_S, stall_s)
        with self._session.post(
            self._url + path, json=body, stream=True, timeout=limits, allow_redirects=False
        ) as answer:
            if answer.status_code >= _SERVER_ERROR:
                raise self._refused(path, answer.status_code, answer.content)
            parser = SseParser()
            done = False
            for chunk in _chunks(answer):
                at_s = time.monotonic() - began_s
                for event in parser.feed(chunk):
                    done = done or event.is_done
                    if not done:
                        reader.take(event.data, at_s)
                yield reader
            reply = reader.reply()
            if not done and not (reply and reply.finish_reason):
                # Both engines send it; a stream that ends without either was cut.
                raise StreamError("the stream ended without [DONE] and without a reason")

    def _refused(self, path: str, status: int, body: bytes) -> RequestFailed:
        said = body.decode("utf-8", "replace").strip()[:_SHOWN]
        way_out = "The server's log says why: eagleops logs."
        if status == _UNAUTHORIZED:
            way_out = "It wants a key: give it in EAGLEOPS_API_KEY."
        return RequestFailed(
            problem=f"POST {path}: HTTP {status}{': ' + said if said else ''}",
            where=self.where,
            way_out=way_out,
            status=status,
        )

    @contextlib.contextmanager
    def _told(
        self, path: str, reader: Reader | None = None, tokens: int = 0, stall_s: float = 0.0
    ) -> Iterator[None]:
        """Errors of the libraries below as ours."""
        from urllib3.exceptions import HTTPError, ReadTimeoutError

        try:
            yield
        except (requests.exceptions.ConnectTimeout, requests.exceptions.ConnectionError) as error:
            if _timed_out(error):
                raise self._silent(path, reader, tokens, stall_s) from error
            how = "the connection broke" if reader and reader.tokens else "no connection"
            raise self._failed(path, f"{how}: {_cause(error)}", reader, tokens) from error
        except (requests.exceptions.Timeout, ReadTimeoutError, TimeoutError) as error:
            raise self._silent(path, reader, tokens, stall_s) from error
        except (requests.exceptions.RequestException, HTTPError, OSError) as error:
            what = f"the answer broke off: {_cause(error)}"
            raise self._failed(path, what, reader, tokens) from error

    def _silent(
        self, path: str, reader: Reader | None, tokens: int, stall_s: float
    ) -> RequestFailed:
        limit = f" for {stall_s:g} s" if stall_s else " in time"
        return self._failed(path, f"nothing came{limit}", reader, tokens)

    def _failed(self, path: str, what: str, reader: Reader | None, tokens: int) -> RequestFailed:
        came = f" after {reader.tokens} of {tokens} tokens" if reader and reader.tokens else ""
        return RequestFailed(
            problem=f"{path}: {what}{came}",
            where=self.where,
            way_out="Does it still run? eagleops status; its log: eagleops logs.",
        )


def require_key(api_key: str) -> None:
    """Makes sure that a header can hold the key: requests refuses another with its words in it.

    Raises:
        UsageError: if none can; without the key.
    """
    if not _SENDABLE.match(api_key):
        raise UsageError(
            problem="the server's API key cannot be sent: a blank or a line end stands at one of "
            "its ends, or a character in it is not ASCII",
            way_out="Look at what EAGLEOPS_API_KEY was made of: a file with Windows' line ends?",
        )


def _chunks(answer: requests.Response) -> Iterator[bytes]:
    """The body's pieces as they arrive, whether it is sent in chunks or until the end."""
    raw: Any = answer.raw
    if getattr(raw, "chunked", False):
        yield from raw.read_chunked(decode_content=False)
        return
    read = getattr(raw, "read1", None) or raw._fp.read1  # noqa: SLF001 - urllib3 before 2.1
    while chunk := read(_READ_BYTES):
        yield chunk


def _timed_out(error: BaseException) -> bool:
    return "Read timed out" in str(error)


def _cause(error: BaseException) -> str:
    """The innermost words of an error that wraps others."""
    inner: BaseException = error
    while True:
        below = inner.__cause__ or inner.__context__ or getattr(inner, "reason", None)
        if not isinstance(below, BaseException) or below is inner:
            break
        inner = below
    return f"{inner.strerror or inner}" if isinstance(inner, OSError) else str(inner)[:_SHOWN]
