"""Profiles with one mistake each, and the same without it: what each rule is held to."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.knowledge.flags import from_help
from eagleops.lint import UNASKED, ConfFile, Facts
from eagleops.profile import Profile, SecretReference

HELP = """
usage: x [-h]
  -h, --help            show
  --model-path MODEL, --model MODEL
  --port PORT           the port
  --tp-size N, --tensor-parallel-size N
  --load-format {auto,pt}
"""
ASKED = Facts(
    where="box",
    engine_version="0.4.6",
    flags=from_help("sglang", "0.4.6", HELP),
    gpu_count=4,
    nvlink=False,
    nccl_version="2.21.5",
)


@attrs.frozen
class Case:
    """One profile for one rule."""

    rule: str
    fires: bool
    profile: Profile
    facts: Facts = UNASKED
    hint: str = ""

    @property
    def name(self) -> str:
        """For the test's own name."""
        return f"{self.rule}-{'bad' if self.fires else 'good'}"


def sglang(**changes: Any) -> Profile:
    """A sound SGLang profile, changed."""
    return Profile(name="p", engine="sglang", model="/m", port=8000).with_(**changes)


def vllm(**changes: Any) -> Profile:
    """A sound vLLM profile, changed."""
    sound = {"host": "127.0.0.1"}
    profile = Profile(name="p", engine="vllm", model="/m", port=8000, args=sound)
    return profile.with_(**changes)


def env(**variables: str) -> Profile:
    """A sound profile with these variables."""
    return sglang(env=variables)


def args(**flags: Any) -> Profile:
    """A sound profile with these flags, underscores for dashes."""
    return sglang(args={name.replace("_", "-"): value for name, value in flags.items()})


EAGLE = {"speculative-algorithm": "EAGLE3", "speculative-draft-model-path": "/d"}
CHAIN = {
    **EAGLE,
    "speculative-num-steps": 2,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 3,
}


def conf(**settings: str) -> Facts:
    """A machine whose /etc/nccl.conf holds these."""
    return Facts(where="box", conf_files=(ConfFile(path="/etc/nccl.conf", settings=settings),))


