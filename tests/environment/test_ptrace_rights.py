"""Why memory may not be read: the kernel's rule in words, each with its exact remedy."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from eagleops.remote.ptrace_rights import Rights, explain, rights_over
from environment.programs import as_nobody, c_worker
from parts import needs

ALLOWED = Rights(
    uid=1000,
    capable=False,
    yama=0,
    target_uid=1000,
    dumpable=True,
    same_user_namespace=True,
    initial_user_namespace=True,
    fewer_capabilities=False,
)
ROOT = "let the machine be entered as root (address: root@... in hosts.yaml)"
YAMA_OFF = (
    f"run `sysctl -w kernel.yama.ptrace_scope=0` as root (for a container: on its host), or {ROOT}"
)
LOOK_FOR_A_MODULE = (
    "a security module forbids it: see /proc/PID/attr/current and, for SELinux, "
    f"`getsebool deny_ptrace`; or {ROOT}"
)


@pytest.mark.parametrize(
    ("changes", "why", "way_out"),
    [
        (
            {"yama": 1},
            "kernel.yama.ptrace_scope is 1 and this user (uid 1000) has no CAP_SYS_PTRACE",
            YAMA_OFF,
        ),
        (
            {"yama": 2},
            "kernel.yama.ptrace_scope is 2 and this user (uid 1000) has no CAP_SYS_PTRACE",
            YAMA_OFF,
        ),
        (
            {"yama": 3, "capable": True},
            "kernel.yama.ptrace_scope is 3: no process may read another's memory",
            "remove the setting from /etc/sysctl.d and boot: until then nobody can lift it",
        ),
        (
            {"target_uid": 0, "yama": 1},
            "the process belongs to uid 0, and this is uid 1000 without CAP_SYS_PTRACE",
            f"enter the machine as that user, or {ROOT}",
        ),
        (
            {"dumpable": False},
            "the process has made itself undumpable (prctl, or a setuid program)",
            "Let the machine be entered as root (address: root@... in hosts.yaml)",
        ),
        (
            {"uid": 0, "target_uid": 0, "fewer_capabilities": True},
            "the process has capabilities that this one lacks, CAP_SYS_PTRACE among them",
            "give the container CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)",
        ),
        (
            {"uid": 0, "capable": True, "same_user_namespace": False},
            "the process is in another user namespace, where this user has no CAP_SYS_PTRACE",
            "verify from outside the container: as root on the host, with --pid",
        ),
        (
            {
                "uid": 0,
                "capable": True,
                "same_user_namespace": None,
                "initial_user_namespace": False,
            },
            "the process is in another user namespace, where this user has no CAP_SYS_PTRACE",
            "verify from outside the container: as root on the host, with --pid",
        ),
        (
            {},
            "reading the process's memory was refused (Permission denied)",
            LOOK_FOR_A_MODULE,
        ),
    ],
)
def test_each_refusal_names_its_cause_and_its_remedy(changes, why: str, way_out: str) -> None:
    """One cause at a time, as the kernel weighs them."""
    assert explain(changed(changes), errno.EACCES) == (why, way_out)


def changed(changes: dict[str, object]) -> Rights:
    """The rights of an ordinary user over an own process, changed."""
    return ALLOWED._replace(**changes)


def test_a_kernel_without_yama_is_one_that_does_not_object() -> None:
    """The file is not there, and that is no setting."""
    assert explain(ALLOWED._replace(yama=None))[0].startswith("reading the process's memory")


def test_an_undumpable_process_is_told_from_its_proc_folder(build, tmp_path: Path) -> None:
    """The kernel gives such a process's files to root."""
    needs.root("another user")
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    with c_worker(build("worker.c"), ["undumpable"], **nobody) as told:
        assert rights_over(told.pid).dumpable is False
    with c_worker(build("worker.c"), **nobody) as told:
        seen = rights_over(told.pid)

    assert (seen.dumpable, seen.target_uid, seen.same_user_namespace) == (True, 65534, True)


def test_an_undumpable_process_of_ones_own_is_refused_with_the_reason(build, tmp_path) -> None:
    """The same user alone is not enough."""
    from eagleops.session import Session
    from eagleops.transport.local import LocalTransport

    python = as_nobody(tmp_path, "/usr/bin/python3")
    tmp_path.chmod(0o755)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    reader = Session.open(LocalTransport(), python=str(python))
    with c_worker(build("worker.c"), ["undumpable"], **nobody) as told:
        process = reader.call("environ", pid=told.pid)["processes"][0]
    with c_worker(build("worker.c"), (), {"NCCL_ALGO": "Ring"}, **nobody) as told:
        plain = reader.call("environ", pid=told.pid)["processes"][0]
    reader.close()

    assert process["live"]["why"] == (
        "the process has made itself undumpable (prctl, or a setuid program)"
    )
    assert plain["live"]["variables"] == {"NCCL_ALGO": "Ring"}


def test_root_of_another_user_namespace_is_told_so(build, tmp_path: Path) -> None:
    """Its capabilities count inside alone."""
    from eagleops.errors import NoInterpreter
    from eagleops.session import Session
    from eagleops.transport.local import LocalTransport

    unshare = needs.program("unshare", "util-linux")
    script = tmp_path / "python-in-a-namespace"
    script.write_text(f'#!/bin/sh\nexec {unshare} --user --map-root-user /usr/bin/python3 "$@"\n')
    script.chmod(0o755)
    try:
        reader = Session.open(LocalTransport(), python=str(script))
    except NoInterpreter:
        needs.cannot("no user namespaces here")
    with c_worker(build("worker.c")) as told:
        process = reader.call("environ", pid=told.pid)["processes"][0]
    reader.close()

    assert process["live"]["why"] == (
        "the process is in another user namespace, where this user has no CAP_SYS_PTRACE"
    )
