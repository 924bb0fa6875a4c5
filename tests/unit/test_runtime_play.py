"""The task that installs the runtime: it packs what the lookup gives the version of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from plays import play

SAY = {
    "name": "Say it",
    "ansible.builtin.debug": {"msg": "it is {{ lookup('twinserve.pair.runtime_version') }}"},
}


def install(folder: Path, *words: str, **options: Any) -> str:
    """Run the task for each host, with a folder of its own; returns what was printed."""
    task = {
        "name": "Install the runtime",
        "twinserve.pair.runtime": {"path": f"{folder}/lib/{{{{ inventory_hostname }}}}", **options},
    }
    ran = play(folder, [SAY, task], {}, *words)
    assert ran.code == 0, ran.output
    return ran.output


def test_what_is_installed_has_the_version_of_the_lookup_and_runs(tmp_path: Path) -> None:
    root = tmp_path / "lib/spark-b"
    assert "runtime: none" in install(tmp_path, "--check", "--diff")
    assert not root.exists()
    output = install(tmp_path, activate=False)
    (found,) = root.iterdir()
    assert f"it is {found.name}\n" in output.replace('"', "\n")
    argv = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, {str(found)!r}); import twinserve.control",
    ]
    assert subprocess.run(argv, check=False).returncode == 0
    install(tmp_path)
    assert (root / "current").readlink() == Path(found.name)
    assert "changed=0" in install(tmp_path, "-vvv").partition("PLAY RECAP")[2]


def test_the_archive_is_never_shown(tmp_path: Path) -> None:
    output = install(tmp_path, "-vvv", "--check")
    assert "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER" in output
    assert len(output) < 100_000