# A rule, a profile that breaks it, one that does not, and what the finding must say.
PAIRS: list[tuple[str, Any, Any, str]] = [
    ("not-launchable", sglang(model=None), sglang(), "needs a model"),
    ("secret-literal", env(HF_TOKEN="hf_abc"), env(HF_TOKEN_X="true"), "secret: env:HF_TOKEN"),
    ("secret-argv", args(api_key={"secret": "env:K"}), sglang(), "command line"),
    ("shell-syntax", env(CACHE="$HOME/x"), env(CACHE="/root/x"), "'$HOME' stays"),
    ("stray-characters", env(A="'x'"), env(A="x"), "Write x."),
    ("inherit-set", sglang(env={"A": "1"}, inherit=["A"]), sglang(inherit=["A"]), "A is inherited"),
    ("witness", env(SPT_NOENV="0"), env(SPT_NOENV="1"), "overwrite /proc/PID/environ"),
    (
        "engine-variable",
        env(SGLANG_ALOW_OVERWRITE_LONGER_CONTEXT_LEN="1"),
        env(SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN="1"),
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN?",
    ),
    ("legacy-variable", env(SGL_X="1"), env(SGLANG_X="1"), "SGLANG_X"),
    ("nccl-number", env(NCCL_BUFFSIZE="4M"), env(NCCL_BUFFSIZE="4194304"), "Write 4194304."),
    ("nccl-range", env(NCCL_NTHREADS="1024"), env(NCCL_NTHREADS="256"), "from 64 to 512"),
    ("nccl-power-of-two", env(NCCL_BUFFSIZE="5000000"), env(NCCL_BUFFSIZE="8388608"), "4194304"),
    ("nccl-word", env(NCCL_ALGO="Rng"), env(NCCL_ALGO="^Tree"), "Did you mean Ring?"),
    ("nccl-level", env(NCCL_P2P_LEVEL="sys"), env(NCCL_P2P_LEVEL="SYS"), "Write SYS."),
    ("nccl-empty", env(NCCL_ALGO=""), env(NCCL_ALGO="Ring"), "counts as none"),
    ("nccl-unknown", env(NCCL_BUFSIZE="1"), env(NCCL_BUFFSIZE="65536"), "NCCL_BUFFSIZE?"),
    ("nccl-removed", env(NCCL_LL_THRESHOLD="1"), env(NCCL_PROTO="LL"), "since 2.5"),
    ("nccl-deprecated", env(NCCL_MAX_NCHANNELS="8"), env(NCCL_MAX_CTAS="8"), "NCCL_MAX_CTAS"),
    ("nccl-version", env(NCCL_ALGO="Collnet"), env(NCCL_ALGO="CollnetChain"), "after NCCL 2.13"),
    (
        "nccl-contradiction",
        env(NCCL_P2P_DISABLE="1", NCCL_P2P_LEVEL="SYS"),
        env(NCCL_P2P_DISABLE="0", NCCL_P2P_LEVEL="SYS"),
        "switches P2P off",
    ),
    (
        "nccl-twice",
        env(NCCL_MAX_NCHANNELS="8", NCCL_MAX_CTAS="4"),
        env(NCCL_MAX_CTAS="4"),
        "the lower value wins",
    ),
    ("nccl-ll128", env(NCCL_PROTO="LL128"), env(NCCL_PROTO="^LL128"), "corrupt data"),
    ("nccl-log", env(NCCL_DEBUG="WARN"), env(NCCL_DEBUG="TRACE"), "one witness less"),
    (
        "nccl-conf",
        (sglang(), conf(NCCL_ALGO="Tree")),
        (env(NCCL_ALGO="Tree"), conf(NCCL_ALGO="Tree")),
        "sets NCCL_ALGO=Tree",
    ),
    (
        "engine-overrides",
        env(CUDA_DEVICE_MAX_CONNECTIONS="1"),
        sglang(),
        "the profile's '1' is lost",
    ),
    (
        "engine-fills-in",
        sglang(),
        env(NCCL_CUMEM_ENABLE="0", NCCL_NVLS_ENABLE="0"),
        "NCCL_NVLS_ENABLE=0",
    ),
    ("flag-unknown", args(tp_sze=8), args(tp_size=8), "--tp-size?"),
    ("flag-removed", args(enable_ep_moe=True), args(ep_size=2), "Its heir: --ep-size."),
    (
        "flag-not-yet",
        (args(stream_interval=2, speculative_adaptive=True), ASKED),
        (args(tp_size=2), ASKED),
        "came by sglang 0.5.12",
    ),
    ("flag-deprecated", args(disable_cuda_graph=True), sglang(), "deprecated"),
    ("flag-abbreviated", args(mem_fraction="0.8"), args(mem_fraction_static="0.8"), "beginning"),
    ("flag-value", args(schedule_policy="fifo"), args(schedule_policy="fcfs"), "takes lpm"),
    ("flag-arity", args(trust_remote_code="yes"), args(trust_remote_code=True), "is a switch"),
    (
        "flag-twice",
        args(tp_size=2, tensor_parallel_size=4),
        args(tp_size=2),
        "different values",
    ),
    (
        "spec-tokens",
        sglang(args={**CHAIN, "speculative-num-draft-tokens": 5}),
        sglang(args=CHAIN),
        "speculative-num-draft-tokens: 3",
    ),
    (
        "spec-partial",
        sglang(args={**EAGLE, "speculative-eagle-topk": 1}),
        sglang(args=EAGLE),
        "AssertionError",
    ),
    ("spec-idle", args(speculative_num_steps=2), sglang(args=CHAIN), "nothing is speculated"),
    (
        "spec-algorithm",
        sglang(args={**EAGLE, "speculative-algorithm": "EAGEL3"}),
        sglang(args=EAGLE),
        "EAGLE3?",
    ),
    ("spec-draft", args(speculative_algorithm="EAGLE3"), sglang(args=EAGLE), "none is named"),
    (
        "spec-conflict",
        sglang(args={**EAGLE, "enable-mixed-chunk": True}),
        args(enable_mixed_chunk=True),
        "does nothing",
    ),
    (
        "spec-requests",
        sglang(args=EAGLE),
        sglang(args={**EAGLE, "max-running-requests": 64}),
        "48 requests",
    ),
    ("spec-fake", env(SGLANG_SIMULATE_ACC_LEN="3"), sglang(), "makes up"),
    (
        "spec-vocabulary",
        (sglang(args=EAGLE), Facts(model={"vocab_size": 9}, draft={"vocab_size": 8})),
        (sglang(args=EAGLE), Facts(model={"vocab_size": 9}, draft={"vocab_size": 9})),
        "9 tokens, its draft's 8",
    ),
    (
        "spec-config",
        vllm(args={"speculative-config": {"method": "eagle3", "num_speculative_tokens": 2}}),
        vllm(args={"speculative-config": {"method": "ngram", "num_speculative_tokens": 2}}),
        "none is named",
    ),
    ("gpus", sglang(gpus=[0, 1], args={"tp-size": 4}), sglang(gpus=[0, 1]), "ask for 4 GPUs"),
    (
        "heads",
        (args(tp_size=8), Facts(model={"num_attention_heads": 28})),
        (args(tp_size=4), Facts(model={"num_attention_heads": 28})),
        "4 would do",
    ),
    ("memory-fraction", args(mem_fraction_static=88), args(mem_fraction_static=0.88), "0.88"),
    (
        "context-length",
        (args(context_length=200000), Facts(model={"max_position_embeddings": 131072})),
        (args(context_length=100000), Facts(model={"max_position_embeddings": 131072})),
        "more than the model's 131072",
    ),
    (
        "custom-all-reduce",
        args(disable_custom_all_reduce=True),
        args(disable_custom_all_reduce=True, tp_size=8),
        "nothing to reduce",
    ),
    ("open-bind", args(host="0.0.0.0"), args(host="127.0.0.1"), "asks for no key"),
    ("port", sglang(port=80), sglang(port=8000), "root alone"),
    (
        "port-internal",
        args(nccl_port=8000),
        args(nccl_port=8001),
        "the port that the server listens on",
    ),
    (
        "path-absent",
        (sglang(), Facts(where="box", absent=frozenset({"/m"}))),
        (sglang(), Facts(where="box")),
        "box has no /m",
    ),
    (
        "engine-absent",
        (sglang(), Facts(where="box", engine_version="")),
        (sglang(), Facts(where="box", engine_version="0.5.9")),
        "is not installed",
    ),
]

