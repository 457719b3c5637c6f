"""Who uses a machine's GPUs, from hand-made looks at it."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.gpu import Gpu
from eagleops.process import Process, Viewpoint
from eagleops.server import ServerFacts
from eagleops.snapshot import MachineFacts, Snapshot, container_processes
from eagleops.workflows.nightly.users import narrowed, server_name, users_of

IDLE_MIB = 100


def gpu(index: int, *, used_mib: int = 4, uuid: str = "", **more: Any) -> Gpu:
    """A GPU; its UUID is its index's unless said otherwise."""
    return Gpu(index, uuid=uuid or f"GPU-{index}", used_mib=used_mib, **more)


def process(pid: int, *gpus: int, **more: Any) -> Process:
    """A process that holds these GPUs."""
    told = {"title": f"python train{pid}.py", "comm": "python", "user": "ada", "uid": 1000, **more}
    return Process(pid, start_ticks=pid, gpu_devices=gpus, nspid=told.pop("nspid", (pid,)), **told)


def look(
    *processes: Process, gpus: tuple[Gpu, ...] = (gpu(0), gpu(1)), servers: Any = (), **more: Any
) -> Snapshot:
    """What a machine tells of itself."""
    machine = MachineFacts("box", "boot", "2026-11-30T04:30:00Z", "6.1", "3.11", "root", 0)
    return Snapshot(
        machine, "nvml", None, "580", gpus, processes, tuple(servers), Viewpoint(0, "root", **more)
    )


def server(name: str, state: str = "ready", profile: str = "p") -> ServerFacts:
    """A launched server."""
    return ServerFacts(name, state, pid=10, launch_id=name, profile=profile)


def test_idle_gpus_are_used_by_nobody() -> None:
    """No holder, no memory: nobody."""
    users = users_of(look(), None, IDLE_MIB)

    assert not users.anybody
    assert users.levels == {"0": 100, "1": 100}


def test_bystanders_use_nothing_and_their_memory_counts_as_free() -> None:
    """A display server and a monitor have the device file open: their MiB belong to the level."""
    xorg = process(7, 0, comm="Xorg", title="/usr/bin/Xorg", gpu_mib={"GPU-0": 300})
    watcher = process(8, 0, 1, comm="nvtop", title="nvtop")

    users = users_of(look(xorg, watcher, gpus=(gpu(0, used_mib=320), gpu(1))), None, IDLE_MIB)

    assert not users.anybody
    assert users.levels["0"] == 400


def test_anybody_else_who_holds_a_gpu_uses_it() -> None:
    """A job of somebody's, told by PID, title and user; an orphan as well."""
    users = users_of(look(process(42, 1), process(43, 0, ppid=1)), None, IDLE_MIB)

    assert [one.pid for one in users.others] == [42, 43]
    assert "PID 42 (python train42.py, ada)" in users.words


def test_a_living_server_of_eagleops_is_a_user_and_what_a_dead_one_left_is_stale() -> None:
    """So is one that still starts and holds nothing yet."""
    seen = look(
        process(11, 0, server="lives"),
        process(12, 1, server="died"),
        servers=[server("lives"), server("died", "exited"), server("begins", "starting")],
    )
    users = users_of(seen, None, IDLE_MIB)

    assert [one.name for one in users.servers] == ["lives", "begins"]
    assert [(name, [p.pid for p in found]) for name, found in users.stale] == [("died", [12])]
    assert not users.others


def test_a_server_that_another_night_left_behind_is_stale_though_it_lives() -> None:
    """Its name says whose it is; the host's lock says that its night is gone."""
    name = server_name("baseline")
    left = server(name, profile="baseline")
    users = users_of(look(process(11, 0, server=name), servers=[left]), None, IDLE_MIB)

    assert not users.anybody
    assert [name for name, _ in users.stale] == ["nightly-baseline"]


def test_a_server_that_is_merely_called_like_a_night_s_is_a_user() -> None:
    """Its profile says that no night launched it."""
    mine = server("nightly-mine", profile="nightly-mine")
    users = users_of(look(process(11, 0, server=mine.name), servers=[mine]), None, IDLE_MIB)

    assert users.servers == (mine,)
    assert not users.stale


