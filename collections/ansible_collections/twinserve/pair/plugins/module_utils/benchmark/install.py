"""AIPerf in a virtual environment of its own, made without what Debian packs apart (pip, ensurepip)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .plan import HOME

READY = "ready.json"
OLDEST, NEWEST = (3, 11), (3, 13)


class InstallError(RuntimeError):
    """It cannot be installed; the text says why."""


@dataclass(frozen=True)
class Order:
    """What to install: `python` makes the environment, `pip` is pip as a zip, `wheels` replaces the index."""

    version: str
    python: str
    pip: str
    constraints: str
    wheels: str = ""


def folder(version: str) -> Path:
    """Where that version lives."""
    return Path(HOME, f"aiperf-{version}")


def program(version: str) -> Path:
    """AIPerf itself."""
    return folder(version) / "bin" / "aiperf"


def is_ready(version: str, pins: str) -> bool:
    """Whether it was installed to the end, with these pins, and its Python is still there.

    `pins` is the SHA-256 of the constraints.
    """
    programs = (program(version), program(version).with_name("python"))
    there = all(path.is_file() for path in programs)
    return there and _noted(folder(version) / READY) == _note(version, pins)


def _note(version: str, pins: str) -> dict[str, str]:
    return {"aiperf": version, "constraints": pins}


def _noted(file: Path) -> object:
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None  # it was not installed to the end


def supported(version: str) -> bool:
    """Whether AIPerf runs with that Python (`3.12.3`)."""
    return OLDEST <= tuple(int(part) for part in version.split(".")[:2]) <= NEWEST


def install(order: Order) -> str:
    """Make the environment and fill it. Raises InstallError."""
    os.umask(0o022)  # the login user runs it
    target = folder(order.version)
    pins = hashlib.sha256(Path(order.constraints).read_bytes()).hexdigest()
    target.parent.mkdir(parents=True, exist_ok=True)
    _run([order.python, "-m", "venv", "--clear", "--without-pip", str(target)])
    _run([str(target / "bin/python"), f"{order.pip}/pip", "install", *pip_words(order)])
    _run([str(program(order.version)), "--version"])
    (target / READY).write_text(json.dumps(_note(order.version, pins)) + "\n")
    return f"AIPerf {order.version} is installed"


def pip_words(order: Order) -> list[str]:
    """What pip is told."""
    words = ["--no-input", "--disable-pip-version-check", "--no-cache-dir", "--progress-bar", "off"]
    if order.wheels:
        words += ["--no-index", "--find-links", order.wheels]
        if order.wheels.startswith("http://"):
            words += [
                "--trusted-host",
                order.wheels.split("/")[2].rpartition(":")[0] or order.wheels.split("/")[2],
            ]
    return [*words, "--constraint", order.constraints, f"aiperf=={order.version}"]


def _run(argv: Sequence[str]) -> None:
    """Run it with its output in ours."""
    code = subprocess.run(
        list(argv), stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, check=False
    ).returncode
    if code:
        raise InstallError(f"{' '.join(argv[:4])} failed (exit {code})")
