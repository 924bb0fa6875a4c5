"""The list of checks: a function becomes one by its decorator, and bears its own name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .client import Api
from .promise import Promise

Check = Callable[[Api, Promise], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Add a check under the name of its function."""
    CHECKS[function.__name__] = function
    return function


def checks(function: Callable[[str, Api, Promise], None], prefix: str, *variants: str) -> None:
    """Add one check for each variant: prefix_variant."""
    for variant in variants:
        CHECKS[f"{prefix}_{variant}"] = partial(function, variant)
