"""ssh_config for one host: OpenSSH's reading of it, and Paramiko's where no ssh is installed."""

import subprocess
from pathlib import Path

import pytest

from eagleops.errors import UsageError
from eagleops.transport import ssh_config
from eagleops.transport.ssh_config import expand, parse_dump, route, settings
from eagleops.transport.ssh_options import SshOptions


@pytest.fixture(params=["openssh", "paramiko"])
def reader(request, monkeypatch):
    """Which of the two reads ssh_config."""
    if request.param == "paramiko":
        monkeypatch.setattr(ssh_config.shutil, "which", lambda _name: None)
    return request.param


@pytest.fixture
def options(tmp_path):
    """Options with an ssh_config of the test's own text."""

    def write(text, **changes):
        file = tmp_path / "config"
        file.write_text(text)
        return SshOptions(config_file=file, **changes)

    return write


def test_a_block_says_where_and_as_whom(reader, options, tmp_path):
    """HostName, Port, User, IdentityFile and the rest of an alias are found."""
    key = tmp_path / "key"
    key.touch()
    text = (
        "Host llm\n  HostName 192.0.2.174\n  Port 2222\n  User ml\n"
        f"  IdentityFile {key}\n  IdentityFile {tmp_path}/none\n"
        "  ProxyCommand nc -x proxy.example.com %h %p\n"
    )
    found = settings("llm", options(text))
    assert (found.alias, found.address) == ("llm", "ml@192.0.2.174:2222")
    assert found.identity_files == (key,)
    assert found.proxy_command == "nc -x proxy.example.com 192.0.2.174 2222"


def test_what_the_address_says_wins(reader, options):
    """User and port of the address win over ssh_config's."""
    text = "Host llm\n  HostName 192.0.2.174\n  Port 2222\n  User ml\n"
    assert settings("root@llm:22", options(text)).address == "root@192.0.2.174:22"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("llm", "-p 2222 ml@llm"),
        ("root@llm:22", "-p 22 root@llm"),
        ("root@[2001:db8::6]:22", "-p 22 root@2001:db8::6"),
    ],
)
def test_what_is_told_to_be_tried_by_hand_is_what_is_tried(options, address, words):
    """OpenSSH's client reads the words of a message as the same user, host and port."""
    there = options("Host llm\n  HostName 192.0.2.174\n  Port 2222\n  User ml\n")
    found = settings(address, there)
    assert found.words == words
    asked = ["ssh", "-F", there.config_file, "-G", *words.split()]
    dump = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()
    assert f"hostname {found.host}" in dump
    assert {f"user {found.user}", f"port {found.port}"} <= set(dump)


def test_what_only_openssh_reads_is_read(options, tmp_path):
    """Include, UserKnownHostsFile, HostKeyAlias and HashKnownHosts count: ssh -G tells them."""
    included = tmp_path / "included"
    included.write_text(
        "Host llm\n  HostName 192.0.2.174\n  HostKeyAlias llm-129\n  HashKnownHosts yes\n"
        f"  UserKnownHostsFile {tmp_path}/a {tmp_path}/b\n  GlobalKnownHostsFile none\n"
    )
    found = settings("llm", options(f"Include {included}\n"))
    assert (found.host, found.host_key_alias, found.hash_known_hosts, found.known_hosts) == (
        "192.0.2.174",
        "llm-129",
        True,
        (tmp_path / "a", tmp_path / "b"),
    )


def test_the_options_win_over_ssh_config(reader, options, tmp_path):
    """What hosts.yaml says of keys, known hosts and jumps is what counts."""
    key = tmp_path / "key"
    found = settings(
        "llm",
        options(
            "Host llm\n  ProxyJump bastion\n  UserKnownHostsFile /nowhere\n",
            identity_files=(key,),
            known_hosts=(tmp_path / "known",),
            jump="none",
            agent=False,
        ),
    )
    assert (found.identity_files, found.known_hosts, found.proxy_jump, found.agent) == (
        (key,),
        (tmp_path / "known",),
        (),
        False,
    )


def test_without_any_configuration_the_defaults_hold(reader, options):
    """With nothing to read, host and port are as written and known_hosts is the person's."""
    found = settings("root@192.0.2.6", options(""))
    assert (found.address, found.proxy_command, found.proxy_jump) == ("root@192.0.2.6:22", "", ())
    assert Path("~/.ssh/known_hosts").expanduser() in found.known_hosts
    assert Path("/etc/ssh/ssh_known_hosts") in found.known_hosts


