"""Into a real LXC container, by a pct that behaves as Proxmox's."""

import pytest

from eagleops.errors import ConnectFailed, NoInterpreter
from eagleops.session import Session
from eagleops.transport.inside import InsideTransport, LxcAttach, Pct
from eagleops.transport.local import LocalTransport
from parts.poll import processes_with

LIMIT_S = 30.0


@pytest.fixture
def stopped(make_container):
    """A container that exists and does not run."""
    return make_container(start=False)


def test_a_command_runs_inside(container, sshd):
    """Through SSH and pct, a command sees the container's name and processes."""
    inside = container.inside(sshd.transport())
    assert inside.where == f"{sshd.address} > pct {container.vmid}"
    assert inside.run(["uname", "-n"], timeout_s=LIMIT_S).stdout == b"llm\n"
    assert inside.run(["cat", "/proc/1/comm"], timeout_s=LIMIT_S).stdout == b"sleep\n"


def test_the_hosts_environment_stays_out(container, make_sshd):
    """With --keep-env 0 nothing of the Proxmox host's environment reaches the container."""
    host = make_sshd(environment={"NCCL_PROTO": "LL"})
    inside = container.inside(host.transport())
    assert b"NCCL" not in inside.run(["env"], timeout_s=LIMIT_S).stdout


def test_a_container_that_does_not_run_is_a_connection_error(stopped, sshd):
    """Neither a run nor a session takes pct's refusal for the command's own failure."""
    inside = stopped.inside(sshd.transport())
    expected = (
        f"{inside.where}: container {stopped.vmid} does not run\nStart it: pct start {stopped.vmid}"
    )
    with pytest.raises(ConnectFailed) as refused:
        inside.run(["true"], timeout_s=LIMIT_S)
    assert str(refused.value) == expected
    with pytest.raises(ConnectFailed) as refused:
        Session.open(inside)
    assert str(refused.value) == expected


def test_a_container_that_is_not_there_is_a_connection_error(container, sshd):
    """A vmid that this node does not have is named as such."""
    inside = InsideTransport(sshd.transport(), Pct(99, program=str(container.pct)))
    with pytest.raises(ConnectFailed, match="there is no container 99 on this node"):
        Session.open(inside)


def test_a_host_without_pct_is_a_connection_error(sshd):
    """A host that has no pct is told apart from a container that has no python3."""
    inside = InsideTransport(sshd.transport(), Pct(129, program="no-such-pct"))
    with pytest.raises(ConnectFailed, match="no-such-pct is not there"):
        Session.open(inside)


def test_a_container_without_the_interpreter_is_told_apart(container, sshd):
    """A container that was reached and has no such python is a NoInterpreter error."""
    inside = container.inside(sshd.transport())
    with pytest.raises(NoInterpreter) as missing:
        Session.open(inside, python="/root/ml-env/bin/python3")
    assert (missing.value.exit_status_seen, missing.value.host) == (127, inside.where)
    assert "/root/ml-env/bin/python3 did not answer" in str(missing.value)


@pytest.mark.parametrize("use", ["run", "session"])
def test_a_pct_from_before_keep_env_is_called_without_it(container, make_sshd, use):
    """A pct that does not know --keep-env has run nothing, and is asked again without it."""
    host = make_sshd(environment={"PARTS_PCT_OLD": "1"})
    inside = container.inside(host.transport())
    if use == "run":
        assert inside.run(["uname", "-n"], timeout_s=LIMIT_S).stdout == b"llm\n"
    else:
        Session.open(inside).close()
    assert inside.wrapper == Pct(container.vmid, str(container.pct), keep_env_option=False)


def test_an_old_pct_names_a_stopped_container_too(stopped, make_sshd):
    """Before 5.0.9 pct left it to lxc-attach to find that the container does not run."""
    host = make_sshd(environment={"PARTS_PCT_OLD": "1"})
    with pytest.raises(ConnectFailed, match=f"container {stopped.vmid} does not run"):
        Session.open(stopped.inside(host.transport()))


def test_lxc_attach_leads_in_too(container):
    """Plain LXC needs no pct."""
    wrapper = LxcAttach(str(container.vmid), path=str(container.containers))
    inside = InsideTransport(LocalTransport(), wrapper)
    assert inside.run(["uname", "-n"], timeout_s=LIMIT_S).stdout == b"llm\n"


def test_a_lxc_container_that_does_not_run_is_named(stopped):
    """lxc-attach's words for a stopped container are known."""
    wrapper = LxcAttach(str(stopped.vmid), path=str(stopped.containers))
    with pytest.raises(ConnectFailed, match=f"container {stopped.vmid} does not run"):
        InsideTransport(LocalTransport(), wrapper).run(["true"], timeout_s=LIMIT_S)


def test_a_stopped_container_leaves_nothing(make_container):
    """The tests' own container ends with everything in it, and its cgroups go."""
    made = make_container()
    made.run(["sh", "-c", f"sleep 500 >/dev/null 2>&1 & : {made.vmid}"])
    assert processes_with(str(made.vmid))
    made.stop()
    assert processes_with(f"{made.vmid}") == []
