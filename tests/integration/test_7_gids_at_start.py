"""GID tables at the start of a real pair: each rank finds its own entries, or says what it saw."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import NAME
from lab_pair import Lab
from link_setups import RAILS, own_lab, shell

pytestmark = pytest.mark.slow
MAIN, TWIN = RAILS
HCAS = ("rocep1s0f0", "roceP2p1s0f0")
HEAD, WORKER = "192.168.177.1", "192.168.177.2"


@pytest.fixture(scope="module")
def serving() -> Iterator[Lab]:
    """A pair of its own that serves."""
    with own_lab(NAME) as lab:
        lab.play("site.yml").succeeded()
        yield lab


@pytest.fixture(autouse=True)
def _as_it_was(serving: Lab) -> Iterator[None]:
    """Each test begins with the tables and addresses that the fabric role left."""
    yield
    for host in serving.hosts:
        for hca in HCAS:
            serving.verb("gids", host, hca, "--clear")
            serving.verb("lose", host, hca, "--clear")
        shell(
            serving,
            host,
            "".join(f"ip addr flush dev {port}; networkctl reconfigure {port};" for port in RAILS),
        )


def state(lab: Lab) -> dict[str, Any]:
    """What the supervisor says."""
    found: dict[str, Any] = json.loads(lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json"))
    return found


def restart(lab: Lab, is_there: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Stop the pair and start it; wait for what the supervisor shall say of this start."""
    head = lab.hosts[0]
    lab.root(head, "systemctl", "stop", "twinserve")
    lab.root(head, "systemctl", "start", "twinserve")
    limit = time.monotonic() + 150
    while not is_there(found := state(lab)):
        assert time.monotonic() < limit, found
        time.sleep(0.3)
    return found


def serves(found: dict[str, Any]) -> bool:
    return bool(found["state"] == "serving")


def index(lab: Lab, host: str) -> str | None:
    """NCCL_IB_GID_INDEX of a rank's container; None where it is not given at all."""
    words = [word.split("=", 1) for word in lab.inspect(host)["Config"]["Env"]]
    return dict(words).get("NCCL_IB_GID_INDEX")


def test_f01_f02_an_index_that_moved_on_one_node_is_found_there_and_told(serving: Lab) -> None:
    head, worker = serving.hosts
    for hca in HCAS:
        serving.verb("gids", worker, hca, "--shift", "2")

    found = restart(serving, serves)

    assert (index(serving, head), index(serving, worker)) == ("3", "5")
    told = " ".join(found["warnings"])
    assert "rank 1: GID index of rocep1s0f0 changed 3 -> 5 since the unit was rendered" in told
    assert "rank 0" not in told


def test_f03_with_roce_gathers_a_twin_at_another_index_is_dropped(serving: Lab) -> None:
    head, worker = serving.hosts
    serving.verb("gids", head, HCAS[1], "--shift", "2")

    found = restart(serving, serves)

    reason = f"rank 0: {HCAS[1]} has its GID at 5, {HCAS[0]} at 3; using one rail"
    assert reason in found["warnings"]
    assert found["effective"]["rails"] == 1
    assert (index(serving, head), index(serving, worker)) == ("3", "3")


def test_f03_with_nccl_twins_at_different_indexes_are_both_used_and_no_index_is_given(serving: Lab) -> None:
    head, worker = serving.hosts
    serving.verb("gids", head, HCAS[1], "--shift", "2")

    serving.play("serve.yml", "-e", "comm=nccl").succeeded()

    assert (index(serving, head), index(serving, worker)) == (None, "3")
    assert state(serving)["effective"]["rails"] == 2
    serving.verb("gids", head, HCAS[1], "--clear")
    serving.play("serve.yml").succeeded()


def test_f01_an_entry_for_v1_alone_is_refused_with_what_is_there(serving: Lab) -> None:
    serving.verb("gids", serving.hosts[1], HCAS[0], "--v1-only")

    found = restart(serving, lambda now: "GID" in now["detail"])

    text = f"rank 1: rocep1s0f0 has no RoCE v2 GID for {WORKER}"
    assert f"{text} (found: 0 link-local v1, 1 link-local v2, 2 {WORKER} v1)" in found["detail"]
    assert serving.containers() == {host: "" for host in serving.hosts}


def test_a_second_address_and_a_reused_slot_do_not_lead_astray(serving: Lab) -> None:
    head, worker = serving.hosts
    shell(serving, head, f"ip addr add 10.50.0.1/24 dev {MAIN}")
    # The other address takes the slots that the rail's own had.
    again = f"ip addr del {WORKER}/24 dev {MAIN}; sleep 0.5; ip addr add 10.50.0.2/24 dev {MAIN}; sleep 0.5"
    shell(serving, worker, f"{again}; ip addr add {WORKER}/24 dev {MAIN}; sleep 0.5")

    found = restart(serving, serves)

    assert found["rails"][0]["head"]["gid_index"] == 3
    assert found["rails"][0]["worker"]["gid_index"] == 5
    assert found["rails"][0]["worker"]["address"] == WORKER
    assert index(serving, worker) == "5"


def test_a_link_local_entry_at_the_usual_index_is_not_taken(serving: Lab) -> None:
    worker = serving.hosts[1]
    ipv6 = f"sysctl -qw net.ipv6.conf.{MAIN}.disable_ipv6=0; ip addr add fe80::77/64 dev {MAIN} nodad"
    shell(serving, worker, f"ip addr del {WORKER}/24 dev {MAIN}; {ipv6}; sleep 0.5")
    shell(serving, worker, f"ip addr add {WORKER}/24 dev {MAIN}; sleep 0.5")

    found = restart(serving, serves)

    assert found["rails"][0]["worker"]["gid_index"] == 5


def test_f12_a_node_that_lost_its_addresses_is_named_and_the_pair_waits(serving: Lab) -> None:
    shell(serving, serving.hosts[1], "".join(f"ip addr flush dev {port};" for port in RAILS))

    found = restart(serving, lambda now: "lost" in now["detail"])

    assert f"{MAIN} lost {WORKER}; run the fabric play" in found["detail"]
    assert serving.containers() == {host: "" for host in serving.hosts}


def test_f12_a_lost_main_rail_is_told_while_the_other_serves(serving: Lab) -> None:
    shell(serving, serving.hosts[1], f"ip addr del {WORKER}/24 dev {MAIN}")

    found = restart(serving, serves)

    assert found["rails"][0]["worker"]["hca"] == HCAS[1]
    assert f"{MAIN} lost {WORKER}; run the fabric play" in " ".join(found["warnings"])


def test_f23_a_device_that_is_gone_is_named_and_the_pair_waits(serving: Lab) -> None:
    serving.verb("lose", serving.hosts[0], HCAS[0])
    serving.verb("lose", serving.hosts[0], HCAS[1])

    found = restart(serving, lambda now: "is gone" in now["detail"])

    assert MAIN in found["detail"]
    assert serving.containers() == {host: "" for host in serving.hosts}
