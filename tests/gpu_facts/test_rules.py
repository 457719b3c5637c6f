"""What a reset may end: the rules, as a table, and what else is derived from a snapshot."""

from __future__ import annotations

import os

import attrs
import pytest

from eagleops.bundle import bootstrap
from eagleops.gpu import Gpu, GpuProcess
from eagleops.process import Process, Viewpoint, bystander, judge
from eagleops.remote import process_table
from eagleops.remote.processes import facts
from eagleops.snapshot import (
    MachineFacts,
    Snapshot,
    container_processes,
    held_without_holder,
    idle_levels,
    plan_reset,
)

ROOT = Viewpoint(uid=0, user="root", pid_ns=10)
WORKER = Process(
    pid=1006,
    start_ticks=5000,
    uid=0,
    user="root",
    title="sglang::scheduler_TP0",
    comm="sglang::schedul",
    nspid=(1006,),
    pid_ns=10,
    gpu_devices=(0,),
    device_files=("/dev/nvidia0", "/dev/nvidiactl"),
    gpu_mib={"GPU-0": 21950},
)
SHELLED = "/usr/bin/python3 /usr/bin/nvitop -m full"


def like(**changes) -> Process:
    """The worker, with changes."""
    return attrs.evolve(WORKER, **changes)


def called(title: str, comm: str = "") -> Process:
    """A holder of GPU 0 of that title; its short name as the kernel would cut it."""
    return like(title=title, comm=comm or title.split(maxsplit=1)[0].rpartition("/")[2][:15])


