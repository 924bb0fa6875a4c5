"""docs/adding-an-engine.md explains each key that an engine or a release has, and names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/adding-an-engine.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## The keys")[2].partition("## Steps")[0]
FILES = [*ROOT.glob("engines/*/engine.yml"), *ROOT.glob("engines/*/releases/*.yml")]


def test_every_key_is_explained() -> None:
    explained = {
        name
        for row in TABLE.splitlines()
        if row.startswith("| ")
        for name in re.findall(r"`(\w+)`", row.split(" | ")[0])
    }
    used = {key for path in FILES for key in yaml.safe_load(path.read_text(encoding="utf-8"))}
    assert used - explained == set(), "a key that the page does not explain"
    assert explained - used == set(), "the page explains a key that no engine has"


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"(?:docs|engines|tests)/[\w./-]+\w", PAGE.replace("engines/NAME", ""))))
)
def test_what_the_page_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()