def test_a_server_works_where_its_gpus_do() -> None:
    """Another's work on another GPU is not its own."""
    gpus = (gpu(0, utilization_pct=60), gpu(1, utilization_pct=0))
    servers = [server("busy"), server("rests")]
    holders = (process(11, 0, server="busy"), process(12, 1, server="rests"))

    assert users_of(look(*holders, gpus=gpus, servers=servers), None, IDLE_MIB).working == ("busy",)


def test_memory_that_nobody_holds_is_somebodys() -> None:
    """A reading above the idle level without a holder: it is told, and kept apart."""
    users = users_of(look(gpus=(gpu(0, used_mib=5000), gpu(1))), None, IDLE_MIB)

    assert users.anybody
    assert [one.index for one in users.unseen] == [0]
    assert "GPU 0: 5,000 MiB by nobody in sight" in users.words


def test_what_runs_in_a_container_of_a_host_is_foreign_to_the_host() -> None:
    """A reset of the host spares it, so nothing on the host may force it away."""
    users = users_of(look(process(42, 0, container="129")), None, IDLE_MIB)

    assert [one.pid for one in users.foreign] == [42]
    assert "container 129" in users.words


def test_a_container_is_told_by_its_host_who_shares_its_gpus() -> None:
    """Another container's job on a shared GPU counts; one on another GPU does not."""
    inside = look(gpus=(gpu(0, uuid="GPU-3", used_mib=5000),))
    host = look(
        process(500, 3, container="130", nspid=(500, 7)),
        process(600, 2, container="131", nspid=(600, 9)),
        gpus=tuple(gpu(index) for index in range(4)),
    )
    users = users_of(inside, container_processes(host, "129"), IDLE_MIB)

    assert [one.pid for one in users.foreign] == [500]
    assert users.unseen == ()  # its memory is explained


def test_a_container_that_does_not_see_its_own_processes_is_told_by_its_host() -> None:
    """They may be ended by a reset, which asks the host too; nobody is told twice."""
    inside = look(process(7, 0), gpus=(gpu(0),))
    seen = process(500, 0, container="129", nspid=(500, 7))
    hidden = attrs.evolve(seen, pid=501, start_ticks=501, nspid=(501, 8))
    host = look(seen, hidden, gpus=(gpu(0),))

    users = users_of(inside, container_processes(host, "129"), IDLE_MIB)

    assert [one.pid for one in users.others] == [7, 501]
    assert users.foreign == ()


def test_of_some_gpus_their_own_users_count() -> None:
    """Jobs, servers and memory on other GPUs are left out; a server that begins may take any."""
    seen = look(
        process(11, 0, server="elsewhere"),
        process(12, 1, 0, server="both"),
        process(42, 0),
        process(43, 0, 1),
        gpus=(gpu(0, used_mib=9000), gpu(1, used_mib=4), gpu(2, used_mib=9000)),
        servers=[server("elsewhere"), server("both"), server("begins", "starting")],
    )
    users = users_of(narrowed(seen, [1]), None, IDLE_MIB)

    assert [one.name for one in users.servers] == ["both", "begins"]
    assert [one.pid for one in users.others] == [43]
    assert users.unseen == ()
    assert set(users.levels) == {"1"}
    assert users_of(narrowed(seen, None), None, IDLE_MIB) == users_of(seen, None, IDLE_MIB)


def test_whom_a_reset_would_end_besides() -> None:
    """Those of all GPUs, without those of the GPUs that were asked for."""
    seen = look(process(42, 0), process(43, 1), process(44, 0, container="7"))
    every = users_of(seen, None, IDLE_MIB)

    beside = every.without(users_of(narrowed(seen, [1]), None, IDLE_MIB))

    assert [one.pid for one in (*beside.others, *beside.foreign)] == [42]


def test_a_server_s_name_is_one_that_a_server_may_have() -> None:
    """However long the profile's is."""
    assert server_name("p" * 80) == "nightly-" + "p" * 56
