"""What of a webhook must be told nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagleops.inventory.suite import WebhookEntry
from eagleops.profile import SecretReference
from eagleops.workflows.secrets import webhook_secrets

URL = "https://hooks.example.com/services/T0000/B0000/abcdefghijklmnopqrstuvwx"


def test_the_path_of_a_url_is_its_password(tmp_path: Path) -> None:
    """The whole URL, its path with and without the slash, and the long part at its end."""
    file = tmp_path / "url"
    file.write_text(f"{URL}\n")

    for url in (URL, SecretReference(f"file:{file}")):
        assert webhook_secrets(WebhookEntry(url=url, shape="slack")) == (
            URL,
            "/services/T0000/B0000/abcdefghijklmnopqrstuvwx",
            "services/T0000/B0000/abcdefghijklmnopqrstuvwx",
            "abcdefghijklmnopqrstuvwx",
        )


def test_a_header_is_a_secret_by_reference_or_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other is a word like another, which reports may hold; of a bearer the token counts."""
    monkeypatch.setenv("SCOPE_OF_THIS_TEST", "confidential")
    headers = {
        "Authorization": "Bearer tok-0123456",
        "X-Api-Key": "key-0123456",
        "X-Scope": SecretReference("env:SCOPE_OF_THIS_TEST"),
        "X-Env": "production",
        "Cookie": "short",
    }

    found = webhook_secrets(WebhookEntry(url="https://example.com/in", headers=headers))

    assert found[1:] == ("Bearer tok-0123456", "tok-0123456", "key-0123456", "confidential")


def test_what_cannot_be_had_is_no_trouble() -> None:
    """A night goes on without it, and says so when it sends."""
    for place in ("env:NO_SUCH_VARIABLE_ANYWHERE", "file:~nobody-is-called-so/url", "cmd:false"):
        assert webhook_secrets(WebhookEntry(url=SecretReference(place))) == ()