# Profiles that a rule must leave alone beside those above.
FINE: list[tuple[str, Any]] = [
    ("gpus", (vllm(args={"data-parallel-size": 16, "data-parallel-size-local": 4}), ASKED)),
    (
        "gpus",
        (vllm(args={"tensor-parallel-size": 16, "distributed-executor-backend": "ray"}), ASKED),
    ),
    ("gpus", (args(tp_size=8, nnodes=2), ASKED)),
    ("gpus", (args(tp_size=4, dp_size=4, enable_dp_attention=True), ASKED)),
    ("nccl-word", env(NCCL_ALGO="ring,collnetdirect;allreduce:^tree;broadcast:ring")),
    ("nccl-word", env(NCCL_DEBUG="info", NCCL_DEBUG_SUBSYS="^COLL,env")),
    ("nccl-range", env(NCCL_NTHREADS="0", NCCL_MAX_CTAS="64")),
    ("nccl-number", env(NCCL_BUFFSIZE="0x400000")),
    ("nccl-unknown", env(NCCL_HOSTID="a")),
    ("flag-unknown", vllm(args={"no-enable-prefix-caching": True, "max_model_len": 4096})),
    ("flag-arity", args(cuda_graph_bs_decode=["1", "2"], tool_call_parser="kimi_k2")),
    ("secret-literal", args(max_total_tokens=4096, skip_tokenizer_init=True)),
    ("shell-syntax", vllm(args={"chat-template": "{{ x }}"})),
]

