"""serve.yml changes the running pair, and only what it must."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from lab_pair import Lab, Play


def command(lab: Lab, host: str) -> list[str]:
    """The engine's command line in the running container."""
    words: list[str] = lab.inspect(host)["Config"]["Cmd"]
    return words


def state(lab: Lab) -> dict[str, Any]:
    """What the supervisor says."""
    found: dict[str, Any] = json.loads(lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json"))
    return found


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    """Until it is so; the bound only ends a test that would hang."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, "it did not come to be"
        time.sleep(0.5)


@pytest.fixture(scope="module", autouse=True)
def _defaults_again(lab: Lab, converged: Play) -> object:
    """Leave the pair as site.yml made it."""
    yield
    lab.play("serve.yml").succeeded()


def test_parallel_2_restarts_both_ranks_once_and_writes_only_their_files(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "parallel=2", "--diff").succeeded()

    after = lab.containers()
    assert all(before[host] != after[host] and after[host] for host in lab.hosts)
    assert lab.node(lab.hosts[0]).service("twinserve").is_enabled
    for host in lab.hosts:
        words = command(lab, host)
        assert words[words.index("--parallel") + 1] == "2"
    assert lab.get("/health")["streams"]["max"] == 2
    assert [line for line in run.output.splitlines() if line.startswith('+    "2"')], (
        "the diff shows the change"
    )
    assert "Pull the engine image" not in run.output
    assert run.recap[lab.hosts[1]]["changed"] == 2, "on the worker, its rank file, and what is kept of it"

    again = lab.play("serve.yml", "-e", "parallel=2").succeeded()

    assert again.changed == 0
    assert lab.containers() == after


def test_l11_a_wrong_argument_is_refused_while_the_pair_serves_on(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", '{"extra_args": ["--contxt", "4096"]}').refused()

    assert "unrecognized arguments: --contxt" in run.output
    assert "nothing was changed" in run.output
    assert lab.containers() == before
    assert "OK" in lab.chat("Reply with OK.")


def test_extra_args_come_last_and_win_with_quotes_and_spaces(lab: Lab, converged: Play) -> None:
    words = '--max-tokens 16384 --name "a name"'

    lab.play("serve.yml", "-e", f"extra_args='{words}'").refused()
    lab.play("serve.yml", "-e", '{"extra_args": ["--max-tokens", "16384"]}').succeeded()

    for host in lab.hosts:
        assert command(lab, host)[-2:] == ["--max-tokens", "16384"]


def test_check_mode_shows_the_restart_and_does_nothing(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "context=524288", "--check", "--diff").succeeded()

    assert '+    "524288"' in run.output
    assert "-pair: serving" in run.output
    assert lab.containers() == before


def test_restart_true_restarts_an_unchanged_pair(lab: Lab, converged: Play) -> None:
    lab.play("serve.yml").succeeded()
    before = lab.containers()

    lab.play("serve.yml", "-e", "restart=true").succeeded()

    after = lab.containers()
    assert all(before[host] != after[host] and after[host] for host in lab.hosts)


def test_a_setting_of_the_supervisor_restarts_no_rank(lab: Lab, converged: Play) -> None:
    lab.play("serve.yml").succeeded()
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "canary_interval=20").succeeded()

    assert run.changed == 4, "pair.json, the supervisor that reads it, and what both nodes keep"
    assert lab.containers() == before
    assert '"serving"' in lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json")


def test_a_setting_of_the_link_restarts_the_pair(lab: Lab, converged: Play) -> None:
    before = lab.containers()

    run = lab.play("serve.yml", "-e", "rails=1").succeeded()

    after = lab.containers()
    assert all(before[host] != after[host] and after[host] for host in lab.hosts)
    assert state(lab)["effective"]["rails"] == 1
    assert "rails    1" in run.output
    for host in lab.hosts:
        hcas = [one for one in lab.inspect(host)["Config"]["Env"] if one.startswith("NCCL_IB_HCA=")]
        assert hcas == ["NCCL_IB_HCA=rocep1s0f0"]
    lab.play("serve.yml").succeeded()


def test_k09_a_configuration_that_was_not_taken_up_is_noticed(lab: Lab, converged: Play) -> None:
    lab.play("serve.yml").succeeded()
    before = lab.containers()
    # As a run leaves it that is interrupted between writing and reloading: no file differs any more.
    path, head = "/etc/twinserve/pair.json", lab.hosts[0]
    lab.root(head, "cp", "-p", path, "/root/pair.json")
    lab.root(head, "sed", "-i", 's/"canary_interval": 60/"canary_interval": 61/', path)
    was = state(lab)["config_sha256"]
    lab.root(head, "systemctl", "reload", "twinserve")
    wait_for(lambda: state(lab)["config_sha256"] != was and state(lab)["state"] == "serving")
    lab.root(head, "mv", "/root/pair.json", path)

    run = lab.play("serve.yml").succeeded()

    assert run.changed == 1, "the supervisor alone"
    assert state(lab)["config_sha256"] == was
    assert lab.containers() == before


def test_a_missing_state_file_stops_nothing(lab: Lab, converged: Play) -> None:
    before = lab.containers()
    lab.root(lab.hosts[0], "rm", "/run/twinserve/state.json")

    lab.play("serve.yml").succeeded()

    assert state(lab)["state"] == "serving"
    assert lab.containers() == before


def test_another_server_on_the_apis_port_is_named_before_a_start(lab: Lab, converged: Play) -> None:
    head = lab.hosts[0]
    lab.play("playbooks/stop.yml").succeeded()
    serve = ("python3", "-m", "http.server", "18888", "--bind", "127.0.0.1")
    lab.root(head, "systemd-run", "--quiet", "--unit", "foreign", *serve)
    wait_for(lambda: "127.0.0.1:18888" in lab.root(head, "ss", "-Hltn"))

    run = lab.play("serve.yml").refused()

    assert "port 18888 is taken by python3 (pid" in run.output
    lab.root(head, "systemctl", "stop", "foreign")
    lab.play("serve.yml").succeeded()


def test_gpu_clocks_are_held_while_the_rank_runs_and_only_then(lab: Lab, converged: Play) -> None:
    note = "/dev/shm/gpu-clocks"

    lab.play("serve.yml", "-e", "gpu_clock_max=2200").succeeded()
    held = [lab.root(host, "cat", note) for host in lab.hosts]
    warned = [text for text in state(lab)["warnings"] if "gpu_clock_max" in text]
    lab.play("serve.yml").succeeded()

    assert held == ["0,2200", "0,2200"]
    assert warned == [], "the clock that is read back is below the limit"
    assert not any(lab.node(host).file(note).exists for host in lab.hosts)


def test_l16_the_page_cache_is_dropped_before_a_start(lab: Lab, converged: Play) -> None:
    order = "/proc/sys/vm/drop_caches"
    for host in lab.hosts:
        lab.root(host, "sh", "-c", f"echo 0 > {order}")

    lab.play("serve.yml", "-e", "restart=true").succeeded()

    assert [lab.root(host, "cat", order).strip() for host in lab.hosts] == ["3", "3"]


def test_l15_a_start_without_a_playbook_waits_for_memory_and_names_who_has_it(
    lab: Lab, converged: Play
) -> None:
    head, worker = lab.hosts
    image = lab.inspect(worker)["Config"]["Image"]
    who = 'in use by container "comfy" (GPU)'
    lab.play("playbooks/stop.yml").succeeded()
    rest = ("--entrypoint", "sleep", image, "infinity")
    lab.root(worker, "docker", "run", "--detach", "--gpus", "all", "--name", "comfy", *rest)
    lab.verb("memory", worker, "71")
    try:
        refused = lab.play("serve.yml").refused()
        lab.root(head, "systemctl", "start", "--no-block", "twinserve")
        wait_for(lambda: who in state(lab)["detail"])
        started = lab.containers()[head]
    finally:
        lab.verb("memory", worker, "115")
        lab.root(worker, "docker", "rm", "--force", "comfy")

    assert f"{worker}: 71 GiB available, about 110 needed; {who}" in " ".join(refused.output.split())
    assert started == ""
    wait_for(lambda: state(lab)["state"] == "serving", 120)
    lab.play("serve.yml").succeeded()


@pytest.mark.slow
def test_f22_ranks_that_go_over_tcp_are_not_served(lab: Lab, converged: Play) -> None:
    head, worker = lab.hosts
    lab.play("serve.yml", "-e", "nccl_debug=INFO").succeeded()
    lab.verb("engine", worker, "nccl_over_tcp=true")
    try:
        run = lab.play("serve.yml", "-e", "nccl_debug=INFO", "-e", "restart=true").refused()
    finally:
        lab.verb("engine", worker, "--clear")

    assert "rank 1 uses TCP, not RoCE: NCCL INFO NET/Socket : Using [0]enp1s0f0np0" in " ".join(
        run.output.split()
    )
    assert (state(lab)["state"], state(lab)["restarts"]) == ("down", [])
    assert lab.containers() == {host: "" for host in lab.hosts}
    lab.play("serve.yml", "-e", "nccl_debug=INFO").succeeded()
    log = lab.root(head, "journalctl", "-u", "twinserve-rank", "-n", "100", "-o", "cat")
    assert "NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE" in log


@pytest.mark.slow
def test_f21_a_start_that_cannot_register_memory_is_told_so_and_not_tried_again(
    lab: Lab, converged: Play
) -> None:
    warning = "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
    lab.play("serve.yml", "-e", "nccl_debug=WARN").succeeded()
    lab.verb("engine", lab.hosts[1], f"nccl_error={json.dumps({'warn': warning})}")
    try:
        run = lab.play("serve.yml", "-e", "nccl_debug=WARN", "-e", "restart=true").refused()
    finally:
        lab.verb("engine", lab.hosts[1], "--clear")

    text = " ".join(run.output.split())
    assert warning in text
    assert "RDMA registration is known to fail; boot with kho=off or the 6.17 kernel" in text
    assert "started again after" not in text
    assert (state(lab)["state"], state(lab)["restarts"]) == ("down", [])
