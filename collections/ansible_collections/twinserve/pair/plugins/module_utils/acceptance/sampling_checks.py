"""Sampling fields, each by what it must do: what leaves one choice is one answer, whatever the seed."""

from __future__ import annotations

from typing import Any

from .client import Api
from .found import NotPromised
from .promise import Promise
from .reading import need, said
from .registry import check, checks

STORY = "Write two sentences about a lighthouse."
ONE_CHOICE: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0},
    "top_p": {"temperature": 1, "top_p": 0.000001},
    "top_k": {"temperature": 1, "top_k": 1},
    "min_p": {"temperature": 1, "min_p": 1.0},
}
# What these leave may be two tokens, when both are equally likely: the numbers behind it have few bits.
TIES = ("top_k", "min_p")


def _told(api: Api, **fields: Any) -> str:
    return said(api.chat(STORY, reply=24, **fields))


def one_choice(field: str, api: Api, promise: Promise) -> None:
    """With this field at its strictest only the likeliest token is left, and other seeds say the same."""
    fields = ONE_CHOICE[field]
    told = [_told(api, seed=seed, **fields) for seed in (1, 2, 3)]
    most = 2 if field in TIES else 1
    need(len(set(told)) <= most, f"{fields} leaves one choice, and seeds 1, 2 and 3 gave {told}")


checks(one_choice, "sampling", *ONE_CHOICE)


@check
def sampling_seed(api: Api, promise: Promise) -> None:
    """One seed gives one answer, and several give several."""
    told = [_told(api, temperature=1, top_p=1, seed=seed) for seed in (7, 7, 8, 9)]
    need(told[0] == told[1], f"seed 7 gave two answers: {told[:2]}")
    need(len(set(told)) > 1, f"seeds 7, 8 and 9 gave one answer: {told[0]!r}")


@check
def same_answer_without_a_seed(api: Api, promise: Promise) -> None:
    """Two identical requests without a seed get one answer."""
    if not promise.same_answer:
        raise NotPromised("without a seed this engine answers anew each time (same_answer: false)")
    told = [_told(api, temperature=1) for _ in range(2)]
    need(told[0] == told[1], f"two identical requests gave two answers: {told}")
