"""The prefixes that lead into containers, and how their programs say no."""

import pytest

from eagleops.errors import ConnectFailed
from eagleops.transport.inside import InsideTransport
from eagleops.transport.local import LocalTransport
from eagleops.transport.wrappers import Docker, Incus, LxcAttach, Pct, Sudo


@pytest.mark.parametrize(
    ("wrapper", "where", "argv"),
    [
        (Pct(129), "pct 129", "pct exec 129 --keep-env 0 -- a b"),
        (Pct(129, keep_env_option=False), "pct 129", "pct exec 129 -- a b"),
        (
            Pct(129, program="/usr/sbin/pct"),
            "pct 129",
            "/usr/sbin/pct exec 129 --keep-env 0 -- a b",
        ),
        (LxcAttach("llm"), "lxc llm", "lxc-attach -n llm --clear-env -- a b"),
        (LxcAttach("llm", "/srv"), "lxc llm", "lxc-attach -P /srv -n llm --clear-env -- a b"),
        (Docker("sglang"), "docker sglang", "docker exec -i sglang a b"),
        (Docker("sglang", program="podman"), "podman sglang", "podman exec -i sglang a b"),
        (Incus("llm"), "incus llm", "incus exec llm --mode=non-interactive -- a b"),
        (Sudo(), "sudo root", "sudo -n -- a b"),
        (Sudo("ml"), "sudo ml", "sudo -n -u ml -- a b"),
    ],
)
def test_a_wrapper_is_a_prefix(wrapper, where, argv):
    """Each wrapper puts its program's words in front and changes nothing of the argv."""
    assert wrapper.where == where
    assert wrapper.argv(["a", "b"]) == tuple(argv.encode().split())


def test_wrappers_compose():
    """A container inside a container is a transport inside a transport."""
    outer = InsideTransport(LocalTransport(where="pve"), Pct(129))
    inner = InsideTransport(outer, Docker("sglang"))
    assert inner.where == "pve > pct 129 > docker sglang"


NO_SUCH_PLACE = [
    (
        Pct(129),
        "Configuration file 'nodes/pve/lxc/129.conf' does not exist\n",
        "there is no container 129 on this node",
        "See which there are, and on which node: pct list; pvesh get /cluster/resources.",
    ),
    (
        Docker("sglang"),
        "Error response from daemon: No such container: sglang\n",
        "there is no container sglang",
        "See docker ps --all.",
    ),
    (
        Docker("sglang", program="podman"),
        'Error: no container with name or ID "sglang" found: no such container\n',
        "there is no container sglang",
        "See podman ps --all.",
    ),
    *(
        (
            Docker("sglang"),
            f"{words}\n",
            "docker does not reach its daemon",
            "Does it run, and may this user ask it? By hand: docker ps.",
        )
        for words in (
            (
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker "
                "daemon running?"
            ),
            (
                "failed to connect to the docker API at unix:///var/run/docker.sock; check if the "
                "path is correct and if the daemon is running"
            ),
            (
                "Got permission denied while trying to connect to the Docker daemon socket at "
                "unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission "
                "denied"
            ),
        )
    ),
    (
        Incus("llm"),
        'Error: Failed to fetch instance "llm" in project "default": Instance not found\n',
        "there is no instance llm",
        "See incus list.",
    ),
]
NO_INIT = (
    "lxc-attach: 129: ../src/lxc/attach.c: get_attach_context: 406 Connection refused - "
    "Failed to get init pid\n"
    "lxc-attach: 129: ../src/lxc/attach.c: lxc_attach: 1470 Connection refused - "
    "Failed to get attach context\n"
)
NO_PROGRAM_INSIDE = (
    "lxc-attach: 129: ../src/lxc/attach.c: lxc_attach_run_command: 1841 No such file or directory "
    '- Failed to exec "python9"\n'
)
NOT_RUNNING = [
    (Pct(129), "container '129' not running!\n", "pct start 129"),
    (Pct(129), "Error: container '129' not running!\n", "pct start 129"),
    (Pct(129), NO_INIT, "pct start 129"),
    (LxcAttach("129"), NO_INIT, "lxc-start -n 129"),
    (
        Docker("129"),
        "Error response from daemon: container 5f1c is not running\n",
        "docker start 129",
    ),
    (
        Docker("129", program="podman"),
        "Error: can only create exec sessions on running containers: container state improper\n",
        "podman start 129",
    ),
]


@pytest.mark.parametrize(("wrapper", "stderr", "problem", "way_out"), NO_SUCH_PLACE)
def test_a_container_that_is_not_there_is_named(wrapper, stderr, problem, way_out):
    """The program's words for a missing container become a connection error with the way out."""
    error = InsideTransport(LocalTransport(where="pve"), wrapper).explain(stderr)
    assert isinstance(error, ConnectFailed)
    assert str(error) == f"pve > {wrapper.where}: {problem}\n{way_out}"


@pytest.mark.parametrize(("wrapper", "stderr", "start"), NOT_RUNNING)
def test_a_container_that_does_not_run_is_named(wrapper, stderr, start):
    """The program's words for a stopped container become a connection error with the way out."""
    error = InsideTransport(LocalTransport(where="pve"), wrapper).explain(stderr)
    assert str(error) == (f"pve > {wrapper.where}: container 129 does not run\nStart it: {start}")


def test_a_stopped_incus_instance_is_named():
    """Incus says it in its own way."""
    error = InsideTransport(LocalTransport(where="pve"), Incus("llm")).explain(
        "Error: Instance is not running\n"
    )
    assert error.problem == "instance llm does not run"


@pytest.mark.parametrize(
    "stderr",
    [
        "bash: line 1: exec: pct: not found\n",
        "sh: 1: exec: pct: not found\n",
        "zsh:1: command not found: pct\n",
        "fish: Unknown command: pct\nfish: \nexec 'pct' 'exec'\n     ^~~~^\n",
        "pct: not found\n",
    ],
)
def test_a_host_without_the_program_is_named(stderr):
    """Every login shell's words for a missing pct are known."""
    error = InsideTransport(LocalTransport(where="pve"), Pct(129)).explain(stderr)
    assert error.problem == "pct is not there"


@pytest.mark.parametrize(
    "stderr",
    [
        "",
        "the server is not running\n",
        "python3: can't open file 'x': No such file or directory\n",
        "container '130' not running!\n",
        NO_PROGRAM_INSIDE,
        "bash: line 1: nvidia-smi: command not found\n",
    ],
)
@pytest.mark.parametrize("wrapper", [Pct(129), LxcAttach("129"), Docker("129"), Incus("129")])
def test_what_the_command_itself_says_is_no_refusal(wrapper, stderr):
    """A command's own complaint on stderr is not taken for the way in."""
    transport = InsideTransport(LocalTransport(where="pve"), wrapper)
    assert (transport.explain(stderr), transport.adapt(stderr)) == (None, False)


def test_sudo_that_wants_a_password_is_named():
    """Sudo -n never asks; its refusal says what to allow."""
    error = InsideTransport(LocalTransport(where="pve"), Sudo()).explain(
        "sudo: unable to resolve host pve\nsudo: a password is required\n"
    )
    assert str(error) == (
        "pve > sudo root: sudo to root is not allowed without a password\n"
        "Allow it with NOPASSWD in sudoers, or log in as that user."
    )
