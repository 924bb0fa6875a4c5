"""Makes the lab's real model: SmolLM2-135M-Instruct out of its GGUF file, in a form that two ranks can share.

convert.py GGUF FOLDER, with what requirements.txt lists. A fourth group of heads, all zero, is added to the
original's three, which do not divide by two ranks. What the model computes stays the same.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoTokenizer, LlamaForCausalLM


def padded(name: str, weight: torch.Tensor, config: dict[str, Any]) -> torch.Tensor:
    """A weight with room for one more group of heads, which adds nothing to the result."""
    head = config["head_dim"]
    heads = head * (config["num_attention_heads"] // config["num_key_value_heads"])
    if name.endswith("q_proj.weight"):
        return torch.cat([weight, torch.zeros(heads, weight.shape[1])])
    if name.endswith(("k_proj.weight", "v_proj.weight")):
        return torch.cat([weight, torch.zeros(head, weight.shape[1])])
    if name.endswith("o_proj.weight"):
        return torch.cat([weight, torch.zeros(weight.shape[0], heads)], dim=1)
    return weight


def write_weights(source: Path, folder: Path) -> None:
    """model.safetensors and config.json."""
    model = LlamaForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    config = model.config.to_dict()
    weights = {
        name: padded(name, weight, config).to(torch.bfloat16).contiguous()
        for name, weight in model.state_dict().items()
        if name != "lm_head.weight"  # tied to the embeddings
    }
    group = config["num_attention_heads"] // config["num_key_value_heads"]
    config["num_attention_heads"] += group
    config["num_key_value_heads"] += 1
    config |= {"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"}
    for unwanted in ("quantization_config", "_name_or_path"):
        config.pop(unwanted, None)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    """GGUF FOLDER."""
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(source, folder)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)


if __name__ == "__main__":
    main()
