"""Host keys and logins against a real sshd: what is refused, and what the refusal says."""

import base64
import shlex
import subprocess

import pytest

from eagleops.errors import ConnectFailed, HostKeyRefused
from eagleops.transport.host_keys import HostKey
from eagleops.transport.ssh import SshTransport
from parts.sshd import Keys, public

LIMIT_S = 30.0


def fingerprint(key):
    """The fingerprint of a private key's public half."""
    key_type, encoded = public(key).split()
    return HostKey(key_type, base64.b64decode(encoded)).fingerprint


@pytest.fixture
def other_key(tmp_path):
    """A host key on record that is not the server's."""
    return Keys.make(tmp_path).other_host


def test_an_unknown_key_is_refused_with_its_fingerprint(sshd, ssh_keys, tmp_path):
    """A host on no known_hosts line is refused; the error shows fingerprint and the exact step."""
    known_hosts = tmp_path / "known_hosts"
    transport = sshd.transport(known_hosts=(known_hosts,))
    with pytest.raises(HostKeyRefused) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    shown = fingerprint(ssh_keys.host)
    assert str(refused.value) == (
        f"{sshd.address}: the host key is unknown: ED25519 {shown} is on no line of {known_hosts}\n"
        "Compare the fingerprint with the machine's own (on its console: ssh-keygen -lf "
        "/etc/ssh/ssh_host_ed25519_key.pub), then record it:\n"
        f"  echo '[127.0.0.1]:{sshd.port} {public(ssh_keys.host)}' >> {known_hosts}\n"
        "or set `host_keys: accept-new` for this host in hosts.yaml."
    )
    assert (refused.value.fingerprint, refused.value.expected_fingerprint) == (shown, "")
    assert not known_hosts.exists()


def test_the_way_out_of_an_unknown_key_works(sshd, tmp_path):
    """The line that the refusal tells to run makes the host known."""
    transport = sshd.transport(known_hosts=(tmp_path / "known_hosts",))
    with pytest.raises(HostKeyRefused) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    step = refused.value.way_out.splitlines()[1]
    subprocess.run(["sh", "-c", step], check=True)
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0


def test_accept_new_records_an_unknown_key(sshd, ssh_keys, tmp_path):
    """accept-new lets a new host in and writes its key down; strict then knows it."""
    known_hosts = tmp_path / "ssh" / "known_hosts"
    new = sshd.transport(known_hosts=(known_hosts,), host_keys="accept-new")
    assert new.run(["true"], timeout_s=LIMIT_S).exit_status == 0
    assert known_hosts.read_text() == f"[127.0.0.1]:{sshd.port} {public(ssh_keys.host)}\n"
    strict = sshd.transport(known_hosts=(known_hosts,))
    assert strict.run(["true"], timeout_s=LIMIT_S).exit_status == 0


@pytest.mark.parametrize("host_keys", ["strict", "accept-new"])
def test_a_changed_key_is_refused_by_both(sshd, ssh_keys, other_key, tmp_path, host_keys):
    """A key other than the one on record is refused with both fingerprints and the line."""
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(f"# mine\n[127.0.0.1]:{sshd.port} {public(other_key)}\n")
    transport = sshd.transport(known_hosts=(known_hosts,), host_keys=host_keys)
    with pytest.raises(HostKeyRefused) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    shown, expected = fingerprint(ssh_keys.host), fingerprint(other_key)
    assert str(refused.value) == (
        f"{sshd.address}: the host key has changed: ED25519 {shown}, expected ED25519 {expected} "
        f"({known_hosts}:2)\n"
        "If the machine was reinstalled: ssh-keygen -R "
        f"'[127.0.0.1]:{sshd.port}' -f {known_hosts}\n"
        "and connect again to see the new fingerprint. If nobody changed it on purpose, somebody "
        "may be in between: ask the admin."
    )
    assert (refused.value.fingerprint, refused.value.expected_fingerprint) == (shown, expected)


