"""Fixtures of the transports' tests."""

import pytest

from eagleops.transport.local import LocalTransport


@pytest.fixture(params=["local", "ssh", "ssh+pct"])
def way(request):
    """Each kind of transport, so that they can be seen to behave alike."""
    if request.param == "local":
        return LocalTransport()
    ssh = request.getfixturevalue("sshd").transport()
    if request.param == "ssh":
        return ssh
    return request.getfixturevalue("container").inside(ssh)
