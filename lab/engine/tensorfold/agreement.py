"""What both ranks must have in common before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .memory import Need, window_refusal
from .settings import NATIVE_WINDOW, Settings

# Compared between the ranks. DENSE, COMM, the cache size, --max-tokens, --vision and --thinking are not.
COMPARED = (
    "TF_GLM_LATENT",
    "TF_GLM_KV",
    "TF_GLM_PREFILL_ROWS",
    "TF_GLM_PROMPT_GRID",
    "TF_GLM_COPY_DRAFTS",
    "TF_GLM_COPY_MAX",
    "TF_GLM_COPY_REPLY_MATCH",
    "TF_GLM_HC_SPLIT",
    "TF_GLM_PREFILL_OVERLAP",
    "TF_GLM_OVERLAP_PIECES",
    "TF_GLM_SHARED_PREFIX",
    "TF_GLM_MTP",
    "TF_GLM_MULTI_LONE",
    "TF_GLM_MULTI_PREFILL",
    "TENSORFOLD_NUCLEUS_UNION",
    "TF_GLM_MAX_ROWS",
    "TF_GLM_WIDE_GRAPHS",
    "TF_GLM_DFLASH_POLICY",
)


def statement(
    settings: Settings, drafter: Path | None, need: Need, fault: str | None, forced: int | None
) -> dict[str, Any]:
    """What a rank tells the other; `fault`: what is wrong with its weights; `forced`: a feigned window."""
    fits = need.largest_window() if forced is None else forced
    return {
        "native": NATIVE_WINDOW,
        "context": settings.context,
        "fault": fault,
        "fits": fits,
        "agree": [
            ["draft model", drafter.name if drafter else None],
            ["drafts", settings.drafts],
            ["context", settings.window_asked, settings.context is not None],
            ["parallel", settings.parallel],
            *([key, settings.env.get(key)] for key in COMPARED),
        ],
    }


def agree(rank: int, mine: dict[str, Any], theirs: dict[str, Any]) -> int:
    """The window both ranks take; the same ValueError or RuntimeError on both if they cannot go on."""
    zero, one = (mine, theirs) if rank == 0 else (theirs, mine)
    if (zero["native"], zero["context"]) != (one["native"], one["context"]):
        raise ValueError(
            "CUDA ranks have different native windows or context flags; start both with the same flags"
        )
    faults = [f"rank {number}: {side['fault']}" for number, side in enumerate((zero, one)) if side["fault"]]
    if faults:
        raise ValueError(
            f"CUDA startup memory geometry could not be established on every rank: {'; '.join(faults)}"
        )
    window = _window(zero["context"], min(zero["fits"], one["fits"]))
    if zero["agree"] != one["agree"]:
        pairs = [(a, b) for a, b in zip(zero["agree"], one["agree"], strict=True) if a != b]
        raise RuntimeError(
            "the two ranks were started with different settings (draft model, context, drafts, TF_GLM_...): "
            f"rank 0 {[a for a, _ in pairs]}, rank 1 {[b for _, b in pairs]}"
        )
    return window


def _window(context: int | None, fits: int) -> int:
    """An explicit window must fit; 0 and none take what fits, if that is anything."""
    asked = context or 0
    if asked > fits or fits == 0:
        raise ValueError(window_refusal(asked or NATIVE_WINDOW, fits))
    return asked or fits