def addresses(hops):
    """The way as names."""
    return [hop.alias for hop in hops]


def test_jumps_come_in_order(reader, options):
    """ProxyJump a,b means: b through a, and a as its own block says."""
    text = (
        "Host llm\n  ProxyJump a,root@b:2222\nHost a\n  ProxyJump front\n  HostName 192.0.2.1\n"
        "Host b\n  ProxyJump elsewhere\n"
    )
    hops = route("llm", options(text))
    assert addresses(hops) == ["front", "a", "b", "llm"]
    assert (hops[1].host, hops[2].address) == ("192.0.2.1", "root@b:2222")


def test_a_jump_that_leads_through_itself_is_refused_as_ssh_does(options):
    """`Host *` with ProxyJump would send the jump host through itself: ssh refuses, so do we."""
    with pytest.raises(UsageError) as refused:
        route("llm", options("Host *\n  ProxyJump bastion\n"))
    assert str(refused.value) == "bastion: ssh_config: jumphost loop via bastion"


def test_without_ssh_a_jump_that_leads_through_itself_ends(options, monkeypatch):
    """Where Paramiko reads the same block, the jump host itself is gone to straight on."""
    monkeypatch.setattr(ssh_config.shutil, "which", lambda _name: None)
    text = "Host *\n  ProxyJump bastion\n"
    assert addresses(route("llm", options(text))) == ["bastion", "llm"]
    assert addresses(route("bastion", options(text))) == ["bastion"]


def test_two_jumps_that_lead_through_each_other_end(reader, options):
    """A circle of jump hosts is cut where it would close."""
    text = "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n"
    assert addresses(route("a", options(text))) == ["b", "a"]


def test_a_jump_of_the_options_is_taken(reader, options):
    """hosts.yaml may name jump hosts where ssh_config names none."""
    assert addresses(route("llm", options("", jump="root@bastion:2222"))) == ["bastion", "llm"]


def test_a_configuration_that_cannot_be_read_is_a_usage_error(options):
    """Ssh's own words about a bad ssh_config are passed on; nothing was touched."""
    with pytest.raises(UsageError) as refused:
        settings("llm", options("Host llm\n  Port many\n"))
    assert str(refused.value).startswith("llm: ssh_config: ")
    assert "many" in str(refused.value) or "Bad number" in str(refused.value)


def test_tokens_are_replaced(monkeypatch):
    """%-tokens, a leading ~ and ${NAME} are replaced as ssh does; an unknown one stays."""
    monkeypatch.setenv("HOME", "/home/ml")
    monkeypatch.setenv("WHERE", "there")
    tokens = {"h": "192.0.2.6", "%": "%"}
    assert expand("~/${WHERE}/%h-%%-%z", tokens) == "/home/ml/there/192.0.2.6-%-%z"


def test_a_dump_is_read_line_by_line():
    """A key that comes twice has two values; a value may hold spaces."""
    assert parse_dump("user root\nidentityfile ~/a\nidentityfile ~/b c\nbare\n") == {
        "user": ["root"],
        "identityfile": ["~/a", "~/b c"],
        "bare": [""],
    }


@pytest.fixture
def nameless(monkeypatch):
    """A user id without a name, as in a container with a user of its own, and no ssh."""
    monkeypatch.setattr(ssh_config.shutil, "which", lambda _name: None)
    monkeypatch.setattr(ssh_config.os, "getuid", lambda: 4242424)
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nameless")
def test_a_user_id_without_a_name_stands_for_itself(options, monkeypatch):
    """The login and `%u` are its number, whatever LOGNAME says: ssh does not heed it either."""
    monkeypatch.setenv("LOGNAME", "somebody")
    found = settings("192.0.2.174", options("", proxy_command="nc %u %h"))
    assert found.user == "4242424"
    assert found.proxy_command == "nc 4242424 192.0.2.174"


@pytest.mark.usefixtures("nameless")
def test_a_reader_that_needs_the_name_is_told_as_such(options):
    """Paramiko asks for it where it replaces tokens: an error with a way out, no traceback."""
    with pytest.raises(UsageError, match="4242424 has no name"):
        settings("llm", options("Host llm\n  ProxyCommand nc %u %h\n"))
