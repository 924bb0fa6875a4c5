"""Known failures in logs: the engine's and the machine's, each once, with its cure."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import diagnosis
from ansible_collections.twinserve.pair.plugins.module_utils.agent import paths
from ansible_collections.twinserve.pair.plugins.module_utils.log_signs import scan, signs
from ansible_collections.twinserve.pair.plugins.modules import log_signs as module
from fake_programs import Programs
from module_run import run_module

NCCL = {"pattern": "NCCL error 2: unhandled system error", "cure": "set split: false"}
ANY = {"pattern": r"NCCL error \d+: ", "cure": "run site.yml"}
FIRST = "2026-11-29T10:00:00.000001+00:00 twinserve-rank[7]: NCCL error 2: unhandled system error"
SECOND = FIRST.replace("10:00", "11:00")


def test_a_line_is_told_for_its_first_sign_with_its_last_time() -> None:
    (found,) = scan(
        [("starts/1", f"loading\n{FIRST}\n"), ("rank.log", f"{FIRST}\n{SECOND}")], signs([NCCL, ANY])
    )
    assert found == {
        "line": SECOND,
        "cure": "set split: false",
        "where": "rank.log",
        "at": "2026-11-29T11:00:00.000001+00:00",
        "count": 2,
    }


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        ("NVRM: Xid (PCI:000f:01:00): 79, GPU has fallen off the bus.", "power-cycled"),
        ("NVRM: Xid (PCI:000f:01:00): 31, pid=1, MMU Fault", "nvidia-smi -q"),
        ("NVRM: API mismatch: the client has the version 580.95", "reboot the node"),
        ("Out of memory: Killed process 4242 (python3)", "kv_pool_gib"),
        ("mlx5_core 0000:01:00.0: poll_health:825: Fatal error 3 detected", "power-cycle"),
        ("nvme0n1: I/O error, dev nvme0n1, sector 7", "the disk fails"),
        ("docker: write /var/lib/docker/x: no space left on device.", "docker system df"),
    ],
)
def test_what_the_machine_says_is_known_for_every_engine(line: str, cure: str) -> None:
    (found,) = scan([("system/kernel.log", f"before\n{line}\nafter\n")], signs([]))
    assert (found["line"], cure in found["cure"]) == (line, True)


def test_what_is_told_of_a_log_has_no_secret_in_it() -> None:
    (found,) = scan([("rank.log", "NCCL error 5: HF_TOKEN=abcdef1234")], signs([ANY]))
    assert found["line"] == "NCCL error 5: HF_TOKEN=[removed]"


def test_a_secret_goes_before_a_long_line_is_cut() -> None:
    secret = "of-no-known-form-at-all"
    line = "NCCL error 5: " + "x" * 275 + secret
    (found,) = scan([("rank.log", line)], signs([ANY]), [secret])
    assert secret[:6] not in found["line"]
    assert "[remove" in found["line"]


def test_a_pattern_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="is no pattern"):
        signs([{"pattern": "(", "cure": ""}])


def test_what_the_node_and_the_controller_know_as_secret_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Programs(tmp_path / "programs", monkeypatch, "journalctl")
    made.answer("journalctl", "NCCL error 5: a-token-of-another-form and my-own-words\n")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf/token").write_text("a-token-of-another-form")
    monkeypatch.setattr(paths, "LOGS", tmp_path / "log")
    monkeypatch.setattr(diagnosis, "RUN", tmp_path / "run")

    answer = run_module(module, capsys, engine=[ANY], hf_home=str(tmp_path / "hf"), secrets=["my-own-words"])

    assert [one["line"] for one in answer["found"]] == ["NCCL error 5: [removed] and [removed]"]


def test_all_logs_of_a_node_are_read_and_one_that_cannot_be_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Programs(tmp_path / "programs", monkeypatch, "journalctl")
    made.answer("journalctl", f"{SECOND}\n")
    made.answer("journalctl_-k", "no permission", 1)
    (tmp_path / "log").mkdir()
    (tmp_path / "log/20261129-100000-rank0.log.gz").write_bytes(gzip.compress(f"{FIRST}\n".encode()))
    monkeypatch.setattr(paths, "LOGS", tmp_path / "log")
    monkeypatch.setattr(diagnosis, "RUN", tmp_path / "run")

    answer = run_module(module, capsys, engine=[NCCL])

    assert [(one["line"], one["count"]) for one in answer["found"]] == [(SECOND, 2)]
    assert len(answer["unread"]) == 1
    assert answer["unread"][0].startswith("system/kernel.log cannot be read: ")
    assert not answer["changed"]
