"""known_hosts as OpenSSH reads it, with OpenSSH's own ssh-keygen for a judge."""

import base64
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.transport.host_keys import (
    HostKey,
    Judgement,
    KnownHosts,
    Standing,
    lookup_name,
    parse,
    record,
)
from parts import needs
from parts.sshd import public

ED25519 = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(range(32)))
OTHER = HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + bytes(32))
RSA = HostKey("ssh-rsa", b"\0\0\0\x07ssh-rsa and so on")


def known(*lines):
    """What these lines of a file say."""
    return KnownHosts(parse("\n".join(lines)))


def standing(hosts, host, key, port=22):
    """The standing alone."""
    return hosts.judge(host, port, key).standing


def test_a_fingerprint_is_the_one_that_openssh_prints(ssh_keys):
    """The fingerprint of a key is the text that ssh-keygen -l prints for it."""
    printed = subprocess.run(
        ["ssh-keygen", "-lf", ssh_keys.host.with_suffix(".pub")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()[1]
    key_type, encoded = public(ssh_keys.host).split()
    assert HostKey(key_type, base64.b64decode(encoded)).fingerprint == printed


@pytest.mark.parametrize(
    ("line", "host", "port", "expected"),
    [
        ("example.com {key}", "example.com", 22, Standing.KNOWN),
        ("example.com {key}", "EXAMPLE.com", 22, Standing.KNOWN),
        ("Example.com {key}", "example.com", 22, Standing.KNOWN),
        ("example.com {key}", "example.org", 22, Standing.UNKNOWN),
        ("example.com,192.0.2.6 {key}", "192.0.2.6", 22, Standing.KNOWN),
        ("*.example.com {key}", "pve.example.com", 22, Standing.KNOWN),
        ("*.example.com,!bad.example.com {key}", "bad.example.com", 22, Standing.UNKNOWN),
        ("192.0.2.? {key}", "192.0.2.6", 22, Standing.KNOWN),
        ("192.0.2.? {key}", "192.0.2.16", 22, Standing.UNKNOWN),
        ("[example.com]:2222 {key}", "example.com", 2222, Standing.KNOWN),
        ("[example.com]:2222 {key}", "example.com", 22, Standing.UNKNOWN),
        ("[example.com]:2222 {key}", "example.com", 2223, Standing.UNKNOWN),
        ("[*]:2222 {key}", "example.com", 2222, Standing.KNOWN),
        # As in OpenSSH, a line without a port is good for every port.
        ("example.com {key}", "example.com", 2222, Standing.KNOWN),
        ("example.com {other}", "example.com", 22, Standing.CHANGED),
        ("example.com {rsa}", "example.com", 22, Standing.CHANGED),
        ("example.com {other}\nexample.com {key}", "example.com", 22, Standing.KNOWN),
        ("@revoked * {key}\nexample.com {key}", "example.com", 22, Standing.REVOKED),
        ("@revoked * {key}", "example.com", 2222, Standing.REVOKED),
        ("@revoked * {other}\nexample.com {key}", "example.com", 22, Standing.KNOWN),
        ("@cert-authority * {key}", "example.com", 22, Standing.UNKNOWN),
        ("# example.com {key}", "example.com", 22, Standing.UNKNOWN),
        ("", "example.com", 22, Standing.UNKNOWN),
        ("example.com ssh-ed25519", "example.com", 22, Standing.UNKNOWN),
        ("example.com ssh-ed25519 not-base64!", "example.com", 22, Standing.UNKNOWN),
    ],
)
def test_a_line_is_about_the_hosts_it_names(line, host, port, expected):
    """A key's standing follows known_hosts' rules: patterns, ports, markers, other keys."""
    text = line.format(key=ED25519.text, other=OTHER.text, rsa=RSA.text)
    assert standing(known(text), host, ED25519, port) is expected


def test_a_judgement_names_the_line():
    """The line that a changed key contradicts is named, so that it can be found and removed."""
    hosts = KnownHosts(parse(f"# first\nexample.com {OTHER.text}\n", "/root/.ssh/known_hosts"))
    judgement = hosts.judge("example.com", 22, ED25519)
    assert (judgement.standing, judgement.line.place, judgement.line.key) == (
        Standing.CHANGED,
        "/root/.ssh/known_hosts:2",
        OTHER,
    )


def test_a_missing_file_holds_nothing(tmp_path):
    """A known_hosts file that is not there is no error: it holds no key."""
    assert KnownHosts.read([tmp_path / "none"]).judge("h", 22, ED25519) == Judgement(
        Standing.UNKNOWN
    )


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("port", [22, 2222])
def test_openssh_finds_what_we_record(tmp_path, hashed, port):
    """A key that we record is found by ssh-keygen -F, hashed or not, and by ourselves."""
    keygen = needs.program("ssh-keygen", "openssh-client")
    file = tmp_path / ".ssh" / "known_hosts"
    record(file, "Example.com", port, ED25519, hashed=hashed)
    argv = [keygen, "-F", lookup_name("example.com", port), "-f", file]
    found = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert ED25519.text in found
    assert ("example.com" in file.read_text()) is not hashed
    assert standing(KnownHosts.read([file]), "example.com", ED25519, port) is Standing.KNOWN
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("port", [22, 2222])
def test_we_find_what_openssh_hashed(tmp_path, port):
    """A name that ssh-keygen -H has hashed is found."""
    keygen = needs.program("ssh-keygen", "openssh-client")
    file = tmp_path / "known_hosts"
    file.write_text(f"{lookup_name('example.com', port)} {ED25519.text}\n")
    subprocess.run([keygen, "-H", "-f", file], check=True, capture_output=True)
    assert "example.com" not in file.read_text()
    hosts = KnownHosts.read([file])
    assert standing(hosts, "example.com", ED25519, port) is Standing.KNOWN
    assert standing(hosts, "example.org", ED25519, port) is Standing.UNKNOWN


def test_recording_adds_a_line_and_keeps_the_rest(tmp_path):
    """What stood in the file stays, also where its last line had no end."""
    file = tmp_path / "known_hosts"
    file.write_text(f"a.example.com {OTHER.text}")
    record(file, "b.example.com", 22, ED25519)
    assert file.read_text() == f"a.example.com {OTHER.text}\nb.example.com {ED25519.text}\n"


def test_ten_recorders_write_one_line(tmp_path):
    """A key that several record at once stands in the file once."""
    file = tmp_path / "known_hosts"
    threads = [
        threading.Thread(target=record, args=(file, "example.com", 22, ED25519)) for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.read_text() == f"example.com {ED25519.text}\n"


@given(st.text())
def test_reading_never_fails(text):
    """Any text at all is read as lines or passed over."""
    for line in parse(text):
        line.matches("example.com")


@given(st.from_regex(r"[a-z0-9*?!,.\-\[\]:|]{1,30}", fullmatch=True))
def test_no_pattern_breaks_matching(patterns):
    """Any first field is compared without an error, and never matches by accident of a regex."""
    for line in parse(f"{patterns} {ED25519.text}"):
        assert line.matches("\n") in {True, False}
