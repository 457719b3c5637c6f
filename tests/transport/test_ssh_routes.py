"""The ways to a host: jump hosts, proxy commands, ssh_config, each through real sshds."""

import subprocess
import time

import pytest

from eagleops.errors import ConnectFailed, HostKeyRefused
from eagleops.transport.ssh import SshOptions, SshTransport
from parts.poll import until

LIMIT_S = 30.0


@pytest.fixture
def bastion(make_sshd):
    """A second sshd, to jump through."""
    return make_sshd(settings=["MaxSessions 0"])


@pytest.fixture
def configured(sshd, bastion, tmp_path):
    """An ssh_config in which `llm` is reached through `bastion`, split by an Include."""
    included = tmp_path / "included"
    included.write_text(
        bastion.ssh_config("bastion") + sshd.ssh_config("llm") + "  ProxyJump bastion\n"
    )
    config = tmp_path / "config"
    config.write_text(f"Include {included}\n")
    return config


def test_an_alias_of_ssh_config_is_all_it_takes(sshd, configured):
    """Host, port, user, key, known hosts and jump come from an included ssh_config."""
    transport = SshTransport("llm", options=SshOptions(config_file=configured))
    assert transport.where == "llm"
    completed = transport.run(["sh", "-c", "echo $SSH_CONNECTION"], timeout_s=LIMIT_S)
    assert completed.stdout.split()[3] == str(sshd.port).encode()
    transport.close()


def test_a_jump_host_is_passed_through(sshd, bastion, configured):
    """The connection goes through the jump host's login; closing ends both."""
    transport = SshTransport("llm", options=SshOptions(config_file=configured))
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0
    assert (len(bastion.connections()), len(sshd.connections())) == (1, 1)
    transport.close()
    until(lambda: bastion.connections() == [] and sshd.connections() == [])


def test_openssh_goes_the_same_way(sshd, configured):
    """What works here works with ssh itself: the ssh_config of this test is a real one."""
    argv = ["ssh", "-F", configured, "llm", "true"]
    assert subprocess.run(argv, check=False, stdin=subprocess.DEVNULL).returncode == 0


def test_a_jump_hosts_key_is_checked_too(sshd, bastion, configured):
    """An unknown jump host is refused, and named as such; nothing is asked of the target."""
    bastion.known_hosts.write_text("")
    transport = SshTransport("llm", options=SshOptions(config_file=configured))
    with pytest.raises(HostKeyRefused) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    place = f"llm: jump host {bastion.address}"
    assert str(refused.value).startswith(f"{place}: the host key is unknown: ED25519 SHA256:")
    assert sshd.connections() == []
    until(lambda: bastion.connections() == [])


def test_the_key_behind_a_jump_host_is_checked_too(sshd, bastion, configured):
    """A known jump host does not make the host behind it known."""
    sshd.known_hosts.write_text("")
    transport = SshTransport("llm", options=SshOptions(config_file=configured))
    with pytest.raises(HostKeyRefused, match=r"^llm: the host key is unknown"):
        transport.run(["true"], timeout_s=LIMIT_S)
    until(lambda: bastion.connections() == [])


def test_a_jump_host_that_does_not_forward_is_named(make_sshd, sshd, tmp_path):
    """AllowTcpForwarding no on the jump host is told as what it is."""
    closed = make_sshd(settings=["AllowTcpForwarding no"])
    config = tmp_path / "config"
    config.write_text(closed.ssh_config("bastion") + sshd.ssh_config("llm"))
    options = SshOptions(config_file=config, jump="bastion")
    with pytest.raises(ConnectFailed) as refused:
        SshTransport("llm", options=options).run(["true"], timeout_s=LIMIT_S)
    assert "the jump host does not lead on to it" in str(refused.value)
    assert "AllowTcpForwarding" in str(refused.value)


def test_a_lost_jump_host_is_a_lost_connection_that_is_made_anew(sshd, bastion, configured):
    """After the jump host's sshd was killed, the next command logs in again."""
    transport = SshTransport("llm", options=SshOptions(config_file=configured))
    transport.run(["true"], timeout_s=LIMIT_S)
    bastion.kill_connections()
    until(lambda: sshd.connections() == [])
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0
    transport.close()


def test_a_proxy_command_leads_to_a_server(sshd):
    """A program's stdin and stdout are the way: here they are a server's own, without a port."""
    sshd.known_hosts.write_text(f"example.com {sshd.known_hosts.read_text().partition(' ')[2]}")
    options = sshd.options(proxy_command=sshd.proxy_command)
    transport = SshTransport(f"{sshd.user}@example.com", options=options)
    assert transport.run(["echo", "hello"], timeout_s=LIMIT_S).stdout == b"hello\n"
    transport.close()


def test_a_proxy_command_that_ends_is_a_connection_error(sshd):
    """A proxy command that fails is noticed at once, and burns no processor."""
    transport = SshTransport(
        f"{sshd.user}@example.com", options=sshd.options(proxy_command="exit 1")
    )
    started, busy = time.monotonic(), time.process_time()
    with pytest.raises(ConnectFailed):
        transport.run(["true"], timeout_s=2 * LIMIT_S)
    assert time.monotonic() - started < LIMIT_S
    assert time.process_time() - busy < 2.0


def test_a_proxy_command_is_bounded_like_any_way(sshd):
    """A proxy command that says nothing is given up within the limit, and ended."""
    transport = SshTransport(
        f"{sshd.user}@example.com", options=sshd.options(proxy_command="sleep 600")
    )
    started = time.monotonic()
    with pytest.raises(ConnectFailed, match=r"no login to .* within"):
        transport.run(["true"], timeout_s=1.0)
    assert time.monotonic() - started < LIMIT_S


def test_a_host_key_alias_names_the_key(sshd, tmp_path):
    """HostKeyAlias is what known_hosts is searched for: containers may move between addresses."""
    key = sshd.known_hosts.read_text().partition(" ")[2]
    sshd.known_hosts.write_text(f"llm-129 {key}")
    config = tmp_path / "config"
    config.write_text(sshd.ssh_config("llm") + "  HostKeyAlias llm-129\n")
    transport = SshTransport("llm", options=SshOptions(config_file=config))
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0
    transport.close()


def test_several_hosts_are_told_apart(make_host):
    """Hosts in network namespaces of their own are reached on their addresses and port 22."""
    hosts = [make_host() for _ in range(3)]
    for host in hosts:
        transport = host.transport()
        seen = transport.run(["ip", "-o", "-4", "addr", "show", "eth0"], timeout_s=LIMIT_S)
        assert f" {host.host}/30 ".encode() in seen.stdout
        assert transport.where == f"{host.user}@{host.host}:22"
    assert len({host.host for host in hosts}) == 3