# The same rules by other mistakes: the rule, a profile, what is said.
MORE: list[tuple[str, Any, str]] = [
    ("nccl-number", env(NCCL_MAX_CTAS="010"), "octal"),
    ("nccl-number", env(NCCL_CUMEM_ENABLE="true"), "as 0"),
    ("nccl-number", env(NCCL_BUFFSIZE="1e6"), "as 1"),
    ("nccl-range", env(NCCL_NTHREADS="100"), "multiples of 32"),
    ("nccl-range", env(NCCL_NVLS_ENABLE="3"), "0, 1 and 2"),
    ("nccl-power-of-two", env(NCCL_BUFFSIZE="1024"), "too small"),
    ("nccl-word", env(NCCL_PROTO="LL,Simpel"), "Simple?"),
    ("nccl-word", env(NCCL_ALGO="allreduce:tree;ring"), "names no function"),
    ("nccl-word", env(NCCL_ALGO="alreduce:tree"), "none of its functions"),
    ("nccl-word", env(NCCL_ALGO="Ring,^Tree"), "before a whole list"),
    ("nccl-word", env(NCCL_DEBUG="DEBUG"), "does not know"),
    ("nccl-level", env(NCCL_P2P_LEVEL="3"), "stands for PHB"),
    ("nccl-level", env(NCCL_P2P_LEVEL="NODE"), "does not know"),
    ("nccl-contradiction", env(NCCL_MIN_CTAS="16", NCCL_MAX_CTAS="8"), "more than"),
    ("nccl-contradiction", env(NCCL_ALGO="NVLS", NCCL_NVLS_ENABLE="0"), "switches it off"),
    ("nccl-log", env(NCCL_DEBUG_SUBSYS="COLL"), "without ENV"),
    ("nccl-log", env(NCCL_DEBUG_FILE="/tmp/nccl.log"), "%p"),
    ("nccl-version", (env(NCCL_CUMEM_HOST_ENABLE="1"), ASKED), "came with NCCL 2.23"),
    ("flag-unknown", (args(bogus=True), ASKED), "has no flag --bogus"),
    ("flag-removed", vllm(args={"speculative-model": "/d"}), "--speculative-config"),
    ("flag-removed", vllm(args={"swap-space": 4}), "no longer swaps"),
    ("flag-abbreviated", args(cuda_graph_m="8"), "the engine refuses it"),
    ("flag-arity", args(tp_size=True), "takes a value"),
    (
        "spec-tokens",
        sglang(args={**CHAIN, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 64}),
        "9 tokens",
    ),
    ("spec-config", vllm(args={"speculative-config": "{method: x}"}), "no JSON"),
    ("spec-config", vllm(args={"speculative-config": {"method": "eagel3"}}), "eagle3?"),
    ("gpus", (args(tp_size=8), ASKED), "box has 4"),
    ("gpus", sglang(env={"CUDA_VISIBLE_DEVICES": "0"}, args={"tp-size": 2}), "leaves 1"),
    ("memory-fraction", vllm(args={"gpu-memory-utilization": 0.99}), "less than 5 %"),
    ("port", sglang(port=40000), "outgoing connections"),
    (
        "custom-all-reduce",
        (args(disable_custom_all_reduce=True, tp_size=4), attrs.evolve(ASKED, nvlink=True)),
        "costs speed",
    ),
    ("open-bind", vllm(args={"host": None}), "no host is given"),
    ("engine-variable", env(SGLANG_MY_OWN_THING="1"), "passes over it"),
    ("engine-variable", env(SGLANG_ENABLE_SPEC_V2="1"), "no more, from 0.5.23"),
    ("shell-syntax", sglang(python="~/env/bin/python3"), "~ stays ~"),
    ("stray-characters", sglang(model="/path/to/model"), "placeholder"),
    ("secret-literal", args(api_key="sk-1234"), "secret: env:API_KEY"),
]


def split(given: Any) -> tuple[Profile, Facts]:
    """A profile and its facts; none where it stands alone."""
    return given if isinstance(given, tuple) else (given, UNASKED)


CASES = [Case(rule, True, *split(bad), hint) for rule, bad, _, hint in PAIRS]
CASES += [Case(rule, True, *split(bad), hint) for rule, bad, hint in MORE]
SOUND = [Case(rule, False, *split(good)) for rule, _, good, _ in PAIRS]
SOUND += [Case(rule, False, *split(good)) for rule, good in FINE]

__all__ = ["CASES", "SOUND", "Case", "SecretReference"]
