"""What a model must be beside whole, as the catalogue says: number of shards, entries of its configuration.

`{shards: 50, config: {architectures: [X], quantization_config.quant_algo: Y}}`; a dot leads one level down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_SHARD = re.compile(r"-\d+-of-\d+\.safetensors$")


def faults(snapshot: Path, files: Iterable[str], checks: Mapping[str, Any]) -> list[str]:
    """What is otherwise, one sentence each. Raises ValueError for a check that is not known."""
    if strange := sorted(set(checks) - {"shards", "config"}):
        raise ValueError(f"unknown checks: {', '.join(strange)}")
    found = []
    shards = sum(1 for name in files if _SHARD.search(name))
    if "shards" in checks and shards != checks["shards"]:
        found.append(f"{shards} of {checks['shards']} shards")
    if wanted := checks.get("config"):
        config = json.loads((snapshot / "config.json").read_text())
        for key, value in wanted.items():
            if (there := _entry(config, key)) != value:
                found.append(f"config.json has {key} {json.dumps(there)}, not {json.dumps(value)}")
    return found


def _entry(config: Any, key: str) -> Any:
    for part in key.split("."):
        config = config.get(part) if isinstance(config, Mapping) else None
    return config
