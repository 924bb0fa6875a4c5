"""Images and stores told apart by what they are, not by what they are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.images import (
    image_faults,
    matching,
    parse_docker_info,
    parse_image,
    read_image,
    stored_logins,
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


def node(**changes: Any) -> dict[str, Any]:
    """A node that has one image, by the name `engine:v1`."""
    image = parse_image("engine:v1", inspected(**changes)).as_dict()
    return {"image": image, "images": [image], "architecture": "arm64"}


def faults(*nodes: dict[str, Any], to_come: bool = False) -> list[str]:
    return image_faults(nodes, ["spark-a", "spark-b"], "engine:v1", "tf.patches", to_come)


def test_c01_two_stores_of_one_image_are_no_fault() -> None:
    nodes = [node(), node(Id="sha256:bbbb")]
    assert faults(*nodes) == []
    assert matching(nodes) == [nodes[0]["image"], nodes[1]["image"]]


def test_c01_docker_may_write_nothing_as_it_likes() -> None:
    """An older engine says null where a newer one leaves the key out, or says an empty text."""
    bare = inspected(WorkingDir="", Labels={})
    for key in ("WorkingDir", "Labels", "Entrypoint"):
        other = json.loads(json.dumps(bare))
        del other["Config"][key]
        assert parse_image("r", bare).content == parse_image("r", other).content


@pytest.mark.parametrize(
    ("patches", "said"),
    [
        (("1" * 12, "2" * 12), f"spark-b runs engine:v1 with patches {'1' * 12}, spark-a has {'2' * 12}"),
        (("1" * 12, "1" * 12), "spark-b has other content behind engine:v1 than spark-a"),
        ((None, "2" * 12), "spark-b has other content behind engine:v1 than spark-a"),
    ],
)
def test_c20_an_older_image_behind_the_name_is_told_with_what_is_in_it(
    patches: tuple[str | None, str], said: str
) -> None:
    worker, head = (
        node(Layers=[str(number)], Labels={"tf.patches": text} if text else {})
        for number, text in enumerate(patches)
    )
    assert faults(head, worker) == [f"{said}; run with -e prepare=auto to replace it"]
    assert faults(head, worker, to_come=True) == [], "a run would replace it"
    assert matching([head, worker])[1] is None


def test_an_image_for_other_machines_is_told_before_anything_runs_from_it() -> None:
    said = "is arm64, engine:v1 is an image for amd64: set image and image_digest to one for arm64"
    nodes = [node(Architecture="amd64"), node(Architecture="amd64")]
    assert faults(*nodes) == [f"spark-a {said}", f"spark-b {said}"]


def test_a_worker_runs_what_is_the_heads_by_whatever_name() -> None:
    head, worker = node(), node(Layers=["sha256:older"])
    right = parse_image("localhost/twinserve/tensorfold:1", inspected()).as_dict()
    worker["images"].append(right)
    assert matching([head, worker]) == [head["image"], right]
    assert faults(head, worker) == []


@pytest.mark.parametrize(
    ("to_come", "said"),
    [(True, []), (False, ["spark-b does not have engine:v1: run with -e prepare=auto"])],
)
def test_an_absent_image_is_a_fault_only_when_it_should_be_there(to_come: bool, said: list[str]) -> None:
    assert faults(node(), {"image": None, "images": []}, to_come=to_come) == said


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


@pytest.mark.parametrize(
    ("config", "address", "path"),
    [
        (None, "/run/containerd/containerd.sock", "/var/lib/containerd"),
        ("version = 3\nroot = '/data/containerd'\n", "/run/containerd/containerd.sock", "/data/containerd"),
        ('root = "/data/c"\n[plugins]\n', None, "/data/c"),
        ('#root = "/old"\n[plugins]\n  root = "/plugin"\n', None, "/var/lib/containerd"),
        ("root = '/data/containerd'\n", "/var/run/docker/containerd/containerd.sock", "/d/containerd/daemon"),
    ],
)
def test_c04_containerd_may_keep_layers_elsewhere(
    tmp_path: Path, config: str | None, address: str | None, path: str
) -> None:
    file = tmp_path / "config.toml"
    if config is not None:
        file.write_text(config)
    info: dict[str, Any] = {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
    info |= {"DockerRootDir": "/d", "Containerd": {"Address": address} if address else None}
    assert parse_docker_info(info, file).store_path == path


@pytest.mark.parametrize(
    ("server", "client", "able"),
    [
        ("28.0.0", "28.0.0", True),
        ("29.1.0-rc.1", "28.2.2", True),
        ("26.1.5+dfsg1", "28.2.2", False),
        ("28.2.2", "27.5.1", False),
        ("28.2.2", None, True),
        ("", None, False),
    ],
)
def test_c02_one_platform_is_saved_where_both_ends_of_docker_know_how(
    server: str, client: str | None, able: bool
) -> None:
    info: dict[str, Any] = {"ServerVersion": server, "ClientInfo": {"Version": client} if client else None}
    assert parse_docker_info(info).one_platform is able


@pytest.mark.parametrize(
    ("config", "logins"),
    [
        ({"auths": {"ghcr.io": {"auth": "c2VjcmV0"}}}, ["ghcr.io"]),
        (
            {"auths": {"ghcr.io": {}}, "credHelpers": {"nvcr.io": "x"}, "credsStore": "y"},
            ["ghcr.io", "nvcr.io"],
        ),
        ({"auths": None}, []),
        ([], []),
    ],
)
def test_c06_of_stored_logins_only_the_registries_are_read(
    tmp_path: Path, config: Any, logins: list[str]
) -> None:
    path = tmp_path / "config.json"
    assert stored_logins(path) == []
    path.write_text(json.dumps(config))
    assert stored_logins(path) == logins
    path.write_text("{broken")
    assert stored_logins(path) == []


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
