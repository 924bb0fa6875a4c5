"""What every rank's container gets for RDMA, memory that may be pinned without limit, and what none gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_ALWAYS = (("--ulimit", "memlock=-1"), ("--cap-add", "IPC_LOCK"))
_ALL = re.compile(r"--privileged(?!=false)|--cap-add[= ](?:CAP_)?ALL\b", re.IGNORECASE)
_INSTEAD = "name what it needs with --cap-add and --device"
_MEMLOCK = re.compile(r"(?:--ulimit=)?memlock=(\S+)")


def completed(argv: Sequence[str]) -> list[str]:
    """`argv` of `docker run` with what is missing of that."""
    words = [*argv]
    for option, value in _ALWAYS:
        name = value.partition("=")[0]
        if not any(word.removeprefix(f"{option}=").partition("=")[0] == name for word in words):
            words += [option, value]
    return words


def faults(release: Mapping[str, Any]) -> list[str]:
    """What a release file says otherwise."""
    words = _words(release.get("docker") or [])
    limits = (_MEMLOCK.fullmatch(word) for word in words)
    lower = [found[1] for found in limits if found and set(found[1].split(":")) != {"-1"}]
    return [
        *(f"memlock must be unlimited for RDMA (got {limit})" for limit in lower),
        *(
            f"docker: {one} gives a container the whole node: {_INSTEAD}"
            for one in _ALL.findall(" ".join(words))
        ),
    ]


def _words(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(word) for part in parts for word in part["words"]]
