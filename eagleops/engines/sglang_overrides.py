"""The variables that SGLang sets by itself, read in 0.4.6.post5, 0.5.3 to 0.5.9 and 0.5.23.

They are set in the main process before its workers are spawned, so they stand in the workers'
initial environment, and differ from what the main process itself was started with.
"""

from __future__ import annotations

from eagleops.engines.flags import count
from eagleops.engines.overrides import Override, Rule, flag
from eagleops.profile import Profile

_CONFIG = "entrypoints/engine.py, _set_envs_and_config"
_SYMM_MEM = flag("enable-symm-mem")
_NVLS = flag("enable-nccl-nvls")


def _several_ranks(profile: Profile) -> bool:
    return any(
        count(profile, *names) > 1
        for names in (
            ("tp-size", "tensor-parallel-size", "tp"),
            ("dp-size", "data-parallel-size", "dp"),
            ("ep-size", "expert-parallel-size", "ep"),
        )
    )


def _neither(profile: Profile) -> bool:
    return not _SYMM_MEM(profile) and not _NVLS(profile)


RULES = (
    Rule(
        (
            Override("NCCL_CUMEM_ENABLE", "0", True, "", "up to 0.5.4", _CONFIG),
            Override("NCCL_CUMEM_ENABLE", "0", False, "", "from 0.5.5 on", _CONFIG),
        ),
        lambda profile: not _SYMM_MEM(profile),
    ),
    Rule(
        (
            Override("NCCL_NVLS_ENABLE", "0", True, "", "up to 0.5.4", _CONFIG),
            Override("NCCL_NVLS_ENABLE", "0", False, "", "from 0.5.5 on", _CONFIG),
        ),
        _neither,
    ),
    Rule(
        (
            Override("NCCL_CUMEM_ENABLE", "1", True, "with --enable-symm-mem", "", _CONFIG),
            Override(
                "NCCL_NVLS_ENABLE", "1", True, "with --enable-symm-mem", "from 0.5.5 on", _CONFIG
            ),
        ),
        _SYMM_MEM,
    ),
    Rule((Override("NCCL_NVLS_ENABLE", "1", True, "with --enable-nccl-nvls", "", _CONFIG),), _NVLS),
    Rule(
        (
            Override(
                "NCCL_GRAPH_MIXING_SUPPORT",
                "0",
                False,
                "with --dcp-size above 1",
                "0.5.23",
                _CONFIG,
            ),
        ),
        flag("dcp-size", "decode-context-parallel-size"),
    ),
    Rule(
        (
            Override(
                "NCCL_GRAPH_REGISTER",
                "0",
                False,
                "with several ranks and CUDA graphs",
                "0.5.23",
                "arg_groups/parallel_hook.py",
            ),
        ),
        _several_ranks,
    ),
    Rule(
        (
            Override(
                "NCCL_ALGO",
                "allreduce:tree",
                True,
                "with --enable-deterministic-inference and several ranks",
                "from 0.5.3 on",
                "arg_groups/attention_hook.py; server_args.py before",
            ),
            Override(
                "NCCL_MIN_NCHANNELS",
                None,
                True,
                "with --enable-deterministic-inference and several ranks",
                "0.5.23",
                "arg_groups/attention_hook.py",
            ),
            Override(
                "NCCL_MAX_NCHANNELS",
                None,
                True,
                "with --enable-deterministic-inference and several ranks",
                "0.5.23",
                "arg_groups/attention_hook.py",
            ),
        ),
        flag("enable-deterministic-inference"),
    ),
    Rule(
        (
            Override("NCCL_CUMEM_ENABLE", "1", False, "on MNNVL machines", "0.5.23", _CONFIG),
            Override("NCCL_MNNVL_ENABLE", "1", False, "on MNNVL machines", "0.5.23", _CONFIG),
        ),
        lambda profile: count(profile, "nnodes") > 1,
    ),
    Rule(
        (
            Override("CUDA_DEVICE_MAX_CONNECTIONS", "4", True, "", "up to 0.5.4", _CONFIG),
            Override("CUDA_DEVICE_MAX_CONNECTIONS", "8", True, "", "from 0.5.5 on", _CONFIG),
            Override("CUDA_MODULE_LOADING", "AUTO", True, "", "up to 0.5.17", _CONFIG),
            Override("TORCH_NCCL_AVOID_RECORD_STREAMS", "1", True, "", "0.4.6", _CONFIG),
            Override("TF_CPP_MIN_LOG_LEVEL", "3", True, "", "up to 0.5.4", _CONFIG),
            Override("TRTLLM_ENABLE_PDL", "1", True, "where it is not 0", "from 0.5.3 on", _CONFIG),
            Override("SGLANG_RUN_ID", None, True, "", "from 0.5.3 on", _CONFIG),
            Override("CUTE_DSL_LOG_LEVEL", "30", False, "", "from 0.5.3 on", _CONFIG),
            Override("CUTE_DSL_LOG_TO_CONSOLE", "1", False, "", "from 0.5.3 on", _CONFIG),
            Override("TRITON_CACHE_DIR", None, False, "", "0.5.23", "environ.py"),
            Override("TORCHINDUCTOR_CACHE_DIR", None, False, "", "0.5.23", "environ.py"),
            Override("CUDA_CACHE_PATH", None, False, "", "0.5.23", "environ.py"),
            Override("FLASHINFER_WORKSPACE_BASE", None, False, "", "0.5.23", "environ.py"),
            Override("FLASHINFER_CUDA_ARCH_LIST", None, True, "", "0.5.9 on", "utils/common.py"),
            Override(
                "TOKENIZERS_PARALLELISM", "false", True, "", "", "managers/tokenizer_manager.py"
            ),
        )
    ),
    Rule(
        (
            Override(
                "PROMETHEUS_MULTIPROC_DIR",
                None,
                False,
                "with --enable-metrics",
                "",
                "utils/common.py",
            ),
        ),
        flag("enable-metrics"),
    ),
)
