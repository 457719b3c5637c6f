"""user@host:port as a person writes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.errors import UsageError
from eagleops.transport.ssh_address import Address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pve", Address("pve")),
        ("root@192.0.2.6", Address("192.0.2.6", "root")),
        ("root@192.0.2.6:2222", Address("192.0.2.6", "root", 2222)),
        ("pve.example.com:22", Address("pve.example.com", None, 22)),
        ("2001:db8::6", Address("2001:db8::6")),
        ("root@2001:db8::6", Address("2001:db8::6", "root")),
        ("root@[2001:db8::6]:2222", Address("2001:db8::6", "root", 2222)),
        ("[fe80::1%eth0]", Address("fe80::1%eth0")),
        ("ssh://root@pve:2222", Address("pve", "root", 2222)),
        ("ssh://root@pve:2222/", Address("pve", "root", 2222)),
        ("user@example.com@host", Address("host", "user@example.com")),
        ("DOMAIN.user@host", Address("host", "DOMAIN.user")),
    ],
)
def test_an_address_is_read(text, expected):
    """User and port are optional; IPv6 with a port stands in brackets."""
    assert Address.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "@host", "host:", "host:0", "host:65536", "host:x", "[::1", "::1]:22", "a b"],
)
def test_what_is_no_address_is_refused(text):
    """Text that is no address is a UsageError that shows how to write one."""
    with pytest.raises(UsageError) as refused:
        Address.parse(text)
    assert str(refused.value).startswith(f"{text!r} is no SSH address: ")
    assert "Write user@host" in str(refused.value)


@pytest.mark.parametrize("text", ["-oProxyCommand=id", "root@-x", "$(id)", "a;id", "`id`", "x@a'b"])
def test_a_name_that_a_shell_or_ssh_would_act_on_is_refused(text):
    """No name that begins with - or that a shell could read gets into a proxy command."""
    with pytest.raises(UsageError):
        Address.parse(text)


_words = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)


@given(user=st.none() | _words, host=_words, port=st.none() | st.integers(1, 65535))
def test_what_is_written_is_read_back(user, host, port):
    """Every user, host and port that is written together is read apart again."""
    text = (f"{user}@" if user else "") + host + (f":{port}" if port else "")
    assert Address.parse(text) == Address(host, user, port)
