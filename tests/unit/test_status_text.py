"""The screen of status.yml: what it says of a pair that serves, waits, is down, or half gone."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.filter.pairs import FilterModule
from ansible_collections.twinserve.pair.plugins.module_utils.pair_report import report
from ansible_collections.twinserve.pair.plugins.module_utils.status_text import overview, screen

HOSTS = ("spark-a", "spark-b")

CONFIG: dict[str, Any] = {
    "pair": "pair1",
    "served_name": "GLM",
    "release": "v1.1",
    "digest": "sha256:new",
    "api": {"bind": "127.0.0.1", "port": 8888},
    "promise": {"parallel": 4},
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


def snapshot(repo: str, digit: str) -> str:
    """Where a rank finds a revision."""
    return f"/root/.cache/huggingface/hub/models--{repo.replace('/', '--')}/snapshots/{digit * 40}"


def node(active: str = "active", **more: Any) -> dict[str, Any]:
    """A probe, as far as the screen reads it."""
    units = {name: {"ActiveState": active} for name in ("twinserve.service", "twinserve-rank.service")}
    seen = {
        "services": units,
        "image": {"content": "sha256:0123456789abcdef"},
        "rank_plan": {
            "command": ["tensorfold", "serve", snapshot("o/model", "9"), "--drafter", snapshot("o/d", "b")]
        },
        "memory": {"available_gib": 27.4},
    }
    return seen | more


def known(head: dict[str, Any] | None, worker: dict[str, Any] | None = None) -> dict[str, Any]:
    """The document of a pair whose nodes said this; None for one that cannot be reached."""
    seen = {name: one for name, one in zip(HOSTS, (head, worker), strict=True) if one is not None}
    return report("pair1", HOSTS, seen)


def shown(head: dict[str, Any] | None, spark_b: dict[str, Any] | None = None) -> list[str]:
    return screen(known(head, spark_b)).splitlines()


def test_a_pair_that_serves_is_one_screen() -> None:
    assert shown(node(state=STATE, pair_config=CONFIG), spark_b=node()) == [
        "pair1: serving: window 1048576, 2 rails",
        "  api      http://127.0.0.1:8888/v1 (GLM)",
        "  window   1048576 tokens, pool 2684928, free 2600000, 4 streams",
        "  rank 0   spark-a: running, 88.1 GiB on the GPU, image 0123456789ab, 27 GiB memory free",
        "  rank 1   spark-b: running, image 0123456789ab, 27 GiB memory free",
        "  rail 0   rocep1s0f1 198.51.100.1 (GID 3) <-> rocep1s0f0 198.51.100.2 (GID 5)",
        "  release  v1.1",
        "  weights  o/model at 999999999999",
        "  weights  o/d at bbbbbbbbbbbb",
        "  canary   answered in 0.2 s at 2026-11-29T10:00:00+00:00",
        "  restarts 0",
    ]


def test_ranks_of_two_revisions_are_told_apart() -> None:
    other = node(rank_plan={"command": [snapshot("o/model", "8"), snapshot("o/d", "b")]})
    lines = shown(node(state=STATE, pair_config=CONFIG), spark_b=other)
    assert [line for line in lines if "weights" in line] == [
        "  weights  o/model at 999999999999 (rank 0 only)",
        "  weights  o/d at bbbbbbbbbbbb",
        "  weights  o/model at 888888888888 (rank 1 only)",
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
    assert "  window   - tokens, 4 streams" in lines


def test_k09_other_settings_than_written_are_named() -> None:
    older = STATE | {"digest": "sha256:old", "warnings": ["this start holds a smaller window"]}
    lines = shown(node(state=older, pair_config=CONFIG), spark_b=node())
    assert lines[-2:] == [
        "  drift    running with other settings than written: run serve.yml -e restart=true",
        "  warning  this start holds a smaller window",
    ]


def gateway(left: int, lasts: int = 825, looks: str = "", active: str = "active") -> dict[str, Any]:
    """A head whose certificate has so many of its days left, and a unit that `looks` after it."""
    ends = 1867276800.0
    shown = {"begins": ends - lasts * 86400, "ends": ends}
    watcher = f"/etc/systemd/system/twinserve-gateway-certificate.{looks}"
    config = CONFIG | {"api": {"bind": "127.0.0.1", "port": 18888, "gateway": True}}
    head = node(
        state=STATE,
        pair_config=config,
        gateway={"now": ends - left * 86400, "shown_certificate": shown},
        files={watcher: "0644 sha256:1"} if looks else {},
    )
    head["services"]["twinserve-gateway.service"] = {"ActiveState": active}
    return head


@pytest.mark.parametrize(
    ("active", "lines", "serves"),
    [
        ("active", ["  gateway  running, certificate until 2029-03-04"], "healthy"),
        (
            "failed",
            [
                "  health   degraded: the gateway does not run: "
                "systemctl status twinserve-gateway on spark-a",
                "  gateway  not running, certificate until 2029-03-04",
            ],
            "degraded",
        ),
    ],
)
def test_the_gateway_is_shown_and_missed(active: str, lines: list[str], serves: str) -> None:
    head = gateway(left=500, active=active)
    assert [line for line in shown(head, spark_b=node()) if "gateway" in line] == lines
    assert known(head, node())["health"] == serves


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (gateway(left=31), ""),
        (gateway(left=30), "run serve.yml, which renews it"),
        (
            gateway(left=29, looks="path"),
            "put a newer one in the place of gateway_certificate on spark-a, and the gateway takes it",
        ),
        (gateway(left=29, lasts=90, looks="timer"), ""),  # it is renewed in these days
        (
            gateway(left=22, lasts=90, looks="timer"),
            "journalctl -u twinserve-gateway-certificate on spark-a says why it was not renewed",
        ),
    ],
    ids=["far", "own", "files", "acme", "acme late"],
)
def test_a_certificate_that_ends_soon_is_told_with_what_to_do(head: dict[str, Any], told: str) -> None:
    warnings = [f"the gateway's certificate ends on 2029-03-04: {told}"] if told else []
    found = known(head, node())
    assert (found["health"], found["warnings"]) == ("healthy", warnings)
    assert [line for line in shown(head, node()) if "warning" in line] == [
        f"  warning  {text}" for text in warnings
    ]


def test_a_certificate_that_has_ended_shuts_clients_out() -> None:
    said = "the gateway's certificate ended on 2029-03-04: run serve.yml, which renews it"
    found = known(gateway(left=0), node())
    assert (found["health"], found["problems"], found["warnings"]) == ("degraded", [said], [])


def test_a_certificate_of_a_gateway_that_is_not_used_is_nobodys() -> None:
    assert known(gateway(left=3) | {"pair_config": CONFIG}, node())["warnings"] == []


def test_an_ipv6_address_of_the_api_is_shown_as_a_url_has_it() -> None:
    config = CONFIG | {"api": {"bind": "::1", "port": 8888}}
    lines = shown(node(state=STATE, pair_config=config), spark_b=node())
    assert "  api      http://[::1]:8888/v1 (GLM)" in lines


def test_a_head_without_a_deployment_says_what_to_run() -> None:
    assert shown(node(state=None, pair_config=None)) == [
        "pair1: absent: nothing is deployed on this head yet: run site.yml"
    ]


def test_a_head_that_cannot_be_reached_is_said() -> None:
    assert shown(None, node()) == ["pair1: unreachable: head spark-a is unreachable from here"]


NO_REPLY = {"ok": False, "seconds": 30.0, "at": "2026-11-29T10:00:00+00:00"}
UNSEEN = "serving: degraded: worker spark-b unreachable for 300 s, window 1048576, 2 rails"
FAILED = {
    "twinserve.service": {"ActiveState": "failed", "StatusText": "no user"},
    "twinserve-rank.service": {"ActiveState": "inactive"},
}


@pytest.mark.parametrize(
    ("head", "worker", "word", "problems"),
    [
        (node(state=STATE), node(), "healthy", []),
        (node(state=STATE), None, "degraded", ["spark-b is unreachable from here"]),
        (node(state=STATE), node("inactive"), "unhealthy", ["rank 1 (spark-b) is gone"]),
        (node(state=STATE | {"state": "loading", "detail": "1.2 GiB"}), node(), "starting", ["1.2 GiB"]),
        (node(state=None), node(), "starting", ["the supervisor has not said anything yet"]),
        (node(state=STATE | {"state": "down", "detail": "gave up"}), node("inactive"), "down", ["gave up"]),
        (node("inactive", state=STATE), node("inactive"), "stopped", ["site.yml starts it"]),
        (node(state=None, services=FAILED), node("inactive"), "down", ["the supervisor failed: no user"]),
        (
            node(state=STATE | {"last_canary": NO_REPLY}),
            node(),
            "degraded",
            ["the last canary got no answer (30.0 s, 2026-11-29T10:00:00+00:00)"],
        ),
    ],
)  # fmt: skip
def test_the_health_of_a_pair_is_one_word_with_the_reason(
    head: dict[str, Any], worker: dict[str, Any] | None, word: str, problems: list[str]
) -> None:
    found = known(head | {"pair_config": CONFIG}, worker)
    assert (found["health"], found["problems"]) == (word, problems)
    assert found["serves"] == (word in ("healthy", "degraded"))


def test_o16_a_worker_that_the_pair_does_not_see_is_degraded() -> None:
    head = node(state=STATE | {"detail": UNSEEN}, pair_config=CONFIG)
    assert "  health   degraded: worker spark-b unreachable for 300 s" in shown(head, node())


def test_a_rank_without_supervisor_is_no_pair() -> None:
    head = node("inactive", state=STATE, pair_config=CONFIG)
    what = "rank 1 (spark-b) runs without the supervisor: run playbooks/stop.yml, then site.yml"
    assert shown(head, node())[1] == f"  health   unhealthy: {what}"


def test_several_pairs_are_a_line_each() -> None:
    well = known(node(state=STATE, pair_config=CONFIG), node())
    other = report("pair2", ("c", "d"), {"c": node("inactive", pair_config=CONFIG), "d": node("inactive")})
    assert overview([well, other]).splitlines() == [
        "pair1: healthy: http://127.0.0.1:8888/v1",
        "pair2: stopped: site.yml starts it",
    ]


FILTERS = FilterModule().filters()
GROUPS = {
    "all": ["a", "b", "c", "d", "e"],
    "sparks": ["a", "b", "c", "d", "e"],
    "pair1": ["a", "b"],
    "pair2": ["c", "d"],
    "lone": ["e"],
}


def inventory(**nodes: dict[str, Any]) -> list[dict[str, Any]]:
    ranks = {"a": 0, "b": 1, "c": 0, "d": 1, "e": 0}
    facts = {name: {"twinserve_node": seen} for name, seen in nodes.items()}
    return [
        {"inventory_hostname": name, "rank": rank, "ansible_facts": facts.get(name, {})}
        for name, rank in ranks.items()
    ]


def test_each_pair_of_the_inventory_has_its_document() -> None:
    hosts = inventory(a=node(state=STATE, pair_config=CONFIG), b=node(), d=node())
    found = FILTERS["pair_reports"](hosts, GROUPS, ["a", "b", "c", "d"])
    assert [(one["pair"], one["health"]) for one in found] == [("pair1", "healthy"), ("pair2", "unreachable")]
    assert FILTERS["report_of"](found, "d")["pair"] == "pair2"


def test_a_node_of_a_pair_alone_in_a_run_shows_its_pair() -> None:
    (found,) = FILTERS["pair_reports"](inventory(b=node()), GROUPS, ["b"])
    assert [rank["name"] for rank in found["ranks"]] == ["a", "b"]


def test_a_host_that_is_in_no_pair_is_told_and_hides_no_other() -> None:
    found = FILTERS["pair_reports"](inventory(), GROUPS, ["a", "b", "e"])
    assert [one["pair"] for one in found] == ["pair1", "e"]
    assert "the hosts of group lone are no pair" in overview(found)


def test_one_host_speaks_for_its_pair() -> None:
    pair = known(None)
    told = {
        left: [FILTERS["tells"](pair, host, left) for host in HOSTS] for left in (HOSTS, ("spark-b",), ())
    }
    assert list(told.values()) == [[True, False], [False, True], [False, False]]
