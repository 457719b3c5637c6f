"""Fixtures of the transports' tests."""

import pytest

from parts import needs


@pytest.fixture
def sshd_transport(sshd):
    """One transport for all examples of a test."""
    return sshd.transport()


@pytest.fixture
def shell_transports(make_sshd):
    """Transports to sshds that hand their commands to another login shell."""
    made = {}

    def to(shell):
        if shell not in made:
            path = needs.program(shell, shell)
            # What sshd does for a user with that login shell: `shell -c LINE`.
            forced = f'ForceCommand exec {path} -c "$SSH_ORIGINAL_COMMAND"'
            made[shell] = make_sshd(settings=[forced]).transport()
        return made[shell]

    return to
