"""The engine's command line: what the parser takes, what it refuses with 2, what is refused later with 1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_support import ENGINE, Machine
from tensorfold.cli import build_parser, main
from twinlab.services.models import DRAFTER, MODEL, make_models

SHARED = ["--drafter", "/d", "--context", "1048576", "--parallel", "4", "--thinking", "--vision"]
GROUP = ["--master", "192.168.177.1", "--master-port", "29551"]
SERVED = ["--name", "GLM", "--host", "0.0.0.0", "--port", "8888"]
RANK0 = ["serve", "/m", "--tp", "2", "--rank", "0", *GROUP, *SERVED, *SHARED]
RANK1 = ["serve", "/m", "--tp", "2", "--rank", "1", *GROUP, *SHARED]
DEFAULTS: dict[str, Any] = {
    "command": "serve",
    "model": "/m",
    "host": "127.0.0.1",
    "port": 8080,
    "name": "",
    "alias": [],
    "vision": False,
    "vision_urls": False,
    "context": None,
    "max_tokens": 4096,
    "temperature": None,
    "top_p": None,
    "min_p": None,
    "top_k": None,
    "thinking": True,
    "reasoning_effort": None,
    "thinking_budget": 0,
    "no_drafts": False,
    "drafter": "auto",
    "drafter_bits": 4,
    "mtp_drafts": None,
    "mtp_confidence": None,
    "lane_kernels": "auto",
    "prompt_cache_gib": None,
    "checkpoint_slots": None,
    "spill_gib": 0.0,
    "snapshot_dir": "~/.cache/tensorfold/prefix-snapshots",
    "max_snapshots": 3,
    "parallel": "auto",
    "decode_share": None,
    "mlx_cache_gib": 8.0,
    "ssd_experts": None,
    "ple_on_ssd": False,
    "no_update_check": False,
    "backend": "auto",
    "tp": 1,
    "rank": 0,
    "master": "",
    "master_port": 29551,
    "kv_dtype": "bf16",
}


def test_every_option_has_the_contracts_default() -> None:
    assert vars(build_parser().parse_args(["serve", "/m"])) == DEFAULTS


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (RANK0, {"port": 8888, "host": "0.0.0.0", "name": "GLM", "rank": 0}),
        (RANK1, {"port": 8080, "host": "127.0.0.1", "name": "", "rank": 1}),
    ],
)
def test_both_ranks_command_lines_are_taken(words: list[str], changed: dict[str, Any]) -> None:
    shared = {
        "tp": 2,
        "master": "192.168.177.1",
        "drafter": "/d",
        "context": 1048576,
        "parallel": "4",
        "vision": True,
    }
    assert vars(build_parser().parse_args(words)) == {**DEFAULTS, **shared, **changed}


@pytest.mark.parametrize(
    ("extra", "key", "value"),
    [
        ("--no-thinking", "thinking", False),
        ("--context -5", "context", -5),
        ("--parallel banana", "parallel", "banana"),
        ("--max-tokens 1 --max-tokens 2", "max_tokens", 2),
        ("--max-tok 99", "max_tokens", 99),  # argparse takes what is unambiguous
        ("--alias a --alias b", "alias", ["a", "b"]),
        ("--reasoning-effort xhigh", "reasoning_effort", "xhigh"),
        ("--drafter none", "drafter", "none"),
    ],
)
def test_the_parser_takes(extra: str, key: str, value: object) -> None:
    assert getattr(build_parser().parse_args(["serve", "/m", *extra.split()]), key) == value


@pytest.mark.parametrize(
    "words",
    [
        "",
        "serve",
        "serve /m --tp 3",
        "serve /m --rank 2",
        "serve /m --kv-dtype fp8",
        "serve /m --reasoning-effort high",
        "serve /m --reasoning-effort max",
        "serve /m --context 1e6",
        "serve /m --api-key x",
        "serve /m --vision-max-images 4",
        "serve /m --prefill-fp8",
        "serve /m --spill-highwater 1",
        "serve /m --spill-min-tokens 1",
        "serve /m --backend cpu",
        "serve /m --max 5",
        "serve /m --port eighty",
        "serve /m extra",
    ],
)
def test_the_parser_refuses_with_2(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tensorfold", *words], cwd=ENGINE, capture_output=True, text=True, check=False
    )


def test_version() -> None:
    done = _run("--version")
    assert (done.returncode, done.stdout) == (0, "tensorfold 0.5.0\n")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    make_models(tmp_path / "models", shard_bytes=1024)
    return tmp_path / "models"


def test_info_describes_a_checkpoint_without_its_weights(models: Path) -> None:
    for shard in (models / MODEL.name).glob("*.safetensors"):
        shard.unlink()
    done = _run("info", str(models / MODEL.name))
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert done.returncode == 0
    assert lines["model_type"] == "glm5_next"
    assert lines["quantization"] == "exl3 (4-bit)"
    assert lines["max_position_embeddings"] == "1048576"
    assert "[tensorfold] needs two GPUs" in done.stdout


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("config.json", None, "has no config.json"),
        ("config.json", "{", "is not JSON"),
        ("config.json", '{"model_type": "llama"}', "'llama' is not supported"),
        ("config.json", '{"model_type": "glm5_next"}', "unreadable quantization"),
    ],
)
def test_info_refuses_with_1(models: Path, file: str, text: str | None, reason: str) -> None:
    path = models / MODEL.name / file
    path.unlink() if text is None else path.write_text(text)
    done = _run("info", str(models / MODEL.name))
    assert done.returncode == 1
    assert done.stderr.startswith("tensorfold: ") and reason in done.stderr


@pytest.mark.parametrize(("key", "value"), [("bits", 3), ("codebook", "other"), ("scope", "all")])
def test_other_quantizations_are_refused(models: Path, key: str, value: object) -> None:
    path = models / MODEL.name / "config.json"
    config = json.loads(path.read_text())
    config["quantization_config"][key] = value
    path.write_text(json.dumps(config))
    done = _run("info", str(models / MODEL.name))
    assert (done.returncode, f"EXL3 {key} must be" in done.stderr) == (1, True)


TP2 = "--tp 2 --master 127.0.0.1"


@pytest.mark.parametrize(
    ("extra", "env", "reason"),
    [
        ("--tp 2", {}, "--tp 2 needs --master"),
        ("--rank 1", {}, "--rank 1 needs --tp 2"),
        ("", {}, "exactly two ranks"),
        (f"{TP2} --context 1048577", {}, "--context must be between 0 and the model's 1048576"),
        (f"{TP2} --context -5", {}, "--context must be"),
        (f"{TP2} --parallel banana", {}, "--parallel must be"),
        (f"{TP2} --parallel 5", {}, "--parallel must be"),
        (f"{TP2} --parallel 0", {}, "--parallel must be"),
        (f"{TP2} --parallel 2 --drafter none", {}, "needs the DFlash2 drafter"),
        (f"{TP2} --drafter /none", {}, "drafter /none is not a directory"),
        (f"{TP2} --vision-urls", {}, "--vision-urls needs --vision"),
        (f"{TP2} --kv-dtype int8", {}, "TF_GLM_KV"),
        (f"{TP2} --backend mlx", {}, "macOS"),
        (f"{TP2} --spill-gib 4", {}, "--spill-gib"),
        (f"{TP2} --ssd-experts 0.5", {}, "--ssd-experts"),
        (f"{TP2} --max-tokens 0", {}, "--max-tokens"),
        (TP2, {"TF_GLM_KV": "int8"}, "TF_GLM_KV must be one of bf16, fp8, not 'int8'"),
        (TP2, {"TF_GLM_KV": ""}, "not ''"),
        (TP2, {"TF_GLM_DENSE": "q8"}, "TF_GLM_DENSE"),
        (TP2, {"TF_GLM_COMM": "tcp"}, "TF_GLM_COMM"),
        (TP2, {"TF_GLM_COPY_MAX": "16"}, "TF_GLM_COPY_MAX"),
        (TP2, {"TF_GLM_DFLASH_POLICY": "x7"}, "must begin with f"),
        (TP2, {"TF_GLM_CACHE_GIB": "eleven"}, "TF_GLM_CACHE_GIB must be a number"),
        (TP2, {"TENSORFOLD_MEMORY_RESERVE_GIB": "1"}, "at least 2"),
    ],
)
def test_what_the_parser_let_through_is_refused_with_1(
    models: Path,
    tmp_path: Path,
    extra: str,
    env: dict[str, str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    words = ["serve", str(models / MODEL.name), "--drafter", str(models / DRAFTER.name), *extra.split()]
    assert main(words, Machine(tmp_path / "root").root) == 1
    error = capsys.readouterr().err
    assert error.startswith("tensorfold: ") and reason in error


def test_a_model_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "/no/such/model", *TP2.split()], Machine(tmp_path / "root").root) == 1
    assert capsys.readouterr().err == "tensorfold: /no/such/model is not a model directory\n"


def test_serve_may_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/no/such/model", *TP2.split()], Machine(tmp_path / "root").root) == 1
    assert "/no/such/model" in capsys.readouterr().err
