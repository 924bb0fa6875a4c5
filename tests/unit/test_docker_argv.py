"""The docker command line of a rank: placeholders, empty values, order."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.docker_argv import LinkError, docker_argv

PLAN: dict[str, Any] = {
    "container": "c1",
    "image": "repo@sha256:aa",
    "digest": "sha256:dd",
    "docker": ["--network", "host"],
    "mounts": [
        {"source": "/w", "target": "/weights", "read_only": True},
        {"source": "/k", "target": "/cache", "read_only": False},
    ],
    "command": ["serve", "--master", "{head_address}", "--json", '{"a": {"b": 1}}'],
    "env": {"ZED": "0", "ALPHA": "1"},
    "link_env": {"IFNAME": "{netdev}", "HCA": "{hcas}", "GID": "{gid_index}"},
}
MAIN = {"netdev": "enp1", "hca": "rocep1", "address": "10.0.0.1", "gid_index": 3}
TWIN = {"netdev": "enP2p1", "hca": "roceP2p1", "address": "10.0.1.1", "gid_index": 3}


def link(*rails: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"master": "10.0.0.9", "rails": list(rails), **more}


def variables(argv: list[str]) -> list[str]:
    return [value for flag, value in zip(argv, argv[1:], strict=False) if flag == "-e"]


def test_the_whole_command_line_in_order() -> None:
    assert docker_argv(PLAN, link(MAIN, TWIN)) == [
        *(
            "docker",
            "run",
            "--rm",
            "--pull",
            "never",
            "--name",
            "c1",
            "--label",
            "twinserve.digest=sha256:dd",
        ),
        *("--network", "host"),
        *("-v", "/w:/weights:ro", "-v", "/k:/cache"),
        *("-e", "ALPHA=1", "-e", "GID=3", "-e", "HCA=rocep1,roceP2p1", "-e", "IFNAME=enp1", "-e", "ZED=0"),
        *("repo@sha256:aa", "serve", "--master", "10.0.0.9", "--json", '{"a": {"b": 1}}'),
    ]


@pytest.mark.parametrize(
    ("rails", "expected"),
    [
        ((MAIN,), "GID=3"),
        ((MAIN, TWIN), "GID=3"),
        (({**MAIN, "gid_index": 0},), "GID=0"),  # zero is a value, not "unset"
        ((MAIN, {**TWIN, "gid_index": 5}), None),  # F-03: one value cannot serve both devices
        (({**MAIN, "gid_index": None},), None),
    ],
)
def test_f04_an_index_that_is_not_known_is_left_out(rails: Any, expected: str | None) -> None:
    given = [item for item in variables(docker_argv(PLAN, link(*rails))) if item.startswith("GID")]
    assert given == ([] if expected is None else [expected])


def test_a_refit_is_appended_last_and_a_retry_overrides_the_environment() -> None:
    argv = docker_argv(PLAN, link(MAIN, append=["--context", "786432"], env={"ZED": "9", "ALPHA": ""}))
    assert argv[-2:] == ["--context", "786432"]
    assert "ZED=9" in variables(argv)
    assert not [item for item in variables(argv) if item.startswith("ALPHA")]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"master": "10.0.0.9", "rails": []}, "names no rail"),
        ({"rails": [MAIN]}, "head's address"),
    ],
)
def test_a_link_that_cannot_fill_the_plan_is_an_error(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(LinkError, match=message):
        docker_argv(PLAN, broken)


def test_l20_a_ranks_own_address_is_that_of_its_main_rail() -> None:
    plan = {**PLAN, "link_env": {"HOST": "{address}"}}
    assert "HOST=10.0.0.1" in variables(docker_argv(plan, link(MAIN, TWIN)))
    bare = {name: value for name, value in MAIN.items() if name != "address"}
    with pytest.raises(LinkError, match="does not say this rank's own address"):
        docker_argv(plan, link(bare, TWIN))
    assert docker_argv(PLAN, link(bare)), "only a plan that needs it asks for it"
