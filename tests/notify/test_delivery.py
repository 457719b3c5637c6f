"""A message is handed over once, or it is said why not: receivers that misbehave, on loopback."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.notify.attempt import retry_after_s
from eagleops.notify.webhook import Webhook, deliver
from parts.receiver import PATH, Reply

BODY = {"text": "box-a: speed fell by 7 %", "nights": [1, 2]}


class Pauses:
    """Notes the pauses instead of making them."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def __call__(self, pause_s: float) -> None:
        self.taken.append(pause_s)


@pytest.fixture
def pauses() -> Pauses:
    """What is slept, without sleeping."""
    return Pauses()


def test_a_message_is_taken_at_the_first_attempt(receive, pauses) -> None:
    """The receiver gets the JSON once, with its type, our name and the key."""
    receiver = receive()

    done = deliver(Webhook(receiver.url(), {"X-Team": "gpu"}), BODY, key="night-1", sleep=pauses)

    (request,) = receiver.requests
    told = {name: request.headers[name] for name in ("Content-Type", "Idempotency-Key", "X-Team")}
    assert (done.ok, done.status, done.attempts, done.problem) == (True, 200, 1, "")
    assert json.loads(request.body) == BODY
    assert request.path == PATH
    assert told == {
        "Content-Type": "application/json",
        "Idempotency-Key": "night-1",
        "X-Team": "gpu",
    }
    assert request.headers["User-Agent"].startswith("eagleops/")
    assert pauses.taken == []


def test_a_header_of_the_webhook_comes_over_ours(receive) -> None:
    """Whoever names a content type means it, in whatever letters."""
    receiver = receive()

    deliver(Webhook(receiver.url(), {"content-type": "application/vnd.x+json"}), BODY)

    names = [name.lower() for name in receiver.requests[0].headers]
    assert names.count("content-type") == 1
    assert receiver.requests[0].headers["content-type"] == "application/vnd.x+json"


def test_any_success_is_a_success(receive) -> None:
    """201, 202 and 204 take the message as well as 200 does."""
    receiver = receive(Reply(201), Reply(202), Reply(204, body=b""))

    assert [deliver(Webhook(receiver.url()), BODY).status for _ in range(3)] == [201, 202, 204]


def test_a_server_error_is_tried_again(receive, pauses) -> None:
    """500 twice, then 200: one key through all attempts, pauses that grow and vary by chance."""
    receiver = receive(Reply(500), Reply(503))

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    keys = {request.headers["Idempotency-Key"] for request in receiver.requests}
    first, second = pauses.taken
    assert (done.ok, done.attempts) == (True, 3)
    assert keys == {done.key}
    assert str(uuid.UUID(done.key)) == done.key
    assert 0.5 <= first <= 1.0 <= second <= 2.0


def test_a_server_that_stays_broken_is_given_up(receive, pauses) -> None:
    """After four attempts it is said what came and how often."""
    receiver = receive(*[Reply(502)] * 9)

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    assert (done.ok, done.status, done.attempts) == (False, 502, 4)
    assert done.problem == "HTTP 502, after 4 attempts"
    assert len(receiver.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413])
def test_a_refusal_is_final(receive, pauses, status: int) -> None:
    """What the receiver refuses once, it refuses again."""
    receiver = receive(Reply(status, body=b"<html>no</html>"))

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    assert (done.ok, done.status, done.problem) == (False, status, f"HTTP {status}")
    assert len(receiver.requests) == 1


def test_slacks_own_word_is_told(receive) -> None:
    """Slack says in one word what is wrong; that word is the way out."""
    receiver = receive(Reply(404, body=b"no_service\n"))

    assert deliver(Webhook(receiver.url()), BODY).problem == "HTTP 404: no_service"


def test_too_many_requests_wait_as_long_as_they_are_told(receive, pauses) -> None:
    """429 with Retry-After in seconds."""
    receiver = receive(Reply(429, {"Retry-After": "7"}))

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    assert (done.ok, done.attempts, pauses.taken) == (True, 2, [7.0])


