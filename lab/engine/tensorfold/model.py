"""Checkpoints on disk: is it the family this engine serves, and are all shards whole?"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXL3 = {"bits": 4, "codebook": "mcg", "scope": "glm53_routed_experts_only"}


@dataclass(frozen=True)
class Checkpoint:
    """A model directory that passed the family check; `name` is the directory's own name."""

    path: Path
    name: str
    config: dict[str, Any]
    sampling: dict[str, Any]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; ValueError names the file that is not one."""
    try:
        value = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} is not a JSON object")
    return value


def open_checkpoint(path: Path) -> Checkpoint:
    """Read config.json and generation_config.json and check family and quantization; no weight is read."""
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is not a model directory")
    if not (path / "config.json").is_file():
        raise FileNotFoundError(f"{path} has no config.json")
    config = read_json(path / "config.json")
    family = config.get("model_type")
    if family != "glm5_next":
        raise ValueError(f"{path}: model_type {family!r} is not supported on CUDA (glm5_next is)")
    _check_quantization(path, config.get("quantization_config"))
    sampling = path / "generation_config.json"
    return Checkpoint(path, path.name, config, read_json(sampling) if sampling.is_file() else {})


def _check_quantization(path: Path, found: object) -> None:
    quantization = found if isinstance(found, dict) else {}
    if quantization.get("quant_method") != "exl3":
        raise ValueError(
            f"{path}: unreadable quantization {quantization.get('quant_method')!r} (EXL3 is wanted)"
        )
    for key, wanted in EXL3.items():
        if quantization.get(key) != wanted:
            raise ValueError(f"{path}: EXL3 {key} must be {wanted}, not {quantization.get(key)!r}")


def check_shards(path: Path) -> int:
    """Check every weight file of a model directory against its own header and the index; bytes of weights.

    ValueError or FileNotFoundError say which file is missing, cut short or not what the index promises.
    """
    index = path / "model.safetensors.index.json"
    if not index.is_file():
        single = path / "model.safetensors"
        if not single.is_file():
            raise FileNotFoundError(f"{path} has neither model.safetensors.index.json nor model.safetensors")
        return sum(_tensor_sizes(single).values())
    promised = read_json(index)
    weight_map: dict[str, str] = promised["weight_map"]
    total = 0
    for shard in sorted(set(weight_map.values())):
        sizes = _tensor_sizes(path / shard)
        absent = [name for name, place in weight_map.items() if place == shard and name not in sizes]
        if absent:
            raise ValueError(f"{path / shard} has no tensor {absent[0]}")
        total += sum(sizes.values())
    wanted = promised.get("metadata", {}).get("total_size")
    if wanted != total:
        raise ValueError(f"{index} promises {wanted} bytes of tensors, the shards hold {total}")
    return total


def _tensor_sizes(path: Path) -> dict[str, int]:
    """Bytes of each tensor by a safetensors header, which must account for the whole file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else size
        if length > size - 8:
            raise ValueError(f"{path} is not a safetensors file or is cut short ({size} bytes)")
        try:
            header = json.loads(file.read(length))
        except ValueError:
            raise ValueError(f"{path} has an unreadable safetensors header") from None
    spans = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    end = max((stop for _, stop in spans.values()), default=0)
    if 8 + length + end != size:
        raise ValueError(f"{path} is {size} bytes, its header needs {8 + length + end}")
    return {name: stop - start for name, (start, stop) in spans.items()}


def find_drafter(choice: str, home: Path) -> Path | None:
    """The directory for `--drafter`: a path, a repository id, `auto` (a cached DFlash2) or `none`."""
    if choice == "none":
        return None
    if choice == "auto":
        cached = sorted(home.glob("hub/models--*--*DFlash2*/snapshots/*/config.json"))
        return cached[0].parent if cached else None
    path = Path(choice)
    if not path.is_dir() and choice.count("/") == 1:
        found = sorted(home.glob(f"hub/models--{choice.replace('/', '--')}/snapshots/*/config.json"))
        path = found[0].parent if found else path
    if not (path / "config.json").is_file():
        raise FileNotFoundError(f"drafter {path} is not a directory with a config.json")
    return path
