"""docs/cases.md lists the cases that tests bear, and no others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_list_and_the_tests_name_the_same_cases() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    heads = re.findall(r"def test_((?:[a-z]\d\d_)+)", tests)
    borne = {f"{case[0].upper()}-{case[1:]}" for head in heads for case in re.findall(r"[a-z]\d\d", head)}
    listed = set(re.findall(r"^\| ([A-Z]-\d\d) \|", (ROOT / "docs/cases.md").read_text(), re.MULTILINE))

    assert borne - listed == set(), "borne by tests, and not in docs/cases.md"
    assert listed - borne == set(), "in docs/cases.md, and borne by no test"
