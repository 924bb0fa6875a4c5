"""`tensorfold info MODEL`: what a checkpoint is, from its two configuration files; no GPU, no weights."""

from __future__ import annotations

from pathlib import Path

from .model import open_checkpoint


def describe(path: Path) -> list[str]:
    """The lines that `tensorfold info` prints."""
    checkpoint = open_checkpoint(path)
    config = checkpoint.config
    quantization = config["quantization_config"]
    sampling = ", ".join(
        f"{key} {value}" for key, value in sorted(checkpoint.sampling.items()) if key != "eos_token_id"
    )
    rows = [
        ("model_type", config["model_type"]),
        ("family", "glm5_next (tensorfold.families.glm5_next)"),
        ("engine", "CUDA, two ranks"),
        ("kernels", "exl3, kda, roce"),
        ("num_hidden_layers", config.get("num_hidden_layers")),
        ("hidden_size", config.get("hidden_size")),
        (
            "experts",
            f"{config.get('n_routed_experts')} routed, {config.get('num_experts_per_tok')} per token",
        ),
        ("vocab_size", config.get("vocab_size")),
        ("max_position_embeddings", config.get("max_position_embeddings")),
        ("quantization", f"{quantization['quant_method']} ({quantization['bits']}-bit)"),
        ("runs on", "CUDA (two GPUs)"),
        ("sampling", sampling or "engine defaults"),
    ]
    notes = [
        "EXL3 checkpoints are experimental",
        "needs two GPUs: one rank on each of two machines, with --tp 2",
    ]
    return [f"{key:<24}{value}" for key, value in rows] + [f"[tensorfold] {note}" for note in notes]
