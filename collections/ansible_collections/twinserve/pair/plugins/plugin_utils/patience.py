"""Asking a node again: work that goes on there is not lost when one question is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure

Answer = dict[str, Any]


def ask(question: Callable[[], Answer], tries: int = 6, pause: float = 5.0) -> Answer:
    """The answer to `question`, which is put again every `pause` seconds while the node cannot be reached.

    Raises AnsibleConnectionFailure when it stays away for all `tries`.
    """
    for _ in range(tries - 1):
        try:
            return question()
        except AnsibleConnectionFailure:
            time.sleep(pause)
    return question()
