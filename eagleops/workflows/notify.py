"""A night's message to the webhooks of its suite: their secrets are fetched, and it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eagleops.errors import ProfileError
from eagleops.inventory.suite import WebhookEntry
from eagleops.notify.webhook import Delivery, Webhook, deliver
from eagleops.profile import SecretReference
from eagleops.workflows.secrets import revealed

Send = Callable[..., Delivery]


def tell(
    entry: WebhookEntry, body: Mapping[str, Any], *, key: str, send: Send = deliver
) -> Delivery:
    """Sends one message to one webhook; neither a secret nor a network that fails raises.

    Args:
        entry: Of the suite.
        body: In the entry's shape: :mod:`eagleops.nights.message`.
        key: The message's own name, the same when it is sent again, for example the night's
            uuid: :func:`eagleops.notify.webhook.deliver`.
        send: Another way to send it.
    """
    try:
        webhook = Webhook(revealed(entry.url), revealed(entry.headers))
    except ProfileError as error:
        return Delivery(where=where(entry), ok=False, problem=str(error).replace("\n", ": "))
    return send(webhook, body, key=key)


def where(entry: WebhookEntry) -> str:
    """The webhook as it may be shown: its host, or the place that its secret is in."""
    if isinstance(entry.url, SecretReference):
        return f"the webhook in {str.__str__(entry.url)}"
    return Webhook(entry.url).where
