"""Where the image comes from: names, steps, and how it travels from the head to a worker."""

from __future__ import annotations

import itertools
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import image_source, image_stream
from ansible_collections.twinserve.pair.plugins.module_utils.jobs import JobState, meaning
from engine_data import NODES, PRODUCT, faults, plans, settings
from fake_programs import Programs

PINNED = "ghcr.io/miaai-lab/glm-5.3-flash-exl3-2x-dgx-sparks-tensorfold@sha256:6ee3c6e0430040b69ddcb0c96c7fbbcb94a5bed47d48a8ba092626369ae533b9"  # noqa: E501
STREAMED = "localhost/twinserve/tensorfold:6ee3c6e04300"
BUILT = str(image_source.wanted(settings(), PRODUCT.release("v1.1"))["built"])


def names(release: str = "v1.1", **raw: Any) -> list[str]:
    return image_source.names(settings(release, **raw), PRODUCT.release(release))


def image(reference: str = PINNED, content: str = "1") -> dict[str, Any]:
    found = {"reference": reference, "content": f"sha256:{content}", "architecture": "arm64", "labels": {}}
    return {**found, "size": 25_000}


def node(*images: dict[str, Any], one_platform: bool = False) -> dict[str, Any]:
    docker = {"one_platform": one_platform, "logins": []}
    return {
        "image": images[0] if images else None,
        "images": list(images),
        "docker": docker,
        "architecture": "arm64",
    }


def steps(
    *nodes: dict[str, Any],
    checking: bool = False,
    elsewhere: bool = False,
    release: str = "v1.1",
    **raw: Any,
) -> list[str]:
    """The steps of each rank, in words."""
    data = PRODUCT.release(release)
    planned = image_source.steps(nodes, settings(release, **raw), data, checking, elsewhere)
    return [" ".join(name for name, wanted in one.items() if wanted) for one in planned]


def test_an_image_that_no_registry_stands_behind_has_a_name_that_none_is_asked_for() -> None:
    assert names() == [PINNED, STREAMED, BUILT]
    assert names(image_source="pull") == [PINNED, STREAMED]
    assert names(image_source="build") == [BUILT]
    assert BUILT.startswith("localhost/twinserve/tensorfold:") and len(BUILT.rpartition(":")[2]) == 12
    assert names("v1.5")[1:] == ["localhost/twinserve/tensorfold:ef83797d791f"], "no recipe, nothing built"


def test_what_a_release_cannot_build_is_refused_by_name() -> None:
    assert faults("v1.5", image_source="build") == [
        "image_source is 'build': it takes auto or pull (release v1.5)"
    ]
    assert faults("v1.2", image_source="build") == []
    assert faults(rebuild=True) == [
        "rebuild builds the image anew: it needs image_source: build (image_source is auto)"
    ]
    assert faults(rebuild=True, image_source="build") == []


BARE, HAS = node(), node(image())
OTHER = node(image(content="2"))
MADE = node(image(BUILT))


@pytest.mark.parametrize(
    ("head", "worker", "raw", "wanted"),
    [
        (HAS, HAS, {}, ["", ""]),
        (BARE, BARE, {}, ["pull", "pull"]),
        (BARE, BARE, {"image_source": "pull"}, ["pull", "pull"]),
        (HAS, BARE, {}, ["", "pull stream"]),
        (HAS, BARE, {"image_source": "pull"}, ["", "pull stream"]),
        (HAS, OTHER, {}, ["", "stream"]),
        (HAS, node(image(content="2"), image(STREAMED)), {}, ["", ""]),
        (MADE, BARE, {}, ["", "stream"]),
        (BARE, BARE, {"image_source": "build"}, ["build", ""]),
        (MADE, BARE, {"image_source": "build"}, ["", "stream"]),
        (MADE, MADE, {"image_source": "build"}, ["", ""]),
        (MADE, MADE, {"image_source": "build", "rebuild": True}, ["build", ""]),
        (BARE, BARE, {"bundle": "/mnt"}, ["load", ""]),
        (BARE, BARE, {"bundle": "/mnt", "image_source": "build"}, ["build", ""]),
        (HAS, BARE, {"bundle": "/mnt"}, ["", "stream"]),
        (BARE, BARE, {"prepare": "never"}, ["", ""]),
        (HAS, OTHER, {"prepare": "never"}, ["", ""]),
    ],
)
def test_each_step_is_taken_only_for_what_is_missing(
    head: dict[str, Any], worker: dict[str, Any], raw: dict[str, Any], wanted: list[str]
) -> None:
    assert steps(head, worker, **raw) == wanted


