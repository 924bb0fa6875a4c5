"""The prompts of the benchmark: SPEED-Bench's prepared file, and the synthetic set."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark import prompts
from ansible_collections.twinserve.pair.plugins.module_utils.benchmark.speed_bench import BadDataset, check
from ansible_collections.twinserve.pair.plugins.modules import speed_bench
from module_run import run_module

PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A good row."""
    message = {"role": "user", "content": f"task {number}"}
    return {"question_id": f"{number:032x}", "category": "coding", "messages": [message], **changes}


def content(*rows: Any) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in rows).encode()


GOOD = [*(row(number) for number in range(80)), row(80, category="math")]


def test_a_prepared_file_is_known_by_its_hash() -> None:
    text = content(*GOOD)
    assert check(text) == {"sha256": hashlib.sha256(text).hexdigest(), "rows": 80}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (row(3, messages=[{"role": "user", "content": PLACEHOLDER}]), "line 1 has a placeholder"),
        (row(3, messages=[]), "line 1 has a message without role and content"),
        (row(3, messages=[{"role": "user", "content": " "}]), "line 1 has a message without"),
        (row(3, question_id="3"), "line 1: question_id must have 32 characters"),
        ({"text": "a prompt"}, "line 1 lacks question_id, category or messages"),
        (["a", "list"], "line 1 lacks"),
    ],
)
def test_a_bad_row_is_refused_by_its_line(wrong: Any, says: str) -> None:
    with pytest.raises(BadDataset, match=says):
        check(content(wrong, *GOOD))


def test_another_file_is_no_json() -> None:
    with pytest.raises(BadDataset, match="line 1 is no JSON"):
        check(b"\x89PNG\n")


@pytest.mark.parametrize("count", [0, 79])
def test_eighty_conversations_about_code_are_wanted(count: int) -> None:
    with pytest.raises(BadDataset, match=f"{count} rows of the category coding, not 80"):
        check(content(*GOOD[:count], row(80, category="math")))


def test_the_hubs_placeholders_are_refused_with_how_to_prepare_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "qualitative.jsonl"
    file.write_bytes(content(*GOOD[:79], row(79, messages=[{"role": "user", "content": PLACEHOLDER}])))
    said = run_module(speed_bench, capsys, path=str(file))["msg"]
    assert "line 80 has a placeholder" in said
    assert "specdec_bench" in said
    assert "account" in said
    assert "cais/hle" in said


def test_a_file_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run_module(speed_bench, capsys, path=str(tmp_path / "none"))
    assert answer["failed"]
    assert "No such file" in answer["msg"]


def test_no_two_prompts_begin_alike_and_no_measurement_gets_those_of_another() -> None:
    """What an engine keeps of a prompt must help none that comes later."""
    begun = {text[:12] for mark in "ab" for text in prompts.tasks(4, 100, mark)}
    assert len(begun) == 200


def test_at_one_concurrency_the_tasks_are_always_the_same() -> None:
    first, second = ([text[12:] for text in prompts.tasks(4, 20, mark)] for mark in "ab")
    assert first == second
    assert first != [text[12:] for text in prompts.tasks(8, 20, "a")]


def test_aiperf_gets_one_object_a_line() -> None:
    lines = prompts.lines(1, 3, "a").splitlines()
    assert [list(json.loads(line)) for line in lines] == [["text"]] * 3
