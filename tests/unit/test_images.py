"""Images and stores told apart by what they are, not by what they are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.images import (
    image_faults,
    parse_docker_info,
    parse_image,
    read_image,
)
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from fake_programs import Programs

REFERENCE = "ghcr.io/example/engine@sha256:0123"


def inspected(**changes: Any) -> dict[str, Any]:
    """What `docker image inspect` says of the engine's image, with changes to its configuration."""
    config = {
        "Env": ["A=1"],
        "Entrypoint": None,
        "Cmd": ["serve"],
        "WorkingDir": "/app",
        "Labels": {"x": "1"},
    }
    return {
        "Id": changes.pop("Id", "sha256:aaaa"),
        "Os": "linux",
        "Architecture": changes.pop("Architecture", "arm64"),
        "RootFS": {"Layers": changes.pop("Layers", ["sha256:l1", "sha256:l2"])},
        "RepoTags": changes.pop("RepoTags", ["engine:v1"]),
        "Config": config | changes,
    }


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"Id": "sha256:bbbb"}, True),
        ({"RepoTags": []}, True),
        ({"Hostname": "build-7"}, True),
        ({"Layers": ["sha256:l1"]}, False),
        ({"Env": ["A=2"]}, False),
        ({"Cmd": ["other"]}, False),
        ({"Entrypoint": ["/x"]}, False),
        ({"WorkingDir": "/"}, False),
        ({"Labels": {"x": "2"}}, False),
        ({"Architecture": "amd64"}, False),
    ],
)
def test_c01_content_is_layers_and_configuration_and_not_the_id(changes: dict[str, Any], same: bool) -> None:
    one, other = parse_image("r", inspected()), parse_image("r", inspected(**changes))
    assert (one.content == other.content) is same


def test_c01_two_stores_of_one_image_are_no_fault() -> None:
    one = {"image": parse_image("r", inspected()).as_dict()}
    other = {"image": parse_image("r", inspected(Id="sha256:bbbb")).as_dict()}
    assert image_faults([one, other], ["a", "b"], "r", absent_is_right=False) == []


def test_c20_other_content_behind_the_name_is_told_with_the_cure() -> None:
    one = {"image": parse_image("r", inspected()).as_dict()}
    other = {"image": parse_image("r", inspected(Layers=[])).as_dict()}
    (fault,) = image_faults([one, other], ["a", "b"], "engine:v1", absent_is_right=False)
    assert fault.startswith("b has other content behind engine:v1 than a: remove it there (docker image rm)")


@pytest.mark.parametrize(
    ("absent_is_right", "faults"), [(True, []), (False, ["b does not have r: run with -e prepare=auto"])]
)
def test_an_absent_image_is_a_fault_only_when_it_should_be_there(
    absent_is_right: bool, faults: list[str]
) -> None:
    one = {"image": parse_image("r", inspected()).as_dict()}
    assert image_faults([one, {"image": None}], ["a", "b"], "r", absent_is_right) == faults


@pytest.mark.parametrize(
    ("info", "store", "path"),
    [
        (
            {"Driver": "overlayfs", "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
            | {"DockerRootDir": "/data/docker"},
            "containerd",
            "/var/lib/containerd",
        ),
        (
            {"Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "extfs"]]}
            | {"DockerRootDir": "/data/docker"},
            "overlay2",
            "/data/docker",
        ),
        ({"Driver": "overlay2", "DriverStatus": None}, "overlay2", "/var/lib/docker"),
    ],
)
def test_c04_layers_are_where_the_store_in_use_puts_them(info: dict[str, Any], store: str, path: str) -> None:
    docker = parse_docker_info(info | {"ServerVersion": "28.1", "Architecture": "aarch64"})
    assert (docker.store, docker.store_path, docker.version, docker.architecture) == (
        store,
        path,
        "28.1",
        "aarch64",
    )


def test_the_image_is_asked_for_by_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path, monkeypatch, "docker")
    programs.answer("docker_image_inspect", json.dumps([inspected()]))
    found = read_image(REFERENCE)
    assert found is not None
    assert (found.reference, found.architecture, found.labels) == (REFERENCE, "arm64", {"x": "1"})
    programs.answer("docker_image_inspect", f"Error response from daemon: No such image: {REFERENCE}", 1)
    assert read_image(REFERENCE) is None
    assert programs.calls == [f"docker image inspect {REFERENCE}"] * 2


def test_a_daemon_that_fails_is_not_an_absent_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(tmp_path, monkeypatch, "docker").answer("docker", "Cannot connect to the Docker daemon\n", 1)
    with pytest.raises(CommandError, match="Cannot connect to the Docker daemon"):
        read_image(REFERENCE)
