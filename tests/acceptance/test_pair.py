"""What the machines of a pair that serves must show, one promise a test."""

from __future__ import annotations

import json

import pytest
from live_pair import Pair


def test_the_supervisor_comes_back_at_boot_and_says_that_it_serves(pair: Pair) -> None:
    unit = pair.hosts[0].service("twinserve")
    assert unit.is_enabled and unit.is_running
    state = json.loads(pair.hosts[0].file("/run/twinserve/state.json").content_string)
    assert state["state"] == "serving", state["detail"]


def test_every_rank_runs_what_is_configured(pair: Pair) -> None:
    for host in pair.hosts:
        plan = json.loads(host.file("/etc/twinserve/rank.json").content_string)
        label = '{{index .Config.Labels "twinserve.digest"}} {{.State.Running}}'
        assert (
            host.check_output("docker inspect --format %s %s", label, plan["container"])
            == f"{plan['digest']} true"
        )


def test_nccl_goes_over_rdma_where_its_log_tells(pair: Pair) -> None:
    said = []
    for host in pair.hosts:
        start = host.check_output("systemctl show -P InvocationID twinserve-rank")
        log = host.check_output("journalctl --no-pager -o cat _SYSTEMD_INVOCATION_ID=%s", start)
        said.append([line for line in log.splitlines() if "NET/" in line or "Using network" in line])
    if not any(said):
        pytest.skip("NCCL says nothing of its way (nccl_debug: INFO makes it)")
    for rank, lines in enumerate(said):
        assert [line for line in lines if "Socket" in line] == [], f"rank {rank}"
        assert any("NET/IB" in line or "GDRDMA" in line for line in lines), f"rank {rank}: {lines}"


def test_every_gpu_has_its_worker_with_its_part_of_the_model(pair: Pair) -> None:
    for host in pair.hosts:
        wanted = json.loads(host.file("/etc/twinserve/rank.json").content_string).get("gpu_process")
        if not wanted:
            pytest.skip("this release does not say what is on a GPU")
        told = json.loads(host.check_output("/usr/local/sbin/twinserve-rank state"))["warnings"]
        assert [text for text in told if wanted["name"] in text] == []
