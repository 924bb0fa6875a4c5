"""The screen of status.yml: what it says of a pair that serves, waits, is down, or half gone."""

from __future__ import annotations

from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.status_text import screen

CONFIG: dict[str, Any] = {
    "pair": "pair1",
    "served_name": "GLM",
    "release": "v1.1",
    "digest": "sha256:new",
    "api": {"bind": "127.0.0.1", "port": 8888},
    "ranks": [{"rank": 0, "name": "spark-a"}, {"rank": 1, "name": "spark-b"}],
}
STATE: dict[str, Any] = {
    "state": "serving",
    "detail": "serving: window 1048576, 2 rails",
    "digest": "sha256:new",
    "effective": {"window": 1048576, "pool_tokens": 2684928, "pool_free_tokens": 2600000},
    "ranks": [{"rank": 0, "gpu_gib": 88.09}, {"rank": 1, "gpu_gib": None}],
    "rails": [
        {
            "head": {"hca": "rocep1s0f1", "address": "198.51.100.1", "gid_index": 3},
            "worker": {"hca": "rocep1s0f0", "address": "198.51.100.2", "gid_index": 5},
            "used": True,
        }
    ],
    "restarts": [],
    "last_canary": {"ok": True, "seconds": 0.2, "at": "2026-11-29T10:00:00+00:00"},
}


def node(active: str = "active", **more: Any) -> dict[str, Any]:
    """A probe, as far as the screen reads it."""
    units = {name: {"ActiveState": active} for name in ("twinserve.service", "twinserve-rank.service")}
    seen = {
        "services": units,
        "image": {"content": "sha256:0123456789abcdef"},
        "memory": {"available_gib": 27.4},
    }
    return seen | more


def shown(head: dict[str, Any], **nodes: dict[str, Any]) -> list[str]:
    return screen(
        head, {"spark-a": head, **{name.replace("_", "-"): one for name, one in nodes.items()}}
    ).splitlines()


def test_a_pair_that_serves_is_one_screen() -> None:
    assert shown(node(state=STATE, pair_config=CONFIG), spark_b=node()) == [
        "pair1: serving: window 1048576, 2 rails",
        "  api      http://127.0.0.1:8888/v1 (GLM)",
        "  window   1048576 tokens, pool 2684928, free 2600000",
        "  rank 0   spark-a: running, 88.1 GiB on the GPU, image 0123456789ab, 27 GiB memory free",
        "  rank 1   spark-b: running, image 0123456789ab, 27 GiB memory free",
        "  rail 0   rocep1s0f1 198.51.100.1 (GID 3) <-> rocep1s0f0 198.51.100.2 (GID 5)",
        "  release  v1.1",
        "  canary   answered in 0.2 s at 2026-11-29T10:00:00+00:00",
        "  restarts 0",
    ]


def test_a_worker_that_cannot_be_reached_is_said_and_the_rest_is_shown() -> None:
    lines = shown(node(state=STATE, pair_config=CONFIG))
    assert "  rank 1   spark-b: unreachable from here" in lines
    assert lines[0].startswith("pair1: serving")


def test_a_pair_that_is_down_shows_why() -> None:
    down = STATE | {"state": "down", "detail": "gave up after 3 restarts", "last_error": "NCCL error 5"}
    lines = shown(node(state=down, pair_config=CONFIG), spark_b=node("inactive", image=None, memory=None))
    assert lines[0] == "pair1: down, gave up after 3 restarts"
    assert "  restarts 0, last error: NCCL error 5" in lines
    assert "  rank 1   spark-b: not running, image missing" in lines


def test_a_stopped_pair_shows_nothing_of_its_last_life() -> None:
    lines = shown(node("inactive", state=STATE, pair_config=CONFIG), spark_b=node("inactive"))
    assert lines[0] == "pair1: stopped"
    assert "  window   - tokens, pool -, free -" in lines


def test_k09_other_settings_than_written_are_named() -> None:
    older = STATE | {"digest": "sha256:old", "warnings": ["this start holds a smaller window"]}
    lines = shown(node(state=older, pair_config=CONFIG), spark_b=node())
    assert lines[-2:] == [
        "  drift    running with other settings than written: run serve.yml -e restart=true",
        "  warning  this start holds a smaller window",
    ]


def test_a_head_without_a_deployment_says_what_to_run() -> None:
    assert shown(node(state=None, pair_config=None)) == ["nothing is deployed on this head yet: run site.yml"]
