"""The two files a rank is started from: its plan (from the playbook) and its link (from the supervisor)."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import paths
from .errors import AgentError

_SCHEMA = 1
_WRITE = "run the serve playbook"


def read_plan() -> dict[str, Any]:
    """Return this rank's plan. Raises AgentError when it is missing, broken or of another schema."""
    plan = _read(paths.PLAN, _WRITE)
    if plan.get("schema") != _SCHEMA:
        raise AgentError(f"{paths.PLAN} has schema {plan.get('schema')}, not {_SCHEMA}: {_WRITE}")
    return plan


def read_link() -> dict[str, Any]:
    """Return what this rank was told at its start. Raises AgentError when it was told nothing."""
    return _read(paths.LINK, "start the pair with systemctl start twinserve on the head")


def parse_link(text: str) -> dict[str, Any]:
    """Check the link that came on stdin (AgentError: names what is missing)."""
    try:
        link = json.loads(text)
    except ValueError as error:
        raise AgentError(f"the link on stdin is no JSON: {error}") from error
    if not isinstance(link, dict) or not link.get("master") or not isinstance(link.get("rails"), list):
        raise AgentError("the link on stdin needs master and rails")
    for rail in link["rails"]:
        missing = [name for name in ("netdev", "hca", "address", "gid_index") if name not in rail]
        if missing:
            raise AgentError(f"a rail on stdin lacks {', '.join(missing)}")
    return link


def write_atomically(path: Path, data: Mapping[str, Any], mode: int = 0o644) -> None:
    """Replace a JSON file so that a reader, or a crash, never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, sort_keys=True)
            file.write("\n")
        draft.chmod(mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path, cure: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise AgentError(f"{path} is missing: {cure}") from error
    except ValueError as error:
        raise AgentError(f"{path} is no JSON ({error}): {cure}") from error
    if not isinstance(data, dict):
        raise AgentError(f"{path} is no JSON object: {cure}")
    return data
