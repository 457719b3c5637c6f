"""A webhook's URL is its password: it stands in no log, no exception, no result."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from eagleops.notify.unlogged import unlogged
from eagleops.notify.webhook import Webhook, deliver
from parts.receiver import PATH, TOKEN, Reply

HEADER = "hdrSecret77"
BODY = {"text": "hello"}

ENDS: dict[str, Reply] = {
    "taken": Reply(),
    "refused": Reply(404, body=TOKEN.encode()),
    "refused with a page": Reply(403, body=f"<p>The URL {PATH} was not found</p>".encode()),
    "broken": Reply(500),
    "redirected away": Reply(307, {"Location": f"http://localhost:1{PATH}"}),
    "redirected here": Reply(307, {"Location": PATH + "2"}),
    "redirected nowhere": Reply(308, {"Location": f"http://[::1{PATH}"}),
    "closed": Reply(how="close"),
    "cut": Reply(how="cut"),
    "silent": Reply(how="hang"),
    "dripping": Reply(how="drip"),
}


def no_pause(_: float) -> None:
    """Goes on at once."""


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """All that any logger said, down to DEBUG."""
    caplog.set_level(logging.DEBUG)
    for name in ("urllib3", "urllib3.connectionpool", "urllib3.util.retry", "requests"):
        caplog.set_level(logging.DEBUG, logger=name)

    def said() -> str:
        lines = [f"{r.getMessage()} {r.args!r} {r.exc_text or ''}" for r in caplog.records]
        return "\n".join([caplog.text, *lines])

    return said


def secrets_in(text: str) -> list[str]:
    """Which secrets a text holds."""
    return [secret for secret in (TOKEN, TOKEN.lower(), "T024BE7LD", HEADER) if secret in text]


@pytest.mark.parametrize("end", ENDS)
def test_nothing_tells_the_url_however_it_ends(receive, heard, capfd, end: str) -> None:
    """Log lines at every level, the result, its JSON, its repr, stdout and stderr hold none."""
    receiver = receive(*[ENDS[end]] * 4)
    webhook = Webhook(receiver.url(), {"Authorization": f"Bearer {HEADER}"})

    done = deliver(
        webhook, BODY, limit_s=2.0 if end in {"silent", "dripping"} else 20.0, sleep=no_pause
    )

    shown = "".join(capfd.readouterr())
    told = f"{heard()}{done!r}{done}{json.dumps(done.to_dict())}{webhook!r}{webhook}{webhook.where}"
    assert receiver.requests
    assert secrets_in(told + shown) == []
    assert pickle.dumps(done).find(TOKEN.encode()) == -1


def test_nothing_tells_the_url_where_nobody_listens(closed_port: int, heard) -> None:
    """The libraries' own words for a refused connection hold the path; ours do not."""
    done = deliver(Webhook(f"http://127.0.0.1:{closed_port}{PATH}"), BODY, sleep=no_pause)

    assert secrets_in(heard() + repr(done)) == []
    assert "connection refused" in done.problem


def test_nothing_tells_the_url_where_tls_is_refused(receive, certificate, heard) -> None:
    """Likewise for a certificate that nobody vouches for."""
    receiver = receive(context=certificate.context)

    done = deliver(Webhook(receiver.url()), BODY)

    assert secrets_in(heard() + repr(done)) == []


@pytest.mark.parametrize(
    "url", [f"http//{TOKEN}", f"{TOKEN}:x", f"http://[{TOKEN}/x", f"http://a:{TOKEN}/x", TOKEN]
)
def test_nothing_tells_what_is_no_url(url: str, heard) -> None:
    """A slip in a secret is told without it."""
    webhook = Webhook(url)

    done = deliver(webhook, BODY, sleep=no_pause)

    assert not done.ok
    assert secrets_in(heard() + repr(done) + repr(webhook)) == []


