"""Programs on PATH that answer from files, and note what they were asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_node import SCRIPT


class Programs:
    """A call gets the longest answer whose words it begins with; a call without answer prints nothing."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.folder = folder
        for part in ("bin", "answers"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for name in names:
            path = folder / "bin" / name
            path.write_text(SCRIPT)
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("NODE", str(folder))

    def answer(self, call: str, text: str = "", code: int | None = None, do: str | None = None) -> None:
        """Answer `call` (words joined by `_`); with `code` it fails; `do` is a line of shell run then."""
        for suffix, value in (("", text), (".rc", None if code is None else str(code)), (".do", do)):
            path = self.folder / "answers" / f"{call}{suffix}"
            if value is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(value)

    @property
    def calls(self) -> list[str]:
        """What was asked, in order."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []
