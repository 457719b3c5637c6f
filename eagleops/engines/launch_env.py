"""The variables that eagleops adds to a profile's own."""

from __future__ import annotations

from eagleops.profile import Profile

# setproctitle writes its title over /proc/PID/environ. Told to leave the environment alone, it
# keeps that witness honest, at the price of a title no longer than the arguments were.
# https://github.com/dvarrazzo/py-setproctitle#environment-variables
KEEP_ENVIRON = {"SPT_NOENV": "1"}

# NCCL's log names each variable that it took; one file a process, in the state folder.
NCCL_LOG = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV",
    "NCCL_DEBUG_FILE": "{state_dir}/nccl.%p.log",
}


def launch_environment(profile: Profile, *, nccl_log: bool = True) -> dict[str, str]:
    """The profile's variables and those that eagleops adds.

    What the profile sets, inherits from the target, or gives as null is left alone.
    ``{state_dir}`` in NCCL_DEBUG_FILE stands for the server's state folder.

    Raises:
        ProfileError: if ``gpus`` and CUDA_VISIBLE_DEVICES name different GPUs.
    """
    added = {**KEEP_ENVIRON, **(NCCL_LOG if nccl_log else {}), **_visible_gpus(profile)}
    spoken_for = {*profile.unset, *profile.inherit}
    kept = {name: value for name, value in added.items() if name not in spoken_for}
    return {**kept, **profile.env}


def _visible_gpus(profile: Profile) -> dict[str, str]:
    if profile.gpus is None:
        return {}
    indices = ",".join(str(index) for index in profile.gpus)
    said = profile.env.get("CUDA_VISIBLE_DEVICES", indices)
    if said != indices:
        raise profile.error(
            f"contradicts gpus: {said} is not {indices}",
            "Say it once, as `gpus:`.",
            key="env.CUDA_VISIBLE_DEVICES",
        )
    # CUDA counts the fastest GPU first unless told; nvidia-smi, and so hosts.yaml, by bus.
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": indices}
