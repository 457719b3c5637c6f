"""Root causes that every engine on PyTorch shares: memory, driver, NCCL, modules, files, flags.

The texts are those of PyTorch 2.4 to 2.11, NCCL 2.18 to 2.30, transformers, huggingface_hub,
argparse and uvicorn.
"""

from __future__ import annotations

from eagleops.engines.failures import FailurePattern, pattern

_BUSY_GPU = "See who holds the GPU: eagleops status. Free it: eagleops reset-gpus."

MEMORY = (
    pattern(
        "cuda_out_of_memory",
        r"OutOfMemoryError: CUDA out of memory\. (?P<detail>.+? is free)",
        "a GPU ran out of memory: {detail}",
        f"Give the engine less of it, or the model more GPUs. {_BUSY_GPU}",
    ),
    pattern(
        "cuda_out_of_memory",
        r"OutOfMemoryError: CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation",
        "a GPU ran out of memory",
        f"Give the engine less of it, or the model more GPUs. {_BUSY_GPU}",
    ),
    pattern(
        "host_out_of_memory",
        r"^MemoryError|DefaultCPUAllocator: can't allocate memory"
        r"|OSError: \[Errno 12\] Cannot allocate memory",
        "the machine ran out of memory (RAM, not the GPUs')",
        "See `free -g` there, and a container's own limit; a model that is loaded by several "
        "ranks at once needs it several times.",
    ),
    pattern(
        "shared_memory_full",
        r"No space left on device.*/dev/shm|/dev/shm.*No space left on device"
        r"|unable to (?:mmap|allocate shared memory).*shm|insufficient shared memory \(shm\)",
        "/dev/shm is full",  # noqa: S108 - a sentence, not a path
        "See `df -h /dev/shm` there, and give a container more of it.",
    ),
    pattern(
        "disk_full",
        r"\[Errno 28\] No space left on device(?::? '?(?P<path>[^']+)'?)?",
        "a disk is full {path}",
        "See `df -h` there: logs, compiled kernels and downloaded models fill it.",
    ),
)

DRIVER = (
    pattern(
        "driver_too_old",
        r"(?P<detail>CUDA driver version is insufficient for CUDA runtime version"
        r"|The NVIDIA driver on your system is too old[^.]*)",
        "the NVIDIA driver is too old for this PyTorch: {detail}",
        "Update the driver (on the host, for a container), or install a PyTorch that was built "
        "for an older CUDA.",
    ),
    pattern(
        "driver_mismatch",
        r"Error 803|system has unsupported display driver / cuda driver combination"
        r"|Driver/library version mismatch",
        "the NVIDIA driver in the kernel and its libraries are of different versions",
        "Load the new driver (a reboot does), and give a container the libraries of its host.",
    ),
    pattern(
        "no_gpu",
        r"Error 802|No CUDA GPUs are available|Found no NVIDIA driver|CUDA_ERROR_NO_DEVICE"
        r"|no CUDA-capable device is detected",
        "no GPU is usable",
        "See `nvidia-smi` there, CUDA_VISIBLE_DEVICES, the container's device files, and on "
        "NVSwitch machines the fabric manager.",
    ),
    pattern(
        "too_few_gpus",
        r"CUDA error: invalid device ordinal"
        r"|World size \(\d+\) is larger than the number of available GPUs",
        "it wants more GPUs than it can see",
        "See its tensor-parallel size, `gpus:` in the profile, and CUDA_VISIBLE_DEVICES.",
    ),
    pattern(
        "no_kernel_for_gpu",
        r"no kernel image is available for execution on the device"
        r"|is not compatible with the current PyTorch installation",
        "a library was not built for this GPU",
        "Install builds for its compute capability (Blackwell needs CUDA 12.8 or newer).",
    ),
    pattern(
        "gpu_fault",
        r"CUDA error: (?P<detail>an illegal memory access was encountered"
        r"|uncorrectable ECC error encountered|unspecified launch failure|misaligned address)",
        "a GPU reported: {detail}",
        "Look for Xid lines: `dmesg | grep -i xid`. CUDA_LAUNCH_BLOCKING=1 in the profile's env "
        "names the kernel.",
    ),
)

NCCL = (
    pattern(
        "nccl_bad_value",
        r"Unrecognized (?:element|prefix) token \"(?P<token>[^\"]*)\"",
        "NCCL does not know {token}, a word of NCCL_ALGO or NCCL_PROTO",
        "Correct it in the profile's env.",
    ),
    pattern(
        "nccl_no_algorithm",
        r"(?P<detail>No algorithm/protocol available for function .*)",
        "NCCL_ALGO or NCCL_PROTO leave NCCL no way: {detail}",
        "Name more of them in the profile's env, or set them to null.",
    ),
    pattern(
        "nccl_error",
        r"NCCL error(?: in)?: (?P<detail>.{1,200})",
        "NCCL failed: {detail}",
        "NCCL's own log, nccl.<pid>.log in the server's state folder, says what it tried.",
        general=True,
        sharper=("nccl_bad_value", "nccl_no_algorithm"),
    ),
    pattern(
        "rank_unreachable",
        r"(?P<detail>(?:DistStoreError|TimeoutError|RuntimeError): .*"
        r"(?:client socket has timed out|Timed out after \d+ seconds waiting for clients"
        r"|Timed out waiting for clients).{0,100})",
        "the ranks did not find one another: {detail}",
        "See that every node runs, its dist-init address and port, and firewalls between them.",
    ),
)