def test_too_many_requests_wait_until_the_date_they_are_told(receive, pauses) -> None:
    """429 with an HTTP date, by the server's clock, which is a day behind ours."""
    theirs = datetime.now(timezone.utc) - timedelta(days=1)
    later = format_datetime(theirs + timedelta(seconds=11), usegmt=True)
    date = format_datetime(theirs, usegmt=True)
    receiver = receive(Reply(429, {"Retry-After": later, "Date": date}))

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    assert (done.ok, pauses.taken) == (True, [11.0])


def test_a_pause_longer_than_the_limit_is_not_made(receive, pauses) -> None:
    """A server that asks for an hour gets no second attempt, and it is said why."""
    receiver = receive(Reply(429, {"Retry-After": "3600"}))

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    assert (done.ok, done.attempts, pauses.taken) == (False, 1, [])
    assert done.problem == "HTTP 429: it asks to wait 3600 s, which is too long"


def test_a_connection_that_is_refused_is_tried_again(closed_port: int, pauses) -> None:
    """Nobody listens: four attempts, and the system's own words."""
    done = deliver(Webhook(f"http://127.0.0.1:{closed_port}{PATH}"), BODY, sleep=pauses)

    assert (done.ok, done.status, done.attempts) == (False, None, 4)
    assert done.problem == "no answer: connection refused, after 4 attempts"
    assert done.where == f"127.0.0.1:{closed_port}"


def test_a_connection_that_closes_without_an_answer_is_tried_again(receive, pauses) -> None:
    """The message may have been taken: the second one bears the same key."""
    receiver = receive(Reply(how="close"))

    done = deliver(Webhook(receiver.url()), BODY, sleep=pauses)

    first, second = receiver.requests
    assert (done.ok, done.attempts) == (True, 2)
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


def test_an_answer_that_breaks_off_after_its_status_was_one(receive) -> None:
    """200 says that the message was taken, whatever becomes of the page that follows."""
    receiver = receive(Reply(how="cut"))

    done = deliver(Webhook(receiver.url()), BODY)

    assert (done.ok, done.attempts, len(receiver.requests)) == (True, 1, 1)


def test_a_refusal_that_breaks_off_is_a_refusal(receive) -> None:
    """404 and half a page: final, without the half page."""
    receiver = receive(Reply(404, body=b"no_serv", how="cut"))

    done = deliver(Webhook(receiver.url()), BODY)

    assert (done.status, done.attempts) == (404, 1)


@pytest.mark.parametrize("how", ["hang", "drip"])
def test_a_server_that_never_answers_is_bounded(receive, how: str) -> None:
    """Silence, and a byte now and then, end with the limit of the whole delivery."""
    receiver = receive(*[Reply(how=how)] * 9)
    began_s = time.monotonic()

    done = deliver(Webhook(receiver.url()), BODY, limit_s=0.6)

    assert (done.ok, done.status) == (False, None)
    assert "it may have been taken" in done.problem
    assert time.monotonic() - began_s < 25


def test_a_name_that_cannot_be_looked_up_in_time_is_bounded(monkeypatch) -> None:
    """A resolver that hangs knows no timeout of a socket; the limit holds all the same."""
    release = threading.Event()

    def hang(*_: object, **__: object) -> None:
        release.wait(30)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    done = deliver(Webhook(f"https://hooks.example.com{PATH}"), BODY, limit_s=0.3)
    release.set()

    assert (done.ok, done.attempts, done.where) == (False, 1, "hooks.example.com")


