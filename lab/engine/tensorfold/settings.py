"""What one rank was told: the argument vector and the environment, checked and turned into plain values.

Every refusal is a ValueError with the reason; it names the option or variable and the value that was given.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

NATIVE_WINDOW = 1_048_576
MAX_PARALLEL = 4
DEFAULT_RESERVE_GIB = 14.5
MLX_ONLY = ("prompt_cache_gib", "checkpoint_slots", "decode_share", "ssd_experts")


@dataclass(frozen=True)
class Settings:
    """One rank's checked settings; sizes in GiB, windows in tokens."""

    rank: int
    master: str
    master_port: int
    name: str
    host: str
    port: int
    context: int | None
    max_tokens: int
    parallel: int
    thinking: bool
    effort: str
    drafts: bool
    vision: bool
    vision_urls: bool
    kv: str
    dense: str
    comm: str
    split: bool
    cache_gib: float
    cache_slots: int
    reserve_gib: float
    sampling: Mapping[str, float]
    env: Mapping[str, str]

    @property
    def window_asked(self) -> int:
        """The window wanted, in tokens: the native one unless one was given; 0 = the largest that fits."""
        return NATIVE_WINDOW if self.context is None else self.context


def read_settings(arguments: argparse.Namespace, env: Mapping[str, str], name: str, drafts: bool) -> Settings:
    """Check everything that needs no file; `name` is what the model is called when --name is empty."""
    refuse_options(arguments)
    parallel = _parallel(arguments.parallel, drafts)
    reserve = _number(env, "TENSORFOLD_MEMORY_RESERVE_GIB", DEFAULT_RESERVE_GIB)
    if reserve < 2:
        raise ValueError(f"TENSORFOLD_MEMORY_RESERVE_GIB must be at least 2, not {reserve:g}")
    _refuse_environment(env)
    return Settings(
        rank=arguments.rank,
        master=arguments.master,
        master_port=arguments.master_port,
        name=arguments.name or name,
        host=arguments.host,
        port=arguments.port,
        context=arguments.context,
        max_tokens=arguments.max_tokens,
        parallel=parallel,
        thinking=arguments.thinking,
        effort=arguments.reasoning_effort or "medium",
        sampling=_given_sampling(arguments),
        drafts=drafts and not arguments.no_drafts,
        vision=arguments.vision,
        vision_urls=arguments.vision_urls,
        kv=_choice(env, "TF_GLM_KV", "bf16", ("bf16", "fp8")),
        dense=_choice(env, "TF_GLM_DENSE", "bf16", ("bf16", "fp8", "q4")),
        comm=_choice(env, "TF_GLM_COMM", "nccl", ("roce", "nccl")),
        split=_choice(env, "TF_GLM_HC_SPLIT", "0", ("0", "1")) == "1",
        cache_gib=_number(env, "TF_GLM_CACHE_GIB", 3.0),
        cache_slots=int(_number(env, "TF_GLM_CACHE_ENTRIES", 8)),
        reserve_gib=reserve,
        env=dict(env),
    )


def refuse_options(arguments: argparse.Namespace) -> None:
    """Refuse combinations that argparse lets through."""
    if arguments.rank == 1 and arguments.tp != 2:
        raise ValueError("--rank 1 needs --tp 2")
    if arguments.tp == 2 and not arguments.master:
        raise ValueError("--tp 2 needs --master, the address of rank 0")
    if arguments.tp != 2:
        raise ValueError(f"GLM-5.3-Flash on CUDA runs on exactly two ranks (--tp 2), not --tp {arguments.tp}")
    if arguments.backend == "mlx":
        raise ValueError("--backend mlx needs macOS")
    if arguments.vision_urls and not arguments.vision:
        raise ValueError("--vision-urls needs --vision")
    if arguments.kv_dtype != "bf16":
        raise ValueError(
            f"--kv-dtype {arguments.kv_dtype} is not for glm5_next; its FP8 cache is TF_GLM_KV=fp8"
        )
    for option in MLX_ONLY:
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option.replace('_', '-')} is not available for glm5_next on CUDA")
    if arguments.spill_gib or arguments.ple_on_ssd:
        raise ValueError("--spill-gib and --ple-on-ssd are not available for glm5_next on CUDA")
    window = arguments.context
    if window is not None and not 0 <= window <= NATIVE_WINDOW:
        raise ValueError(f"--context must be between 0 and the model's {NATIVE_WINDOW} tokens, not {window}")
    if arguments.max_tokens < 1:
        raise ValueError(f"--max-tokens must be positive, not {arguments.max_tokens}")


def _given_sampling(arguments: argparse.Namespace) -> dict[str, float]:
    """What the command line sets of sampling; the rest is the model's."""
    given = {key: getattr(arguments, key) for key in ("temperature", "top_p", "top_k", "min_p")}
    return {key: value for key, value in given.items() if value is not None}


def _parallel(text: str, drafts: bool) -> int:
    if text == "auto":
        return 1
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PARALLEL:
        raise ValueError(f"--parallel must be auto or a number from 1 to {MAX_PARALLEL}, not {text}")
    if int(text) > 1 and not drafts:
        raise ValueError(
            f"--parallel {text} needs the DFlash2 drafter; without it only one request is decoded"
        )
    return int(text)


def _refuse_environment(env: Mapping[str, str]) -> None:
    policy = env.get("TF_GLM_DFLASH_POLICY", "f")
    if not policy.startswith("f"):
        raise ValueError(f"TF_GLM_DFLASH_POLICY must begin with f, not {policy!r}")
    copies = _number(env, "TF_GLM_COPY_MAX", 15)
    if not 1 <= copies <= 15:
        raise ValueError(f"TF_GLM_COPY_MAX must be from 1 to 15, not {copies:g}")
    if _number(env, "TF_ROCE_MAX_KB", 256) <= 0:
        raise ValueError("TF_ROCE_MAX_KB must be positive")
    _choice(env, "TF_GLM_L2PF", "0", ("0", "off", "1", "bulk", "lines", "touch"))
    _choice(env, "TF_GLM_EXL3_LOADS", "0", ("0", "ldg", "1", "nc", "nc1", "nc2", "nc4"))


def _choice(env: Mapping[str, str], key: str, default: str, allowed: tuple[str, ...]) -> str:
    """A set but empty variable is a wrong value, not an unset one."""
    value = env.get(key, default)
    if value not in allowed:
        raise ValueError(f"{key} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def _number(env: Mapping[str, str], key: str, default: float) -> float:
    text = env.get(key)
    if text is None:
        return float(default)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{key} must be a number, not {text!r}") from None