MODULES = (
    pattern(
        "no_such_engine",
        r"No module named '?(?P<module>sglang|vllm)(?:\.\w+)*'?\)?$",
        "{module} is not installed for this interpreter",
        "Name the interpreter of its environment as `python:` in the profile or the host.",
    ),
    pattern(
        "missing_module",
        r"^ModuleNotFoundError: No module named '(?P<module>[^']+)'",
        "Python module {module} is not installed (ModuleNotFoundError)",
        "Install it for the interpreter that runs the engine, or choose a backend that does "
        "without it; `python:` in the profile or the host says which interpreter that is.",
    ),
    pattern(
        "missing_library",
        r"^(?:ImportError|OSError): (?P<library>lib[^:\s]+): cannot open shared object file",
        "the library {library} is not there",
        "Install it, or name its folder in LD_LIBRARY_PATH in the profile's env.",
    ),
    pattern(
        "bad_import",
        r"^ImportError: (?P<detail>.{1,200})",
        "an import failed: {detail}",
        "Two packages do not fit together: compare their versions with what the engine asks for.",
    ),
    pattern(
        "no_compiler",
        r"Could not find nvcc|CUDA_HOME environment variable is not set"
        r"|nvcc: (?:command )?not found|fatal error: Python\.h: No such file"
        r"|Failed to find C compiler|'ninja': '?ninja'?"
        r"|Ninja is required to load C\+\+ extensions",
        "kernels cannot be compiled there: a compiler or its headers are missing",
        "Install nvcc (CUDA_HOME), a C compiler, ninja and Python's headers there.",
    ),
)

MODEL = (
    pattern(
        "no_such_model",
        r"Repo id must be in the form [^:]*: '(?P<model>[^']*)'",
        "there is no such model: {model}",
        "See `model:` in the profile; a path is one on that machine, inside the container.",
    ),
    pattern(
        "no_such_model",
        r"(?P<detail>\S+ is not a local folder and is not a valid model identifier"
        r"|Incorrect path_or_model_id: '[^']*'"
        r"|Repository Not Found for url: \S+"
        r"|\S+ does not appear to have a file named config\.json"
        r"|Can't load the configuration of '[^']*'"
        r"|Invalid repository ID or local directory specified: '[^']*'"
        r"|can't find model '[^']*')",
        "there is no such model: {detail}",
        "See `model:` in the profile; a path is one on that machine, inside the container.",
    ),
    pattern(
        "gated_model",
        r"GatedRepoError|Access to model \S+ is restricted|401 Client Error",
        "the model's repository wants a login",
        "Let the server have HF_TOKEN: name it under `inherit:` in the profile.",
    ),
    pattern(
        "no_download",
        r"We couldn't connect to '?https://huggingface\.co|LocalEntryNotFoundError"
        r"|OfflineModeIsEnabled",
        "the model is not on that machine and cannot be downloaded",
        "Download it first, or name its folder as `model:`.",
    ),
    pattern(
        "remote_code",
        r"Please pass the argument `trust_remote_code=True`"
        r"|requires you to execute the configuration file in that repo",
        "the model brings code of its own, and the engine was not told to trust it",
        "Read that code, then put `trust-remote-code: true` among the profile's args.",
    ),
    pattern(
        "broken_weights",
        r"(?P<detail>SafetensorError: .{1,120}|Cannot find any model weights with .{1,200})",
        "the model's weights cannot be read: {detail}",
        "The download may be incomplete: compare the files' sizes with the repository's.",
    ),
    pattern(
        "model_not_supported",
        r"(?P<detail>Model architectures .{1,120} (?:are not supported|failed)"
        r"|does not recognize this architecture"
        r"|model type `[^`]*` but Transformers does not recognize)",
        "this version of the engine does not know the model: {detail}",
        "A newer engine, or a newer transformers, may.",
    ),
    pattern(
        "does_not_divide",
        r"(?P<detail>(?:Total )?[Nn]umber of attention heads.*must be divisible by[^.\[]{1,80}"
        r"|\d+ is not divisible by \d+)",
        "the model cannot be split over so many GPUs: {detail}",
        "Choose a tensor-parallel size that divides its attention heads.",
    ),
    pattern(
        "context_too_long",
        r"User-specified (?:max_model_len|context_length) \((?P<asked>\d+)\) is greater than the "
        r"derived \w+ \((?:\w+=)?(?P<most>\d+)",
        "a context of {asked} tokens is asked for, and the model is made for {most}",
        "Ask for less, or let the engine allow it (SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 or "
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 in the profile's env) and mistrust the answers.",
    ),
)

COMMAND_LINE = (
    pattern(
        "unknown_flag",
        r"error: unrecognized arguments: (?P<flags>.{1,200})",
        "this version of the engine does not know {flags}",
        "Correct it among the profile's args; a flag may have gone or come with another version.",
    ),
    pattern(
        "bad_flag",
        r"(?P<detail>error: (?:argument \S+:|the following arguments are required:"
        r"|ambiguous option:).{1,200})",
        "the engine refused a flag: {detail}",
        "Correct it among the profile's args.",
    ),
    pattern(
        "port_in_use",
        r"(?P<detail>\[Errno 98\].{0,120}|[Aa]ddress already in use.{0,80})",
        "its port is taken: {detail}",
        "See who listens there: eagleops doctor. Stop them, or choose another `port:`.",
    ),
    pattern(
        "too_many_files",
        r"\[Errno 24\] Too many open files",
        "it may not open so many files",
        "Raise the limit: `ulimit -n` there, or LimitNOFILE of the container.",
    ),
    pattern(
        "no_permission",
        r"^PermissionError: \[Errno 13\] Permission denied: (?P<path>.{1,200})",
        "it may not open {path}",
        "See that file's owner and rights, and the user that eagleops logs in as.",
    ),
)

COMMON: tuple[FailurePattern, ...] = (
    *MEMORY,
    *NCCL,
    *DRIVER,
    *MODEL,
    *MODULES,
    *COMMAND_LINE,
)