def test_a_name_that_is_not_there_is_said(monkeypatch, pauses) -> None:
    """The resolver's own words."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    done = deliver(Webhook(f"https://hooks.example.com{PATH}"), BODY, sleep=pauses)

    assert done.problem == "no answer: name or service not known, after 4 attempts"


def test_a_redirect_to_another_host_is_not_followed(receive) -> None:
    """The message, its headers and the key stay here; the other host is named."""
    other = receive()
    receiver = receive(Reply(307, {"Location": other.url("/login", host="localhost")}))

    done = deliver(Webhook(receiver.url(), {"Authorization": "Bearer abc"}), BODY)

    assert done.problem == (
        "HTTP 307: it redirects to localhost, and the message was not sent there"
    )
    assert (done.ok, done.attempts, other.requests) == (False, 1, [])


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_on_the_same_host_is_followed(receive, status: int) -> None:
    """The same message goes to the new path."""
    receiver = receive(Reply(status, {"Location": "/new/place"}))

    done = deliver(Webhook(receiver.url()), BODY)

    assert done.ok
    assert [request.path for request in receiver.requests] == [PATH, "/new/place"]
    assert json.loads(receiver.requests[1].body) == BODY


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_would_lose_the_message_is_not_followed(receive, status: int) -> None:
    """These make a GET of a POST: an answer of 200 would look like a success."""
    receiver = receive(Reply(status, {"Location": "/login"}))

    done = deliver(Webhook(receiver.url()), BODY)

    assert (done.ok, len(receiver.requests)) == (False, 1)


def test_a_redirect_in_a_circle_ends(receive) -> None:
    """A few hops, then it is said."""
    receiver = receive(*[Reply(307, {"Location": "/again"})] * 20)

    done = deliver(Webhook(receiver.url()), BODY)

    assert done.problem == "it redirects in a circle"


def test_a_redirect_that_cannot_be_read_is_a_failure(receive) -> None:
    """A Location that is no URL leads nowhere."""
    receiver = receive(Reply(308, {"Location": "http://[::1"}))

    problem = deliver(Webhook(receiver.url()), BODY).problem
    assert problem == "HTTP 308: it redirects to nowhere, and the message was not sent there"


def test_a_certificate_that_nobody_vouches_for_is_refused(receive, certificate) -> None:
    """TLS is verified: the message is not sent, and is not tried again."""
    receiver = receive(context=certificate.context)

    done = deliver(Webhook(receiver.url()), BODY)

    assert done.problem == "its certificate is not trusted: self-signed certificate"
    assert (done.ok, done.attempts, receiver.requests) == (False, 1, [])


def test_a_certificate_that_the_environment_vouches_for_is_taken(
    receive, certificate, monkeypatch
) -> None:
    """REQUESTS_CA_BUNDLE is how a company's own authority is told."""
    receiver = receive(context=certificate.context)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.file))

    assert deliver(Webhook(receiver.url()), BODY).ok


def test_a_certificate_for_another_name_is_refused(receive, certificate, monkeypatch) -> None:
    """A trusted certificate of another host is no certificate of this one."""
    receiver = receive(context=certificate.context)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.file))

    problem = deliver(Webhook(receiver.url(host="localhost")), BODY).problem
    assert problem.startswith("its certificate is not trusted: Hostname mismatch")


def test_certificates_that_are_not_there_are_named_by_their_variable(monkeypatch) -> None:
    """A slip in REQUESTS_CA_BUNDLE is told as one."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")

    done = deliver(Webhook(f"https://127.0.0.1:1{PATH}"), BODY)

    assert done.problem == "REQUESTS_CA_BUNDLE names no file of certificates"


def test_the_environments_proxy_is_heeded(receive, monkeypatch) -> None:
    """People behind a proxy have no other way out."""
    proxy = receive()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")

    done = deliver(Webhook(f"http://hooks.example.com{PATH}"), BODY)

    assert done.ok
    assert proxy.requests[0].path == f"http://hooks.example.com{PATH}"


def test_no_proxy_is_heeded(receive, closed_port: int, monkeypatch) -> None:
    """A host that NO_PROXY names is reached directly."""
    receiver = receive()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    assert deliver(Webhook(receiver.url()), BODY).ok


def test_a_proxy_that_is_gone_is_told_as_the_proxy(closed_port: int, monkeypatch, pauses) -> None:
    """It is the proxy that refuses, not the webhook."""
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:pw-of-proxy@127.0.0.1:{closed_port}")

    done = deliver(Webhook(f"https://hooks.example.com{PATH}"), BODY, sleep=pauses)

    assert done.problem == "the proxy that is set here: connection refused, after 4 attempts"


def test_netrc_is_not_heeded(receive, monkeypatch, tmp_path) -> None:
    """A password file's entry for the host is nobody's wish to send it along."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    receiver = receive()

    deliver(Webhook(receiver.url()), BODY)

    assert "Authorization" not in receiver.requests[0].headers