@pytest.mark.parametrize(
    ("head", "worker", "raw", "wanted"),
    [
        (BARE, BARE, {}, ["pull", "pull"]),
        (HAS, BARE, {}, ["", "pull"]),
        (HAS, OTHER, {}, ["", "stream"]),
        (BARE, BARE, {"image_source": "build"}, ["build", "stream"]),
        (MADE, MADE, {"image_source": "build", "rebuild": True}, ["build", "stream"]),
        (BARE, BARE, {"bundle": "/mnt"}, ["load", "stream"]),
        (BARE, HAS, {"bundle": "/mnt"}, ["load", ""]),
        (HAS, HAS, {}, ["", ""]),
    ],
)
def test_check_mode_foresees_what_a_run_would_do(
    head: dict[str, Any], worker: dict[str, Any], raw: dict[str, Any], wanted: list[str]
) -> None:
    assert steps(head, worker, checking=True, **raw) == wanted


OTHER_DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("release", "raw", "planned"),
    [
        ("v1.1", {}, "pull build"),
        ("v1.1", {"image": "registry.example/mirror"}, "pull build"),
        ("v1.1", {"image_digest": OTHER_DIGEST}, "pull"),
        ("v1.1", {"image_source": "pull"}, "pull"),
        ("v1.5", {}, "pull"),
    ],
)
def test_the_recipe_stands_in_for_the_releases_own_image_alone(
    release: str, raw: dict[str, Any], planned: str
) -> None:
    """After a pull that another source mends."""
    assert steps(BARE, BARE, elsewhere=True, release=release, **raw) == [planned, "pull"]
    assert steps(BARE, BARE, release=release, **raw) == ["pull", "pull"]
    stands = planned == "pull build"
    assert (
        image_source.wanted(settings(release, **raw), PRODUCT.release(release))["built"] is not None
    ) is stands


def test_ranks_name_the_image_as_their_node_has_it_and_restart_for_its_content_alone() -> None:
    def rendered(*images: dict[str, Any]) -> list[dict[str, Any]]:
        nodes = [{**one, "image": found} for one, found in zip(NODES, images, strict=True)]
        found: list[dict[str, Any]] = plans_with(nodes)
        return found

    both = rendered(image(), image(STREAMED))
    assert [plan["image"] for plan in both] == [PINNED, STREAMED]
    later = rendered(image(), image())
    assert [plan["digest"] for plan in both] == [plan["digest"] for plan in later]
    other = rendered(image(content="2"), image(STREAMED, content="2"))
    assert both[0]["digest"] != other[0]["digest"], "built anew under the same name"
    assert plans()[0]["image"] == PINNED, "not there yet"


def plans_with(nodes: list[dict[str, Any]], **raw: Any) -> list[dict[str, Any]]:
    from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans  # noqa: PLC0415

    return rank_plans([settings(**raw)] * 2, PRODUCT.release("v1.1"), nodes, "pair1")


def kernels(found: dict[str, Any] | None, **raw: Any) -> str:
    return image_source.kernel_label(settings(**raw), PRODUCT.release("v1.1"), found)


def test_c15_a_built_image_has_a_folder_of_kernels_of_its_own() -> None:
    own = BUILT.rpartition(":")[2]
    assert kernels(image()) == kernels(image(STREAMED)) == kernels(None) == "cb7c56f7f921"
    assert kernels(image(BUILT)) == kernels(None, image_source="build") == own
    assert kernels(None, image_digest=f"sha256:{'ab' * 32}") == "ab" * 6
    assert kernels(None, image_source="build", base_image="nvcr.io/nvidia/pytorch:26.08-py3") != own


