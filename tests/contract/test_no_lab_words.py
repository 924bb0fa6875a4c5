"""The product does not know where it is tested, and the project not where it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (
    *("ansible.cfg", "collections", "engines", "group_vars", "inventory", "playbooks", "requirements.txt"),
    *("requirements.yml", "roles", "serve.yml", "site.yml", "tools"),
)
# The demo and the tests, of roles alone too, are run in the lab; the vendor of the image has the word in
# its name.
AROUND = re.compile(
    r"^tools/(demo\.py|molecule\.sh|closing_line\.py|integration\.py)$|^roles/[^/]+/molecule/"
)
VENDOR = re.compile(r"miaai-lab", re.IGNORECASE)
LAB = re.compile(r"(?<![a-z])(twin)?labs?(?![a-z])|simulat|\bfake\b|\bmock|\btestbed\b", re.IGNORECASE)
BUILT = {
    ".git",
    ".venv",
    ".lab",
    ".cache",
    ".ansible",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "build",
}
# Written in pieces, so that this file does not find itself.
WORKPLACE = re.compile(
    "|".join([r"(?<![\w.])/wor" r"k/", r"\.\./shar" r"ed\b", r"pypi\." r"org", r"pythonhost" r"ed"])
)


def texts(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Path inside the project and text of each text file."""
    for name in names:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            inside = path.relative_to(ROOT)
            if path.is_file() and not path.is_symlink() and not BUILT & set(inside.parts):
                try:
                    yield str(inside), path.read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    continue


def mentions(names: tuple[str, ...], word: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path, text in texts(names)
        for number, line in enumerate(text.splitlines(), 1)
        if word.search(VENDOR.sub("", line)) and not AROUND.search(path)
    ]


def test_the_product_is_there() -> None:
    assert [name for name in PRODUCT if not (ROOT / name).exists()] == []


def test_no_product_file_mentions_the_lab() -> None:
    assert mentions(PRODUCT, LAB) == []


def test_no_file_mentions_the_place_where_it_was_written() -> None:
    every = tuple(sorted(path.name for path in ROOT.iterdir() if path.name not in BUILT))
    found = [
        f"{path}:{number}"
        for path, text in texts(every)
        for number, line in enumerate(text.splitlines(), 1)
        if WORKPLACE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("twinlab = 1", True),
        ("in the lab,", True),
        ("a simulated pair", True),
        ("label: x", False),
        ("available, collaborate", False),
        ("ghcr.io/MiaAI-Lab/x", False),
    ],
)
def test_the_words_are_told_apart(line: str, found: bool) -> None:
    assert bool(LAB.search(VENDOR.sub("", line))) is found
