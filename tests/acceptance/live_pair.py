"""A pair that is deployed, as the acceptance tests see it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pair:
    """The hosts of one pair by rank, and what its head serves."""

    hosts: tuple[Any, ...]
    config: dict[str, Any]

    def ask(self, path: str, body: dict[str, Any] | None = None) -> str:
        """GET, or POST of a JSON body, on the head; fails the test with what curl said."""
        api = self.config["api"]
        data = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body else []
        words = [
            "curl",
            "-sS",
            "--fail-with-body",
            "-m",
            "300",
            *data,
            f"http://{api['host']}:{api['port']}{path}",
        ]
        return str(self.hosts[0].check_output(" ".join(["%s"] * len(words)), *words))
