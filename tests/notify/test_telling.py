"""A suite's webhook is told: its secrets are fetched at the last moment, and failures are words."""

from __future__ import annotations

import json

from eagleops.inventory.suite import WebhookEntry
from eagleops.profile import SecretReference
from eagleops.workflows.notify import tell, where
from parts.receiver import TOKEN


def test_secrets_are_fetched_when_the_message_goes(receive, monkeypatch, tmp_path) -> None:
    """The URL comes from a file, a header from a variable, and both arrive."""
    receiver = receive()
    file = tmp_path / "slack url"
    file.write_text(receiver.url() + "\n")
    monkeypatch.setenv("TEAM_TOKEN_OF_THIS_TEST", "Bearer abc")
    entry = WebhookEntry(
        url=SecretReference(f"file:{file}"),
        headers={"Authorization": SecretReference("env:TEAM_TOKEN_OF_THIS_TEST"), "X-Team": "gpu"},
    )

    done = tell(entry, {"text": "hello"}, key="night-1")

    (request,) = receiver.requests
    assert done.ok
    assert json.loads(request.body) == {"text": "hello"}
    assert request.headers["Authorization"] == "Bearer abc"
    assert request.headers["Idempotency-Key"] == "night-1"


def test_a_secret_that_is_not_there_is_a_failed_delivery() -> None:
    """The night is over by then: it is said which secret, and nothing is raised."""
    entry = WebhookEntry(url=SecretReference("env:NO_SUCH_VARIABLE_OF_THIS_TEST"))

    done = tell(entry, {}, key="night-1")

    assert (done.ok, done.attempts) == (False, 0)
    assert done.where == "the webhook in env:NO_SUCH_VARIABLE_OF_THIS_TEST"
    assert done.problem == (
        "secret env:NO_SUCH_VARIABLE_OF_THIS_TEST: the variable is not set where eagleops runs: "
        "export NO_SUCH_VARIABLE_OF_THIS_TEST=... there first."
    )


def test_a_webhook_is_named_by_its_host_or_its_secrets_place() -> None:
    """A literal URL shows its host, a reference the place."""
    literal = WebhookEntry(url=f"https://hooks.example.com:8443/{TOKEN}")
    referred = WebhookEntry(url=SecretReference("file:~/.slack"))

    named = [where(literal), where(referred)]
    assert named == ["hooks.example.com:8443", "the webhook in file:~/.slack"]