def test_the_way_out_of_a_changed_key_works(sshd, other_key, tmp_path):
    """The ssh-keygen that the refusal tells to run removes the old key."""
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {public(other_key)}\n")
    transport = sshd.transport(known_hosts=(known_hosts,), host_keys="accept-new")
    with pytest.raises(HostKeyRefused) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    step = refused.value.way_out.splitlines()[0].partition(": ")[2]
    subprocess.run(shlex.split(step), check=True, capture_output=True)
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0


def test_a_revoked_key_is_refused_though_it_is_known(sshd, ssh_keys):
    """@revoked wins over a line that knows the key."""
    with sshd.known_hosts.open("a") as lines:
        lines.write(f"@revoked * {public(ssh_keys.host)}\n")
    with pytest.raises(HostKeyRefused, match=r"is revoked \(.*known_hosts:2\)"):
        sshd.transport().run(["true"], timeout_s=LIMIT_S)


def test_the_key_that_is_known_is_asked_for(make_sshd, ssh_keys, tmp_path):
    """A server with several keys shows the one on record, though another is preferred."""
    rsa = tmp_path / "rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", rsa], check=True)
    server = make_sshd(settings=[f"HostKey {rsa}"])
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public(rsa)}\n")
    assert server.transport().run(["true"], timeout_s=LIMIT_S).exit_status == 0


def test_a_key_that_the_server_does_not_take_is_a_connection_error(sshd, ssh_keys):
    """A refused key is ConnectFailed with the way out: nothing ran."""
    transport = sshd.transport(identity_files=(ssh_keys.host,))
    with pytest.raises(ConnectFailed) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    assert str(refused.value) == (
        f"{sshd.address}: the server accepted none of the keys\n"
        f"Try it by hand: ssh -v -p {sshd.port} {sshd.user}@127.0.0.1. Is the key in the agent "
        "(ssh-add -l), or named as IdentityFile in ssh_config?"
    )


def test_no_key_at_all_is_a_connection_error(sshd):
    """With neither key nor agent the login fails likewise, and asks nobody for a password."""
    with pytest.raises(ConnectFailed) as refused:
        sshd.transport(identity_files=()).run(["true"], timeout_s=LIMIT_S)
    assert "Try it by hand: ssh -v" in str(refused.value)


def test_an_encrypted_key_is_named(sshd, tmp_path):
    """A key with a passphrase that no agent holds says how to load it."""
    locked = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", locked], check=True)
    with pytest.raises(ConnectFailed) as refused:
        sshd.transport(identity_files=(locked,)).run(["true"], timeout_s=LIMIT_S)
    assert str(refused.value) == (
        f"{sshd.address}: the private key is encrypted and the agent does not hold it\n"
        "Add it to the agent: ssh-add PATH_OF_THE_KEY."
    )


def test_an_agent_lends_its_keys(sshd, ssh_keys, tmp_path, monkeypatch):
    """A key that only the agent holds logs in, unless the agent is not to be asked."""
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        added = ["ssh-add", "-q", ssh_keys.user]
        while subprocess.run(added, check=False, capture_output=True).returncode != 0:
            assert agent.poll() is None
        with_agent = sshd.transport(identity_files=(), agent=True)
        assert with_agent.run(["true"], timeout_s=LIMIT_S).exit_status == 0
        with pytest.raises(ConnectFailed):
            sshd.transport(identity_files=(), agent=False).run(["true"], timeout_s=LIMIT_S)
    finally:
        agent.terminate()
        agent.wait()


def test_nobody_listens(sshd):
    """A closed port is a connection error that names it."""
    address = f"{sshd.user}@127.0.0.1:1"
    with pytest.raises(ConnectFailed) as refused:
        SshTransport(address, options=sshd.options()).run(["true"], timeout_s=LIMIT_S)
    assert str(refused.value) == (
        f"{address}: Unable to connect to port 1 on 127.0.0.1\n"
        "Is the machine up, and is this its address? "
        f"Try it by hand: ssh -v -p 1 {sshd.user}@127.0.0.1."
    )


def test_a_name_that_does_not_resolve(sshd):
    """An unknown host name is a connection error that says so."""
    transport = SshTransport("root@no-such-host.invalid", options=sshd.options())
    with pytest.raises(ConnectFailed, match="its name cannot be resolved"):
        transport.run(["true"], timeout_s=LIMIT_S)
