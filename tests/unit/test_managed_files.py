"""Files of ours on a node: known by content and mode."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.managed_files import (
    differing,
    read_fingerprints,
)


@pytest.mark.parametrize(
    ("content", "mode", "same"),
    [("text\n", "0640", True), ("text", "0640", False), ("text\n", "0644", False), ("täxt\n", "0640", False)],
)
def test_content_and_mode_both_count(tmp_path: Path, content: str, mode: str, same: bool) -> None:
    path = tmp_path / "rank.json"
    path.write_text("text\n")
    path.chmod(0o640)
    present = read_fingerprints([str(path), str(tmp_path / "absent"), str(tmp_path)])
    assert list(present) == [str(path)]
    wanted = {"path": str(path), "content": content, "mode": mode}
    assert differing([wanted], present) == ([] if same else [wanted])


def test_an_absent_file_differs() -> None:
    wanted = {"path": "/etc/x", "content": "", "mode": "0644"}
    assert differing([wanted], {}) == [wanted]
