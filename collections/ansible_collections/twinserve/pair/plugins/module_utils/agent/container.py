"""The rank's container, through the docker command line."""

from __future__ import annotations

import json
from typing import Any

from ..docker_argv import DIGEST_LABEL
from ..shell import CommandError, run
from .errors import AgentError

_SLOW = 30.0
_GONE = ("no such container", "is not running")


def parse_inspect(text: str) -> dict[str, Any]:
    """Return id, running, process, start time and configuration digest from `docker container inspect`."""
    found = json.loads(text)[0]
    state, labels = found["State"], found["Config"].get("Labels") or {}
    return {
        "id": found["Id"],
        "running": bool(state["Running"]),
        "pid": int(state["Pid"]),
        "started_at": state["StartedAt"],
        "digest": labels.get(DIGEST_LABEL),
    }


def inspect(name: str) -> dict[str, Any] | None:
    """Return the container, None when there is none. Raises AgentError when docker cannot say."""
    try:
        return parse_inspect(run(["docker", "container", "inspect", name], timeout=_SLOW))
    except CommandError as error:
        if _GONE[0] in str(error).lower():
            return None
        raise AgentError(f"docker cannot be asked: {error}") from error


def stop(name: str, seconds: int) -> None:
    """Ask the container to end within `seconds`, after which docker kills it.

    One that is not there is fine (AgentError: docker failed).
    """
    try:
        run(["docker", "stop", "-t", str(seconds), name], timeout=seconds + _SLOW)
    except CommandError as error:
        if _GONE[0] not in str(error).lower():
            raise AgentError(f"container {name} could not be stopped: {error}") from error


def kill(name: str) -> None:
    """End the container at once (AgentError: docker failed); one that is not there, or ended, is fine."""
    try:
        run(["docker", "kill", name], timeout=_SLOW)
    except CommandError as error:
        if not any(text in str(error).lower() for text in _GONE):
            raise AgentError(f"container {name} could not be killed: {error}") from error


def remove(name: str) -> None:
    """Remove the container, running or not; one that is not there is fine (AgentError: docker failed)."""
    try:
        run(["docker", "rm", "-f", name], timeout=2 * _SLOW)
    except CommandError as error:
        if _GONE[0] not in str(error).lower():
            raise AgentError(f"container {name} could not be removed: {error}") from error


def answers() -> bool:
    """Whether the docker daemon answers: after a crash it takes seconds to come back."""
    try:
        run(["docker", "version", "--format", "{{.Server.Version}}"], timeout=_SLOW)
    except CommandError:
        return False
    return True