def wanted(**raw: Any) -> dict[str, Any]:
    return image_source.wanted(settings(**raw), PRODUCT.release("v1.1"))


def test_c03_the_image_goes_from_docker_to_docker_with_nothing_written_in_between() -> None:
    script = image_stream.stream_argv(HAS, wanted(), ["198.51.100.2"])[2]
    *_, option, pipe = script.split("; ")
    assert option == "set -o pipefail"
    assert ">" not in pipe and "/tmp" not in script
    assert pipe.split(" | ")[:2] == [
        f"docker tag {PINNED} {STREAMED} && docker save {STREAMED}",
        "/usr/bin/python3 -P -m twinserve.piped 25000",
    ]
    ssh = shlex.split(pipe.rpartition(" | ")[2])
    assert ssh[1] == "-T" and ssh[-1] == "twinserve@$rail", "what is run there is up to the key"
    assert "IdentityFile=/etc/twinserve/keys/image" in ssh and "StrictHostKeyChecking=yes" in ssh


def test_c02_one_platform_is_asked_for_where_docker_can() -> None:
    able = node(image(), one_platform=True)
    assert (
        f"docker save --platform linux/arm64 {STREAMED} "
        in image_stream.stream_argv(able, wanted(), ["h"])[2]
    )
    assert "--platform" not in image_stream.stream_argv(HAS, wanted(), ["h"])[2]


def test_c08_what_is_saved_has_a_name_that_travels_with_it() -> None:
    """A digest does not travel: the image would arrive without any name."""
    for reference, name in ((PINNED, STREAMED), (STREAMED, STREAMED), (BUILT, BUILT)):
        script = image_stream.stream_argv(node(image(reference)), wanted(), ["h"])[2]
        assert f"docker save {name} |" in script
        assert ("docker tag" in script) is (reference == PINNED)


