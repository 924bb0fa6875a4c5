"""Who has a node's GPU: what a person can stop, by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gpu_holders import (
    holders,
    parse_containers,
    read_containers,
)
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from fake_programs import Programs

ID = "8f3c" * 16


def inspected(host: dict[str, Any], labels: dict[str, str] | None = None, name: str = "comfy") -> str:
    return json.dumps([{"Id": ID, "Name": f"/{name}", "HostConfig": host, "Config": {"Labels": labels}}])


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ({"DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}]}, True),
        ({"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=all"]}]}, True),
        ({"Runtime": "nvidia"}, True),
        ({"Devices": [{"PathOnHost": "/dev/nvidia0"}]}, True),
        ({"Runtime": "runc", "DeviceRequests": None, "Devices": [{"PathOnHost": "/dev/fuse"}]}, False),
        ({}, False),
    ],
)
def test_l15_a_container_that_was_given_a_gpu_is_named(host: dict[str, Any], named: bool) -> None:
    assert holders([], parse_containers(inspected(host))) == ['container "comfy" (GPU)'] * named


def test_l15_our_own_rank_is_not_among_them(tmp_path: Path) -> None:
    ours = parse_containers(inspected({"Runtime": "nvidia"}, {"twinserve.digest": "sha256:1"}))
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(f"0::/system.slice/docker-{ID}.scope\n")
    assert holders(["7"], ours, tmp_path) == []


def test_l15_a_process_goes_by_its_container_else_by_its_program(tmp_path: Path) -> None:
    for pid, group, name in (("7", f"docker-{ID}.scope", "python"), ("9", "user.slice", "ollama")):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cgroup").write_text(f"0::/{group}\n")
        (tmp_path / f"proc/{pid}/comm").write_text(f"{name}\n")
    plain = parse_containers(inspected({}))
    assert holders(["7", "9", "11"], plain, tmp_path) == [
        'container "comfy" (GPU)',
        "ollama (pid 9)",
        "a program (pid 11)",
    ]


def test_l15_docker_is_asked_for_what_runs_and_one_may_end_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker = Programs(tmp_path, monkeypatch, "docker")
    assert read_containers() == []
    docker.answer("docker_ps", f"{ID}\n")
    docker.answer("docker_container_inspect", inspected({"Runtime": "nvidia"}))
    assert [(one.name, one.gpu, one.ours) for one in read_containers()] == [("comfy", True, False)]
    docker.answer("docker_container_inspect", f"Error: No such container: {ID}", 1)
    assert read_containers() == []
    docker.answer("docker_container_inspect", "Cannot connect to the Docker daemon", 1)
    with pytest.raises(CommandError, match="Cannot connect"):
        read_containers()
