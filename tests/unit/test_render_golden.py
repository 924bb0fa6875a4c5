"""Golden command lines: every argument of both ranks, one a line, for the configurations that the seed names.

To renew after a change that is meant: delete the file, run the test once (it writes the file and fails), and
read the difference against the engine's contract before it is committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.docker_argv import docker_argv
from engine_data import LINKS, plans

GOLDEN = Path(__file__).parent / "golden"

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "drafter_mtp": {"drafter": "mtp"},
    "kv_bf16": {"kv": "bf16"},
    "vision_false": {"vision": False},
    "parallel_2": {"parallel": "2"},
    "context_524288": {"context": 524288},
    "extra_args": {"extra_args": "--max-tokens 16384"},
}


def command_lines(raw: dict[str, Any]) -> list[list[str]]:
    """The full command line of each rank; the API listens as the seed's does."""
    argvs = [docker_argv(plan, link) for plan, link in zip(plans(expose="direct", **raw), LINKS, strict=True)]
    # The digest is tested elsewhere: here it would hide what really changed.
    return [
        ["twinserve.digest=..." if word.startswith("twinserve.digest=") else word for word in argv]
        for argv in argvs
    ]


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("rank", [0, 1])
def test_the_command_line_is_the_golden_one(name: str, rank: int) -> None:
    path = GOLDEN / f"{name}.rank{rank}.txt"
    text = "\n".join(command_lines(CONFIGURATIONS[name])[rank]) + "\n"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path.name} was missing and has been written: read it, then commit it")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_ranks_differ_in_rank_api_addresses_and_devices_only(name: str) -> None:
    head, worker = command_lines(CONFIGURATIONS[name])
    api = head.index("--name", head.index("serve"))
    assert head[api::2][:3] == ["--name", "--host", "--port"]
    del head[api : api + 6]
    differing = [
        (before, one, two) for before, one, two in zip(["", *head], head, worker, strict=False) if one != two
    ]
    assert len(head) == len(worker)
    assert differing == [
        ("-e", "NCCL_IB_GID_INDEX=3", "NCCL_IB_GID_INDEX=5"),
        ("-e", "NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1", "NCCL_IB_HCA=rocep1s0f0,roceP2p1s0f0"),
        ("-e", "NCCL_SOCKET_IFNAME=enp1s0f1np1", "NCCL_SOCKET_IFNAME=enp1s0f0np0"),
        ("--rank", "0", "1"),
    ]