@pytest.mark.parametrize(("save", "load"), [code for code in itertools.product((0, 1), (0, 1)) if any(code)])
def test_c03_the_failure_of_either_end_is_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: int, load: int
) -> None:
    programs = Programs(tmp_path, monkeypatch, "docker", "ssh")
    (tmp_path / "twinserve").symlink_to(Path(image_stream.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    argv = image_stream.stream_argv(HAS, wanted(), ["198.51.100.2"])
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0
    for program, code in (("docker_save", save), ("ssh", load)):
        programs.answer(program, "it broke", code or None)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "it broke" in done.stderr + done.stdout
    assert [call for call in programs.calls if "docker" in call][0] == f"docker tag {PINNED} {STREAMED}"


@pytest.mark.parametrize(
    ("lets_in", "used", "said"),
    [
        (("198.51.100.2", "203.0.113.2"), "198.51.100.2", ""),
        (("203.0.113.2",), "203.0.113.2", ""),
        ((), None, "no rail lets the image key in: ssh: no route\n"),
    ],
)
def test_the_image_takes_the_first_rail_that_lets_the_key_in(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lets_in: tuple[str, ...],
    used: str | None,
    said: str,
) -> None:
    programs = Programs(tmp_path, monkeypatch, "docker", "ssh")
    (tmp_path / "twinserve").symlink_to(Path(image_stream.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    open_rails = "|".join(f"*@{rail}*" for rail in lets_in) or "none"
    refusing = f'case "$*" in {open_rails}) ;; *) echo "Warning\nssh: no route" >&2; exit 255 ;; esac\n'
    program = tmp_path / "bin/ssh"
    program.write_text(program.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\n{refusing}"))
    argv = image_stream.stream_argv(HAS, wanted(), ["198.51.100.2", "203.0.113.2"])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode == 0, done.stdout + done.stderr) == (used is not None, said)
    loads = [call.split("@")[-1] for call in programs.calls if call.startswith("ssh") and "true" not in call]
    assert loads == ([used] if used else [])


@pytest.mark.parametrize(
    ("stores", "free", "said"),
    [
        (("overlay2", "overlay2"), (26.0, 51.0), []),
        (("containerd", "overlay2"), (1.0, 51.0), []),
        (
            ("overlay2", "containerd"),
            (24.0, 49.0),
            [
                "spark-a: image store /var/lib/docker has 24.0 GB free, 25.0 GB needed to bring the "
                "head's image to the worker (docker save writes it there first)",
                "spark-b: image store /var/lib/containerd has 49.0 GB free, 50.0 GB needed to bring the "
                "head's image to the worker (docker load keeps what came beside what it makes of it)",
            ],
        ),
    ],
)
def test_c04_a_stream_needs_room_for_what_docker_writes_meanwhile(
    stores: tuple[str, str], free: tuple[float, float], said: list[str]
) -> None:
    paths = {"overlay2": "/var/lib/docker", "containerd": "/var/lib/containerd"}
    nodes = [
        {
            "image": {"size": 25_000_000_000},
            "docker": {"store": store},
            "disk": {"images": {"path": paths[store], "free_gb": room}},
        }
        for store, room in zip(stores, free, strict=True)
    ]
    assert image_stream.room_faults(nodes, ["spark-a", "spark-b"]) == said
    unbuilt = [{**nodes[0], "image": None}, nodes[1]]
    assert image_stream.room_faults(unbuilt, ["spark-a", "spark-b"]) == []


def told(said: str, meanings: dict[str, str]) -> str:
    return meaning(JobState("failed", 1, 0, "", 0, said.splitlines()), meanings)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            "open /var/lib/docker/tmp/docker-import-1/blobs/sha256/aa11: no such file or directory",
            "docker load on spark-b failed (missing blob): pull r@sha256:1 there, "
            "or export a single-platform image",
        ),
        (
            "unpigz: x\ncontent digest sha256:aa11: not found",
            "docker load on spark-b failed (missing blob): pull r@sha256:1 there, "
            "or export a single-platform image",
        ),
        (
            "Error: write /x: no space left on device",
            "the image store of spark-b is full (no space left on device)",
        ),
        (
            "write /var/lib/docker/tmp/docker-export-12/layer.tar: no space left on device",
            "the image store of the head is full (no space left on device)",
        ),
        (
            "twinserve@h: Permission denied (publickey).",
            "head cannot ssh to the worker at 198.51.100.2 as twinserve: authorise its key and host key; "
            "run ansible-playbook playbooks/fabric.yml",
        ),
        (
            "sudo: a password is required",
            "spark-b does not let its image key load images; run ansible-playbook playbooks/fabric.yml",
        ),
        (
            'error during connect: Post "http://%2Fvar%2Frun%2Fdocker.sock/v1.45/images/load?quiet=1": EOF',
            "docker of spark-b went away meanwhile (systemctl status docker); run again",
        ),
        (
            'error during connect: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.45/images/get?names=x": EOF',
            "docker of the head went away meanwhile (systemctl status docker); run again",
        ),
        (
            "Timeout, server 198.51.100.2 not responding.",
            "the connection to spark-b at 198.51.100.2 broke off; run again",
        ),
        (
            "Connection to 198.51.100.2 closed by remote host.",
            "the connection to spark-b at 198.51.100.2 broke off; run again",
        ),
        ("Cannot connect to the Docker daemon", ""),
    ],
)
def test_c02_what_a_stream_says_when_it_fails_is_told_in_words(said: str, text: str) -> None:
    assert told(said, image_stream.stream_meanings("spark-b", "198.51.100.2", "r@sha256:1")) == text


@pytest.mark.parametrize(
    "said",
    [
        "Error response from daemon: denied: denied",
        "pull access denied for x/y, repository does not exist or may require 'docker login'",
        "unexpected status from HEAD request to https://ghcr.io/v2/x/y/manifests/1: 403 Forbidden",
        "unauthorized: authentication required",
    ],
)
def test_c06_an_old_login_is_named_and_nothing_is_built_instead(said: str) -> None:
    with_login: dict[str, Any] = {"docker": {"logins": ["https://ghcr.io"]}}
    refused = 'ghcr.io refused a stored login on the head; run "sudo docker logout ghcr.io" there'
    assert told(said, image_stream.pull_meanings(with_login, wanted(), "the head")) == (
        f"{refused}, or set image_source: build"
    )
    own = wanted(image_digest=OTHER_DIGEST)
    assert told(said, image_stream.pull_meanings(with_login, own, "the head")) == refused, "no recipe"
    without: dict[str, Any] = {"docker": {"logins": ["nvcr.io"]}}
    assert told(said, image_stream.pull_meanings(without, wanted(), "the head")) == (
        f"ghcr.io does not give out {PINNED.partition('@')[0]} without a login; "
        "run sudo docker login ghcr.io there"
    )
    assert ways(said) == ("", True)


def ways(said: str) -> tuple[str, bool]:
    """After which words the head builds, and whether a worker gets the head's; as the role asks."""
    found = told(said, image_stream.pull_meanings({}, wanted(), "x"))
    head, worker = (image_stream.other_ways({}, wanted(), "x", is_head).values() for is_head in (True, False))
    return found if found in head else "", found in worker


@pytest.mark.parametrize(
    "said",
    [
        "error pulling image configuration: download failed after attempts=6: dial tcp: connection refused",
        'Get "https://ghcr.io/v2/x/y/blobs/sha256:aa11": dial tcp: connection refused',
        "failed to copy: httpReadSeeker: failed open: dial tcp: connection refused",
        "unexpected EOF",
    ],
)
def test_a_pull_that_broke_off_is_named_and_nothing_is_built_instead(said: str) -> None:
    assert told(said, image_stream.pull_meanings({}, wanted(), "the head")) == (
        "ghcr.io broke off in the middle; run again"
    )
    assert ways(said) == ("", True)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Error response from daemon: manifest unknown", "ghcr.io has no "),
        (
            "manifest for ghcr.io/x/y@sha256:1 not found: manifest unknown: manifest unknown",
            "ghcr.io has no ",
        ),
        (
            'failed to resolve reference "ghcr.io/x/y@sha256:1": ghcr.io/x/y@sha256:1: not found',
            "ghcr.io has no ",
        ),
        ('Get "https://ghcr.io/v2/": dial tcp: lookup ghcr.io: no such host', "ghcr.io cannot be reached"),
        ("dial tcp 192.0.2.1:443: connect: connection refused", "ghcr.io cannot be reached"),
        ('Get "https://ghcr.io/v2/": net/http: TLS handshake timeout', "ghcr.io cannot be reached"),
    ],
)
def test_what_another_source_mends_is_known_by_what_the_pull_said(said: str, text: str) -> None:
    found = told(said, image_stream.pull_meanings({}, wanted(), "the head"))
    assert found.startswith(text) and ways(said) == (found, True)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
            "the image store of the head is full (no space left on device)",
        ),
        ("read tcp 192.0.2.1:443: connection reset by peer", ""),
        ("Cannot connect to the Docker daemon: dial unix: connect: connection refused", ""),
        ("open /var/lib/docker/x: permission denied", ""),
        ("invalid reference format", ""),
    ],
)
def test_any_other_failure_of_a_pull_is_the_runs(said: str, text: str) -> None:
    assert told(said, image_stream.pull_meanings({}, wanted(), "the head")) == text
    assert ways(said) == ("", False)


@pytest.mark.parametrize(
    ("repository", "registry"),
    [
        ("ghcr.io/a/b", "ghcr.io"),
        ("registry:5000/a", "registry:5000"),
        ("localhost/a", "localhost"),
        ("vllm/vllm-openai", "docker.io"),
        ("ubuntu", "docker.io"),
    ],
)
def test_the_registry_that_a_repository_names(repository: str, registry: str) -> None:
    assert image_stream.registry_of(repository) == registry
