"""Startup memory: what a rank needs, what it has, which window fits. Sizes in GiB, windows in tokens.

The figures are fitted to what is known of the real engine on two GB10 machines: 88.09 and 86.29 GiB at the
defaults (the vision tower is on rank 0), a pool of 2,684,928 tokens at 11 GiB, and the windows that a bf16
cache affords.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .settings import NATIVE_WINDOW, Settings

EXTENT = 2048
FP8_TOKENS_PER_GIB = 111_957
POOL_AT_NO_CACHE = 1_453_402
DEFAULT_ESTIMATE = 86.29
VISION_TOWER = 1.80
DRAFTER = 2.0
DENSE_EXTRA = {"q4": 0.0, "fp8": 1.0, "bf16": 1.56}


@dataclass(frozen=True)
class Need:
    """What one rank needs: a fixed part and one that grows with the window; and what it may use."""

    fixed: float
    per_token: float
    budget: float

    def estimate(self, window: int) -> float:
        """GiB for a window."""
        return self.fixed + self.per_token * window

    def largest_window(self) -> int:
        """The largest window that the budget holds, in whole extents; 0 if not even the weights fit."""
        tokens = int((self.budget - self.fixed) / self.per_token + 1e-6)
        return max(0, min(NATIVE_WINDOW, tokens // EXTENT * EXTENT))


def available_gib(root: Path) -> float:
    """MemAvailable of /proc/meminfo in GiB."""
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 2**20
    raise ValueError("/proc/meminfo has no MemAvailable")


def need_of(settings: Settings, available: float) -> Need:
    """This rank's need with these settings on a machine with that much available memory."""
    per_token = _cache_weight(settings) / FP8_TOKENS_PER_GIB
    fixed = DEFAULT_ESTIMATE - NATIVE_WINDOW / FP8_TOKENS_PER_GIB + DENSE_EXTRA[settings.dense]
    if settings.vision and settings.rank == 0:
        fixed += VISION_TOWER
    if not settings.drafts:
        fixed -= DRAFTER
    return Need(fixed, per_token, available - settings.reserve_gib)


def _cache_weight(settings: Settings) -> float:
    """Memory of a token against one in a shared FP8 pool: lanes of a bf16 cache share nothing."""
    if settings.kv == "fp8":
        return 1.0
    return 2.0 if settings.parallel == 1 else 16 / 3


def pool_tokens(settings: Settings, need: Need, window: int) -> int:
    """Tokens of the pool: what TF_GLM_CACHE_GIB asks for, as far as memory goes, at least one window."""
    asked = (POOL_AT_NO_CACHE + settings.cache_gib * FP8_TOKENS_PER_GIB) / _cache_weight(settings)
    affordable = (need.budget - need.fixed) / need.per_token
    return max(window, int(min(asked, affordable)) // EXTENT * EXTENT)


def window_refusal(asked: int, fits: int) -> str:
    """The refusal that both ranks print, with the same number."""
    advice = "Please free memory." if fits == 0 else f"Start with --context {fits} or less, or free memory."
    return (
        f"CUDA startup memory budget cannot fit requested context {asked}; estimated largest fitting "
        f"prompt-plus-reply window: {fits} tokens across the ranks. {advice}"
    )