MPS = "stop it by: echo quit | nvidia-cuda-mps-control"
CASES = {
    "a worker": (WORKER, True, "holds GPU 0 (21,950 MiB)"),
    "a worker on several GPUs, memory not told": (
        like(gpu_devices=(0, 3), gpu_mib={"GPU-0": None}),
        True,
        "holds GPU 0, 3",
    ),
    "another user's, asked by root": (
        like(uid=1000, user="alice"),
        True,
        "holds GPU 0 (21,950 MiB); it is alice's",
    ),
    "a member of a launched tree that holds nothing": (
        like(server="baseline", gpu_devices=(), device_files=(), gpu_mib={}),
        True,
        "of server baseline, launched here",
    ),
    "a zombie of a launched tree": (
        like(server="baseline", state="Z"),
        True,
        "of server baseline, launched here",
    ),
    "the persistence daemon": (
        called("/usr/bin/nvidia-persistenced --user nvidia-persistenced"),
        False,
        "nvidia-persistenced keeps the driver initialised; without it clocks and limits are lost",
    ),
    "the persistence daemon, by its cut name alone": (
        like(title="", comm="nvidia-persiste"),
        False,
        "nvidia-persistenced keeps the driver initialised; without it clocks and limits are lost",
    ),
    "the power daemon": (
        called("/usr/bin/nvidia-powerd"),
        False,
        "nvidia-powerd steers the GPUs' power",
    ),
    "DCGM": (
        called("/usr/bin/nv-hostengine -n --service-account nvidia-dcgm"),
        False,
        "nv-hostengine is DCGM, which watches the GPUs",
    ),
    "DCGM's exporter": (
        called("/usr/bin/dcgm-exporter -f /etc/counters.csv"),
        False,
        "dcgm-exporter only watches the GPUs",
    ),
    "an exporter of another make": (
        called("/opt/nvidia_gpu_exporter --web.listen-address=:9835"),
        False,
        "nvidia_gpu_expo only watches the GPUs",
    ),
    "MPS's server": (
        called("nvidia-cuda-mps-server"),
        False,
        f"nvidia-cuda-mps-server serves other processes' CUDA work (MPS); {MPS}",
    ),
    "MPS's control": (
        called("nvidia-cuda-mps-control -d"),
        False,
        f"nvidia-cuda-mps-control serves other processes' CUDA work (MPS); {MPS}",
    ),
    "a display server": (
        called("/usr/lib/xorg/Xorg :0 -auth /run/x"),
        False,
        "Xorg draws a screen",
    ),
    "a compositor": (called("/usr/bin/gnome-shell"), False, "gnome-shell draws a screen"),
    "Xwayland": (called("/usr/bin/Xwayland :0"), False, "Xwayland draws a screen"),
    "a loop of nvidia-smi": (
        called("nvidia-smi --loop-ms=500 --query-gpu=memory.used"),
        False,
        "nvidia-smi only watches the GPUs",
    ),
    "nvtop": (called("nvtop"), False, "nvtop only watches the GPUs"),
    "a watcher that Python runs": (
        called(SHELLED, "python3"),
        False,
        "python3 only watches the GPUs",
    ),
    "a watcher that Python runs as a module": (
        called("python3 -B -m gpustat -i", "python3"),
        False,
        "python3 only watches the GPUs",
    ),
    "an eagleops session of somebody else": (
        called(f"/usr/bin/python3 -I -c {bootstrap('eagleops-0123456789abcdef')}", "python3"),
        False,
        "an eagleops session that looks at the GPUs",
    ),
    "another container's": (
        like(container="130", nspid=(1006, 12), pid_ns=99),
        False,
        "belongs to container 130",
    ),
    "another container's server of the same name": (
        like(container="130", nspid=(1006, 12), pid_ns=99, server="baseline"),
        False,
        "belongs to container 130",
    ),
    "the host's, seen from a container with the host's PIDs": (
        like(cgroup="/../../system.slice/ollama.service"),
        False,
        "runs outside of the container",
    ),
    "a PID namespace below": (
        like(nspid=(1006, 12), pid_ns=99),
        False,
        "runs in another PID namespace",
    ),
    "a PID namespace whose depth is the same": (
        like(pid_ns=99),
        False,
        "runs in another PID namespace",
    ),
    "a PID that only the driver's list knows": (
        like(gpu_devices=(), device_files=(), title="/usr/sbin/cron", comm="cron"),
        False,
        "holds no GPU device file here: the driver's list means another namespace's PID",
    ),
    "who has only the common device files": (
        like(gpu_devices=(), device_files=("/dev/nvidia-uvm", "/dev/nvidiactl"), gpu_mib={}),
        False,
        "has no GPU's own device file open, so it holds no GPU memory",
    ),
    "who holds nothing": (
        like(gpu_devices=(), device_files=(), gpu_mib={}),
        False,
        "holds no GPU",
    ),
    # Names that only look like a bystander's.
    "a program with a bystander's name in its arguments": (
        called("python3 train.py --monitor nvidia-smi", "python3"),
        True,
        "holds GPU 0 (21,950 MiB)",
    ),
    "Python code that is no script": (
        called("python3 -c import nvitop", "python3"),
        True,
        "holds GPU 0 (21,950 MiB)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_rule_says_kill_or_spare_and_why(case: str):
    """Seen by root on the machine itself."""
    process, kill, reason = CASES[case]

    judgement = judge(process, ROOT)

    assert (judgement.kill, judgement.reason) == (kill, reason)


def test_another_users_process_is_shown_with_the_right_that_may_lack():
    """Whoever is not root learns before trying that the kill may be refused."""
    bob = Viewpoint(uid=1001, user="bob", pid_ns=10)

    judgement = judge(like(uid=1000, user="alice"), bob)

    assert judgement.kill is True
    assert judgement.reason == (
        "holds GPU 0 (21,950 MiB); it is alice's, and bob may lack the right to end it"
    )


def test_a_namespace_that_cannot_be_read_is_judged_by_the_pids_alone():
    """Another user's namespace link is closed; that there is one PID says enough."""
    assert judge(like(pid_ns=None), ROOT).kill is True
    assert judge(like(pid_ns=None, nspid=(1006, 12)), ROOT).kill is False


def test_inside_a_container_its_own_name_is_not_foreign():
    """Without a cgroup namespace a container sees its own name on all of its processes."""
    inside = Viewpoint(uid=0, container="129", pid_ns=10)

    assert judge(like(container="129"), inside).kill is True
    assert judge(like(container=None), inside).reason == "runs outside of the container"


def test_a_judgement_is_a_row_of_the_document():
    """PID, title, user, container and reason, as the commands promise."""
    assert judge(WORKER, ROOT).to_dict() == {
        "pid": 1006,
        "title": "sglang::scheduler_TP0",
        "user": "root",
        "container": None,
        "reason": "holds GPU 0 (21,950 MiB)",
    }


def test_the_marker_of_a_session_is_the_one_that_sessions_have():
    """The rule knows today's bootstrap; were that changed, this fails."""
    title = f"python3 -I -c {bootstrap('eagleops-' + 'a' * 16)}"

    assert bystander(called(title, "python3")) == "an eagleops session that looks at the GPUs"


def test_a_real_session_bears_the_marker(session):
    """As its title reads in /proc, after secrets were left out."""
    table = process_table.table().values()
    own = [Process.from_dict(facts(s.pid)) for s in table if s.ppid == os.getpid()]

    told = {bystander(process) for process in own}

    assert "an eagleops session that looks at the GPUs" in told


# Snapshots ------------------------------------------------------------------------------

MACHINE = MachineFacts("pve", "boot", "2026-11-30T06:39:42Z", "6.8", "3.11", "root", 0, pid_ns=10)


def snapshot(*processes: Process, used_mib: tuple[int | None, ...] = (21959,)) -> Snapshot:
    """A host with these processes and a GPU for each figure."""
    gpus = tuple(Gpu(n, uuid=f"GPU-{n}", used_mib=mib) for n, mib in enumerate(used_mib))
    return Snapshot(MACHINE, "nvml", None, "580", gpus, processes, (), ROOT)


def test_a_plan_judges_every_process_once():
    """Killed and spared together are all that was seen."""
    daemon = called("/usr/bin/nvidia-persistenced")

    plan = plan_reset(snapshot(WORKER, daemon))

    assert [judgement.process for judgement in plan.kill] == [WORKER]
    assert [judgement.process for judgement in plan.spare] == [daemon]


def test_memory_without_a_holder_is_told():
    """A monitor that has the device file open does not explain 22 GB."""
    monitor = called("nvtop")

    assert held_without_holder(snapshot(WORKER), 100) == ()
    assert [gpu.index for gpu in held_without_holder(snapshot(), 100)] == [0]
    assert [gpu.index for gpu in held_without_holder(snapshot(monitor), 100)] == [0]
    assert held_without_holder(snapshot(used_mib=(100, None)), 100) == ()


def test_idle_levels_let_the_spared_keep_what_they_have():
    """A display's 214 MiB belong to the idle state of its machine."""
    display = like(title="Xorg", comm="Xorg", gpu_mib={"GPU-0": 214, "GPU-1": None})
    look = snapshot(display, used_mib=(300, 0))

    spare = plan_reset(look).spare

    assert idle_levels(look, 100, spare) == {"0": 314, "1": 100}
    assert idle_levels(look, 100) == {"0": 100, "1": 100}


HOST_INSIDE = like(container="129", nspid=(1006, 12), pid_ns=99)
HOST_OTHER = like(pid=2000, container="1290", nspid=(2000, 7), pid_ns=98, gpu_mib={"GPU-0": 500})


def test_a_container_is_reset_through_its_host_by_the_hosts_pids():
    """Its own processes are killed; those of a neighbour and of the host are spared."""
    narrowed = container_processes(snapshot(HOST_INSIDE, HOST_OTHER, WORKER), "129")

    plan = plan_reset(narrowed)

    assert [p.pid for p in narrowed.processes] == [1006]
    assert [j.process for j in plan.kill] == [HOST_INSIDE]
    assert [(j.process.pid, j.reason) for j in plan.spare] == [
        (2000, "belongs to container 1290"),
        (1006, "runs outside of the container"),
    ]
    assert HOST_INSIDE.container_pid == 12
    assert WORKER.container_pid is None


def test_what_neighbours_hold_counts_as_idle_for_the_container():
    """A GPU shared with another container drains to what that one holds."""
    look = snapshot(HOST_INSIDE, HOST_OTHER)

    spare = plan_reset(container_processes(look, "129")).spare

    assert idle_levels(look, 100, spare) == {"0": 600}


def test_a_namespace_below_the_containers_is_spared_through_the_host_too():
    """Docker inside of the container is another container there as well."""
    nested = attrs.evolve(HOST_INSIDE, pid=1500, nspid=(1500, 40, 3), pid_ns=97)

    plan = plan_reset(container_processes(snapshot(HOST_INSIDE, nested), "129"))

    assert [j.process.pid for j in plan.kill] == [1006]
    assert [j.reason for j in plan.spare] == ["runs in another PID namespace"]


def test_a_process_attached_without_the_namespace_is_spared():
    """What the host's administrator started in the container's cgroup alone is the host's."""
    attached = attrs.evolve(HOST_INSIDE, pid=1500, nspid=(1500,), pid_ns=10)

    plan = plan_reset(container_processes(snapshot(attached, HOST_INSIDE), "129"))

    assert [j.process.pid for j in plan.kill] == [1006]


def test_a_docker_id_of_any_length_names_its_container():
    """The cgroup is told by twelve characters, the inventory may have all."""
    whole = "4f1c" * 16
    inside = attrs.evolve(HOST_INSIDE, container=whole[:12])
    look = snapshot(inside)

    assert len(container_processes(look, whole).processes) == 1
    assert len(container_processes(look, whole[:12]).processes) == 1
    assert len(container_processes(look, "1299").processes) == 0


def test_a_snapshot_is_read_from_the_operations_json():
    """Fields of a later remote package are ignored; what is null stays None."""
    data = {
        "machine": {**attrs.asdict(MACHINE), "later": 1},
        "gpu_source": "nvml",
        "gpu_problem": None,
        "driver_found": True,
        "driver_version": None,
        "gpus": [
            {
                "index": 1,
                "used_mib": None,
                "power_w": 12,
                "throttle_reasons": ["gpu_idle", "sw_power_cap"],
                "processes": [{"pid": 5, "used_mib": None}],
                "later": [],
            }
        ],
        "processes": [{"pid": 5, "start_ticks": 7, "gpu_mib": {"GPU-1": None}, "nspid": [5]}],
        "servers": [{"name": "baseline", "state": "ready"}],
    }

    look = Snapshot.from_dict(data)

    (gpu,) = look.gpus
    assert (gpu.used_mib, gpu.power_w, gpu.processes) == (None, 12.0, (GpuProcess(5),))
    assert gpu.slowdowns == ("sw_power_cap",)
    assert gpu.holds_more_than(0) is False
    assert Gpu(0).slowdowns is None
    assert look.viewpoint == ROOT
    assert [server.name for server in look.servers] == ["baseline"]
    assert look.processes[0] == Process(5, 7, nspid=(5,), gpu_mib={"GPU-1": None})
    assert Gpu.from_dict(gpu.to_dict()) == gpu
    assert Process.from_dict(WORKER.to_dict()) == WORKER
