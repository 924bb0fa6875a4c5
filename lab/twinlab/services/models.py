"""Two small model repositories under the real names, for the lab's hub: deterministic, whole, a few MiB."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARD_BYTES = 2**20


@dataclass(frozen=True)
class Repository:
    """A repository at its pinned revision, and how many weight shards to make."""

    name: str
    revision: str
    shards: int


MODEL = Repository("Mia-AiLab/GLM-5.3-Flash-EXL3-TR3-4bpw", "9eaebb7c4e96d983dcd538e18624622ba5b820a8", 12)
DRAFTER = Repository("incoai/GLM-5.3-Flash-DFlash2", "bf582e4eacc1810f76656d1811693ff6c6737d2a", 1)

MODEL_CONFIG: dict[str, Any] = {
    "architectures": ["Glm5NextForCausalLM"],
    "model_type": "glm5_next",
    "num_hidden_layers": 48,
    "hidden_size": 4096,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "vocab_size": 154_880,
    "max_position_embeddings": 1_048_576,
    "quantization_config": {
        "quant_method": "exl3",
        "bits": 4,
        "codebook": "mcg",
        "scope": "glm53_routed_experts_only",
    },
}
DRAFTER_CONFIG: dict[str, Any] = {
    "architectures": ["DFlash2"],
    "model_type": "dflash2",
    "num_hidden_layers": 5,
    "hidden_size": 4096,
}


def make_models(root: Path, shard_bytes: int = SHARD_BYTES) -> tuple[Repository, Repository]:
    """Write both repositories below `root` as the hub serves them: ORG/NAME/FILES and ORG/NAME.json."""
    _write_json(root, MODEL, "config.json", MODEL_CONFIG)
    _write_json(
        root, MODEL, "generation_config.json", {"temperature": 1.0, "top_p": 0.95, "eos_token_id": [154_820]}
    )
    _write_json(
        root, MODEL, "tokenizer.json", {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}
    )
    _write_json(root, MODEL, "tokenizer_config.json", {"model_max_length": 1_048_576})
    _write(
        root,
        MODEL,
        "chat_template.jinja",
        b"{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}\n",
    )
    _write(
        root,
        MODEL,
        "README.md",
        b"# A small stand-in\n\nThe shape of the real repository, without its weights.\n",
    )
    _write(root, MODEL, "LICENSE", b"Random bytes, free for any use.\n")
    _write_shards(root, MODEL, shard_bytes)
    _write_json(root, DRAFTER, "config.json", DRAFTER_CONFIG)
    _write(root, DRAFTER, "README.md", b"# A small stand-in for a drafter\n")
    _write(root, DRAFTER, "model.safetensors", _safetensors("draft.weight", "drafter", shard_bytes))
    for repository in (MODEL, DRAFTER):
        described = {"sha": repository.revision, "gated": False, "faults": {}}
        (root / f"{repository.name}.json").write_text(json.dumps(described, indent=2) + "\n")
    return MODEL, DRAFTER


def _write_shards(root: Path, repository: Repository, size: int) -> None:
    weight_map = {}
    for number in range(1, repository.shards + 1):
        name = f"model-{number:05d}-of-{repository.shards:05d}.safetensors"
        tensor = f"model.layers.{number - 1}.mlp.experts.weight"
        weight_map[tensor] = name
        _write(root, repository, name, _safetensors(tensor, name, size))
    index = {"metadata": {"total_size": repository.shards * size}, "weight_map": weight_map}
    _write_json(root, repository, "model.safetensors.index.json", index)


def _safetensors(tensor: str, seed: str, size: int) -> bytes:
    """A valid file with one tensor of `size` bytes that no other seed gives."""
    entry = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    header = json.dumps({tensor: entry}).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + hashlib.shake_256(seed.encode()).digest(size)


def _write_json(root: Path, repository: Repository, name: str, value: dict[str, Any]) -> None:
    _write(root, repository, name, (json.dumps(value, indent=2) + "\n").encode())


def _write(root: Path, repository: Repository, name: str, data: bytes) -> None:
    """Write a file unless it is there with these bytes: its time stays, and so does what is known of it."""
    path = root / repository.name / name
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
