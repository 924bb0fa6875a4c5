"""The job that copies a snapshot to a worker: what it runs, and over which ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils.model_copy import copy_job, rail_ways
from ansible_collections.twinserve.pair.plugins.module_utils.model_transfer import list_file
from ansible_collections.twinserve.pair.plugins.module_utils.transfer import plan as transfer_plan

MODEL = {"repo": "o/model", "revision": "a" * 40}


def node(home: str = "/home/bob/.cache/huggingface") -> dict[str, Any]:
    return {"user": {"name": "bob"}, "hf": {"home": home}}


RAIL = ("198.51.100.1/24", "198.51.100.2/24", "enp1s0f1np1")
TWIN = ("203.0.113.1/24", "203.0.113.2/24", "enP2p1s0f1np1")
SAME_SUBNET = ("198.51.100.101/24", "198.51.100.102/24", "enP2p1s0f1np1")


def ports(*rails: tuple[str, str, str]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    head = [{"address": own, "netdev": netdev} for own, _, netdev in rails]
    worker = [{"address": peer, "netdev": "enp1s0f0np0"} for _, peer, _ in rails]
    return head, worker


def job(repo: dict[str, str] = MODEL, lan: str = "192.0.2.12") -> dict[str, Any]:
    ways = {"rails": rail_ways(*ports(RAIL, TWIN)), "lan": lan}
    nodes = [node(home="/models/hf"), node()]
    return copy_job(repo, nodes, "spark-b", ways, ["--bwlimit=1g"], "0123abcd")


def test_m22_the_copy_goes_over_all_rails_each_from_its_own_address() -> None:
    plan = job()["plan"]
    assert plan["rails"] == [
        {"address": "198.51.100.2", "source": "198.51.100.1", "netdev": ""},
        {"address": "203.0.113.2", "source": "203.0.113.1", "netdev": ""},
    ]
    assert plan["lan"] == {"address": "192.0.2.12"}
    assert job(lan="")["plan"]["lan"] is None


def test_f10_a_rail_in_the_subnet_of_another_is_bound_to_its_port() -> None:
    ways = rail_ways(*ports(RAIL, SAME_SUBNET))
    assert [way["netdev"] for way in ways] == ["", "enP2p1s0f1np1"]


def test_a_rail_without_address_is_no_way_yet() -> None:
    assert rail_ways(*ports(("", "", "enp1s0f1np1"), TWIN)) == rail_ways(*ports(TWIN))


def test_the_job_runs_the_program_of_one_version_whatever_is_current() -> None:
    found = job()
    assert found["argv"] == ["/usr/bin/python3", "-P", "-m", "twinserve.transfer", found["plan_file"]]
    assert found["env"] == {"PYTHONPATH": "/usr/local/lib/twinserve/0123abcd"}
    # One at a time for each worker and repository.
    assert (found["name"], found["what"]) == ("copy spark-b o/model", "a" * 40)
    assert found["title"] == "copy of o/model"


def test_the_plan_is_what_the_program_reads() -> None:
    found = job()
    plan = transfer_plan.parse(json.dumps(found["plan"]))
    assert (plan.worker, plan.user, plan.options) == ("spark-b", "bob", ("--bwlimit=1g",))
    assert (plan.source, plan.target) == (Path("/models/hf/hub"), "hub/")
    assert plan.files == Path(list_file("o/model", "a" * 40, "spark-b"))
    assert plan.rails[0] == transfer_plan.Way("198.51.100.2", source="198.51.100.1")
