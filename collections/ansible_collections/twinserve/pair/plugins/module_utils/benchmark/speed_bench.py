"""The prepared file of SPEED-Bench, looked at before anything is sent: AIPerf tells of a bad row late."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

CATEGORY = "coding"
ROWS = 80
_ID = 32  # characters of a question's id
_PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED"
HOW = (
    "the hub's nvidia/SPEED-Bench has placeholders in the place of most prompts; the real ones are put "
    "together by NVIDIA's specdec_bench, which needs a Hugging Face account that was given access to the "
    "gated dataset cais/hle. Or leave bench_dataset unset: then a synthetic set is measured, and named so"
)


class BadDataset(ValueError):
    """The file is not what AIPerf takes; the text says where, and how to come by a good one."""


def check(content: bytes) -> dict[str, Any]:
    """Its SHA-256, and how many rows of the category it has. Raises BadDataset."""
    coding = 0
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if line.strip():
            coding += _row(number, line)
    if coding != ROWS:
        raise BadDataset(f"{coding} rows of the category {CATEGORY}, not {ROWS}: {HOW}")
    return {"sha256": hashlib.sha256(content).hexdigest(), "rows": coding}


def _row(number: int, line: str) -> bool:
    """Whether the row is of our category; it must be a good one whatever it is of."""
    try:
        row = json.loads(line)
    except ValueError:
        raise BadDataset(
            f"line {number} is no JSON: one object a line is wanted (qualitative.jsonl)"
        ) from None
    if not isinstance(row, Mapping) or not {"question_id", "category", "messages"} <= set(row):
        raise BadDataset(f"line {number} lacks question_id, category or messages: {HOW}")
    messages = row["messages"]
    if not isinstance(messages, list) or not messages or not all(map(_message, messages)):
        raise BadDataset(f"line {number} has a message without role and content")
    if any(_PLACEHOLDER in message["content"] for message in messages):
        raise BadDataset(f"line {number} has a placeholder instead of its prompt: {HOW}")
    if not isinstance(row["question_id"], str) or len(row["question_id"]) != _ID:
        raise BadDataset(f"line {number}: question_id must have {_ID} characters")
    return bool(row["category"] == CATEGORY)


def _message(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return False
    return all(isinstance(message.get(key), str) and message[key].strip() for key in ("role", "content"))
