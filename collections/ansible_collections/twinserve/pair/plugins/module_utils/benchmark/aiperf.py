"""AIPerf as it is called for one measurement, with the traps of 0.13 avoided."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import prompts
from .plan import SPEED_BENCH

# A stream that takes longer than an hour is lost.
TIMEOUT = 3600
# One process each; by default three quarters of the cores.
_WORKERS = 4
EXPORT = "profile_export_aiperf.json"
RECORDS = "profile_export.jsonl"
# AIPerf loads a tokenizer in any case, and from the hub by default. Ours knows no word: prompts are given as
# text, and tokens are counted by the engine.
_TOKENIZER = {
    "tokenizer.json": {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
    },
    "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"},
}


def argv(
    program: str, plan: Mapping[str, Any], level: Mapping[str, int], folder: Path, keyed: bool = False
) -> list[str]:
    """The command line of a measurement in `folder`. `keyed`: the API asks for a key, which is not in it."""
    load, speed_bench = plan["load"], plan["dataset"]["name"] == SPEED_BENCH
    file, kind = _input(plan)
    # Without a count AIPerf sends ten. A conversation may be several requests.
    counts = (
        ("conversation-num", "num-warmup-sessions")
        if speed_bench
        else ("request-count", "warmup-request-count")
    )
    words = [program, "profile", "--model", plan["served_name"], "--url", plan["url"]]
    words += ["--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    words += ["--tokenizer", str(folder / "tokenizer")]
    words += ["--custom-dataset-type", kind, "--input-file", str(folder / file)]
    words += ["--dataset-sampling-strategy", "sequential"]
    words += ["--extra-inputs", f"max_tokens:{load['max_tokens']}"]
    words += ["--extra-inputs", f"temperature:{load['temperature']}"]
    words += ["--concurrency", str(level["concurrency"]), f"--{counts[0]}", str(level["requests"])]
    if level["warmup"]:
        words += [f"--{counts[1]}", str(level["warmup"]), "--warmup-concurrency", str(level["concurrency"])]
    words += ["--config", str(folder / "key.json")] if keyed else []
    words += ["--request-timeout-seconds", str(TIMEOUT), "--workers-max", str(_WORKERS)]
    words += ["--no-gpu-telemetry", "--no-server-metrics", "--ui-type", "none"]
    return [*words, "--output-artifact-dir", str(folder / "aiperf")]


def _input(plan: Mapping[str, Any]) -> tuple[str, str]:
    """The file of prompts, from the folder of the measurement, and what AIPerf calls its kind."""
    if plan["dataset"]["name"] == SPEED_BENCH:
        return "../speed-bench.jsonl", "speed_bench_coding"
    return "prompts.jsonl", "single_turn"


def environment(folder: Path, key: str = "") -> dict[str, str]:
    """All that AIPerf gets: no proxy, and no HF_HUB_OFFLINE, with which a local tokenizer fails.

    `key` is what the API asks for; key.json says that it is here.
    """
    told = {"HOME": str(folder), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    return told | ({"OPENAI_API_KEY": key} if key else {})


def _key_file(plan: Mapping[str, Any], level: Mapping[str, int], folder: Path) -> dict[str, Any]:
    """A configuration that names the key's variable: else AIPerf takes a key from its command line alone.

    It must be a whole one; all but the key is what the command line says, too.
    """
    speed_bench = plan["dataset"]["name"] == SPEED_BENCH
    counted = "sessions" if speed_bench else "requests"
    phase = {"type": "concurrency", "concurrency": level["concurrency"]}
    phases: list[dict[str, Any]] = [{"name": "profiling", **phase, counted: level["requests"]}]
    if level["warmup"]:
        warmup = {"name": "warmup", **phase, counted: level["warmup"], "excludeFromResults": True}
        phases.insert(0, warmup)
    file, kind = _input(plan)
    return {
        "benchmark": {
            "models": [plan["served_name"]],
            "endpoint": {"api_key": "${OPENAI_API_KEY}", "urls": [plan["url"]]},
            "datasets": [{"name": "main", "type": "file", "path": str(folder / file), "format": kind}],
            "phases": phases,
        }
    }


def lay_down(plan: Mapping[str, Any], level: Mapping[str, int], folder: Path) -> None:
    """What AIPerf reads: the tokenizer, and the prompts of this concurrency."""
    for name, content in _TOKENIZER.items():
        path = folder / "tokenizer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content) + "\n")
    (folder / "key.json").write_text(json.dumps(_key_file(plan, level, folder)) + "\n")
    if plan["dataset"]["name"] != SPEED_BENCH:
        count = level["requests"] + level["warmup"]
        text = prompts.lines(level["concurrency"], count, secrets.token_hex(8))
        (folder / "prompts.jsonl").write_text(text)
