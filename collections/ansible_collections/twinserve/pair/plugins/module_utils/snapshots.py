"""Which models a rank is started from: pure, from its plan."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# As the hub's client names a snapshot's folder.
_SNAPSHOT = re.compile(
    r"/models--(?P<owner>[^/]+?)--(?P<name>[^/]+)/snapshots/(?P<revision>[0-9a-f]{40})(?:/|$)"
)


def models(plan: Mapping[str, Any]) -> list[dict[str, str]]:
    """The snapshots that a rank's plan names, the model's first."""
    found = [_SNAPSHOT.search(str(word)) for word in plan.get("command") or ()]
    return [{"repo": f"{one['owner']}/{one['name']}", "revision": one["revision"]} for one in found if one]