@pytest.mark.parametrize(
    ("url", "headers", "problem"),
    [
        ("hooks.example.com/x", {}, "its URL does not begin with https:// or http:// and a host"),
        ("", {}, "its URL does not begin with https:// or http:// and a host"),
        ("http://", {}, "its URL does not begin with https:// or http:// and a host"),
        ("ftp://example.com/", {}, "its URL does not begin with https:// or http:// and a host"),
        ("http://127.0.0.1:1/", {"X": "a\nb"}, "one of its headers holds a line break or a blank"),
        ("http://127.0.0.1:1/", {"X": "\u20ac"}, "one of its headers holds what no header can"),
    ],
)
def test_what_cannot_be_sent_is_said_once(url: str, headers, problem: str, pauses) -> None:
    """A URL or a header that is none is no fault of the network: it is not tried again."""
    done = deliver(Webhook(url, headers), BODY, sleep=pauses)

    assert (done.ok, done.attempts, done.problem) == (False, 1, problem)


def test_a_url_with_blanks_around_it_is_that_url(receive) -> None:
    """A secret that was exported with its line's end still names its webhook."""
    receiver = receive()

    assert deliver(Webhook(f" {receiver.url()}\n"), BODY).ok
    assert receiver.requests[0].path == PATH


def test_what_json_lacks_becomes_null_and_what_utf8_lacks_a_question_mark(receive) -> None:
    """NaN and half a surrogate pair, from a log's bytes, cost the message nothing."""
    receiver = receive()

    deliver(Webhook(receiver.url()), {"a": [float("nan"), float("-inf"), 1.5], "b": "x\udcffé"})

    assert json.loads(receiver.requests[0].body) == {"a": [None, None, 1.5], "b": "x?é"}


def test_a_delivery_is_json(receive) -> None:
    """What became of a message is kept with its night."""
    receiver = receive()

    done = deliver(Webhook(receiver.url()), BODY, key="night-1").to_dict()

    assert {**done, "took_s": 0} == {
        "where": f"127.0.0.1:{receiver.port}",
        "ok": True,
        "status": 200,
        "attempts": 1,
        "problem": "",
        "key": "night-1",
        "took_s": 0,
    }


@given(st.text(), st.text())
def test_whatever_a_server_writes_as_a_pause_is_read_or_passed_over(text: str, date: str) -> None:
    """No header's value is an error."""
    pause_s = retry_after_s(text, date)

    assert pause_s is None or pause_s >= 0


@given(st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)), st.integers(0, 10**6))  # noqa: DTZ001
def test_a_date_is_the_seconds_until_it(since: datetime, seconds: int) -> None:
    """Two HTTP dates are as far apart as they say."""
    since = since.replace(microsecond=0, tzinfo=timezone.utc)
    until = format_datetime(since + timedelta(seconds=seconds), usegmt=True)

    assert retry_after_s(until, format_datetime(since, usegmt=True)) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "Fri, 99999999999999 Nov 2026 10:00:00 GMT",
        "Fri, 27 Nov 99999999999999 10:00:00 GMT",
        "Fri, 27 Nov 2026 10:00:00 +99999999",
        "-5",
        "soon",
        "",
    ],
)
def test_a_pause_that_nobody_can_read_is_none(receive, text) -> None:
    """The message is sent again all the same."""
    receiver = receive(Reply(503, {"Retry-After": text}))

    done = deliver(Webhook(receiver.url()), BODY, sleep=lambda _: None)

    assert (done.ok, done.attempts) == (True, 2)