def test_a_header_that_cannot_be_sent_is_not_told(heard) -> None:
    """The library's error for a bad header repeats its value."""
    webhook = Webhook("http://127.0.0.1:1/", {"Authorization": f"Bearer {HEADER}\r\nX: y"})

    done = deliver(webhook, BODY)

    assert secrets_in(heard() + repr(done) + repr(webhook)) == []


def test_a_password_of_the_proxy_is_not_told(closed_port: int, heard, monkeypatch) -> None:
    """The proxy that the environment names may bear a password of its own."""
    monkeypatch.setenv("HTTP_PROXY", f"http://user:{HEADER}@127.0.0.1:{closed_port}")

    done = deliver(Webhook(f"http://hooks.example.com{PATH}"), BODY, sleep=no_pause)

    assert not done.ok
    assert secrets_in(heard() + repr(done)) == []


def test_an_error_that_nobody_foresaw_is_told_by_its_kind(heard, monkeypatch) -> None:
    """A fault of the libraries ends in a failed delivery, and neither text nor trace escapes."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot handle http://hooks.example.com{PATH}")

    raised: list[object] = []
    monkeypatch.setattr("requests.adapters.HTTPAdapter.send", broken)
    monkeypatch.setattr(threading, "excepthook", raised.append)

    done = deliver(Webhook(f"http://hooks.example.com{PATH}"), BODY)

    assert done.problem == "it could not be sent: RuntimeError"
    assert raised == []
    assert secrets_in(heard() + repr(done)) == []


def test_an_interrupt_tells_no_url(receive, monkeypatch) -> None:
    """The traceback of Ctrl-C in the middle of a delivery holds no value."""
    receiver = receive(Reply(how="hang"))

    def interrupt(_thread: threading.Thread, _limit_s: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupt)
    with pytest.raises(KeyboardInterrupt) as ended:
        deliver(Webhook(receiver.url()), BODY, limit_s=5.0)
    monkeypatch.undo()

    assert secrets_in("".join(traceback.format_exception(ended.value))) == []


def test_the_library_would_log_the_path(receive, heard) -> None:
    """What these tests look for is really there where nobody keeps it out."""
    receiver = receive()

    requests.post(receiver.url(), json=BODY, timeout=10)

    assert secrets_in(heard()) != []


def test_other_threads_go_on_logging(receive, heard) -> None:
    """The program around a delivery may debug its own HTTP meanwhile."""
    receiver = receive()
    with unlogged():
        other = threading.Thread(
            target=requests.post, args=(receiver.url("/theirs"),), kwargs={"timeout": 10}
        )
        other.start()
        other.join()
        requests.post(receiver.url("/ours"), timeout=10)

    assert "/theirs" in heard()
    assert "/ours" not in heard()


def test_logging_is_as_it_was_afterwards(receive, heard) -> None:
    """No filter stays on anybody's logger."""
    receiver = receive()
    deliver(Webhook(receiver.url()), BODY)

    requests.post(receiver.url("/afterwards"), json=BODY, timeout=10)

    assert "/afterwards" in heard()
    assert logging.getLogger("urllib3.connectionpool").filters == []


def test_the_first_message_of_a_process_is_kept_out_of_its_log_too(receive) -> None:
    """The libraries load with the first message; their loggers are born after the filter is set."""
    receiver = receive()
    program = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)\n"
        "from eagleops.notify.webhook import Webhook, deliver\n"
        "print(deliver(Webhook(sys.stdin.read()), {'text': 'hello'}))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        input=receiver.url(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert "ok=True" in done.stdout
    assert secrets_in(done.stdout + done.stderr) == []


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_of_any_text_no_more_than_a_host_is_shown(path: str) -> None:
    """Whatever stands behind the host, a webhook is called by its host."""
    webhook = Webhook(f"https://hooks.example.com/{path}")

    assert webhook.where == "hooks.example.com"
    assert repr(webhook) == "Webhook()"


@given(st.text())
def test_any_text_is_a_webhook_that_has_a_name(text: str) -> None:
    """A secret that is no URL raises nothing where it is only named."""
    assert Webhook(text).where
    assert Webhook(f"http://{text}").where
