"""What a model must be beside whole: the catalogue's data, for the model of two DGX Stations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import hf_cache, model_checks
from ansible_collections.twinserve.pair.plugins.modules import hf_snapshot
from hub_cache import REPO, REVISION, fill
from module_run import run_module

STATION = {
    "shards": 50,
    "config": {
        "architectures": ["GlmMoeDsaForCausalLM"],
        "quantization_config.quant_algo": "MIXED_PRECISION",
    },
}
CONFIG = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "quantization_config": {"quant_algo": "MIXED_PRECISION", "kv": 1},
}


def files(shards: int, config: Any = CONFIG) -> dict[str, bytes]:
    names = [f"model-{number:05d}-of-00050.safetensors" for number in range(1, shards + 1)]
    return {"config.json": json.dumps(config).encode()} | {name: name.encode() for name in names}


@pytest.mark.parametrize(
    ("shards", "config", "said"),
    [
        (50, CONFIG, []),
        (49, CONFIG, ["49 of 50 shards"]),
        (
            50,
            CONFIG | {"architectures": ["Other"]},
            ['config.json has architectures ["Other"], not ["GlmMoeDsaForCausalLM"]'],
        ),
        (
            50,
            CONFIG | {"quantization_config": None},
            ['config.json has quantization_config.quant_algo null, not "MIXED_PRECISION"'],
        ),
    ],
)
def test_a_model_is_what_the_catalogue_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shards: int,
    config: Any,
    said: list[str],
) -> None:
    monkeypatch.setattr(hf_cache, "MANIFESTS", tmp_path / "manifests")
    fill(tmp_path / "hf", files=files(shards, config))
    given: dict[str, Any] = {"hf_home": str(tmp_path / "hf"), "repo": REPO, "revision": REVISION}
    answer = run_module(hf_snapshot, capsys, **given, checks=STATION)
    assert answer.get("wrong", []) == said
    assert answer["failed"] is bool(said)
    assert answer.get("msg", "").endswith("; ".join(said))
    assert hf_cache.manifest_path(REPO, REVISION).exists() is not bool(said)


def test_a_check_that_nobody_knows_is_no_check(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown checks: colour"):
        model_checks.faults(tmp_path, [], {"colour": "green"})
