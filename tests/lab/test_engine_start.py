"""Two ranks as processes: how they meet, what they refuse together, how they end."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_support import DRIVER, ENGINE, ENVIRONMENT, Pair, Rank, running_pair

ADMISSION = (
    "[tensorfold] CUDA rank {rank} startup estimate {gib} GiB within 100.50 GiB; native 1048576, "
    "allocated prompt/reply window 1048576, cache slots 8"
)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with running_pair(tmp_path) as made:
        yield made


def _start_both(pair: Pair, *extra: str, env: dict[str, str | None] | None = None) -> tuple[Rank, Rank]:
    one = pair.start(1, *extra, env=env)
    return pair.start(0, *extra, env=env), one


def _refused_together(zero: Rank, one: Rank) -> list[str]:
    """Both ended with 1; the last line of each."""
    assert (zero.wait(), one.wait()) == (1, 1)
    return [rank.log().strip().splitlines()[-1] for rank in (zero, one)]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_both_ranks_log_the_contracts_lines(pair: Pair) -> None:
    zero, one = pair.up()
    assert "[tensorfold] loading sim: GLM-5.3-Flash (glm5_next) on CUDA, rank 0 of 2\n" in zero.log()
    assert f"loading {pair.model.name}: GLM-5.3-Flash (glm5_next) on CUDA, rank 1 of 2\n" in one.log()
    assert ADMISSION.format(rank=0, gib="88.09") in zero.log()
    assert ADMISSION.format(rank=1, gib="86.29") in one.log()
    assert (
        "--parallel 4: up to 4 requests decode together, their caches in one pool of 2437120 tokens"
        in zero.log()
    )
    assert (
        f"serving sim at http://127.0.0.1:{pair.api}/v1 on CUDA, rank 0 of 2 (sampling: temperature 1.0"
        in zero.log()
    )
    assert "drafts: on; context: 1048576; loaded in " in zero.log()
    assert "[tensorfold] rank 1 ready in " in one.log() and "s, following rank 0\n" in one.log()


@pytest.mark.parametrize("comm", ["roce", "nccl"])
@pytest.mark.parametrize("first", [0, 1])
def test_either_rank_may_start_first_and_no_api_is_open_before_both_are_loaded(
    pair: Pair, first: int, comm: str
) -> None:
    pair.machines[1].switch(load_seconds=1.0)
    ranks = {first: pair.start(first, env={"TF_GLM_COMM": comm})}
    ranks[first].until("loading ")
    time.sleep(0.3)
    ranks[1 - first] = pair.start(1 - first, env={"TF_GLM_COMM": comm})
    while "rank 1 ready" not in ranks[1].log():
        opened = _listens(pair.api)
        assert not opened or "rank 1 ready" in ranks[1].log()
        time.sleep(0.02)
    ranks[0].until("serving ")
    assert pair.ask("/v1/models")[0] == 200


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_alone_gives_up_after_its_wait(pair: Pair, rank: int) -> None:
    pair.machines[rank].switch(rendezvous_wait_s=0.5)
    alone = pair.start(rank)
    assert alone.wait() == 1
    assert f"RuntimeError: TCP store: timed out after 0.5s waiting for rank {1 - rank}" in alone.log()


def test_a_master_that_does_not_answer_is_told(pair: Pair) -> None:
    pair.machines[0].switch(rendezvous_wait_s=0.5)
    words = ["192.0.2.1" if word == "127.0.0.1" else word for word in pair.words(0)]
    alone = pair.start(0, words=words, env={"PATH": "/nonexistent"})
    assert alone.wait() == 1
    assert f"TCP store: 192.0.2.1:{pair.store} does not answer" in alone.log()


def test_a_taken_store_port_is_told(pair: Pair) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", pair.store))
        alone = pair.start(0)
        assert alone.wait() == 1
    assert f"cannot listen on port {pair.store}" in alone.log()


def test_strangers_at_the_store_are_not_taken_for_rank_1(pair: Pair) -> None:
    zero = pair.start(0)
    while not _listens(pair.store):
        time.sleep(0.02)
    with socket.create_connection(("127.0.0.1", pair.store)) as scanner:
        scanner.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(64))
        pair.start(1)
        zero.until("serving ")


@pytest.mark.parametrize(
    ("available", "fits"), [((115.0, 90.0), 0), ((95.0, 115.0), 198_656), ((115.0, 95.0), 399_360)]
)
def test_too_little_memory_is_refused_by_both_with_the_same_window(
    pair: Pair, available: tuple[float, float], fits: int
) -> None:
    for machine, gib in zip(pair.machines, available, strict=True):
        machine.memory(gib)
    last = _refused_together(*_start_both(pair))
    assert last[0] == last[1]
    assert last[0].startswith("tensorfold: CUDA startup memory budget cannot fit requested context 1048576; ")
    assert f"estimated largest fitting prompt-plus-reply window: {fits} tokens across the ranks." in last[0]
    assert not (pair.machines[0].root / "lab/gpu.json").exists()


def test_the_window_that_was_named_starts(pair: Pair) -> None:
    pair.machines[0].memory(95.0)
    zero, _ = pair.up("--context", "198656")
    assert "allocated prompt/reply window 198656" in zero.log()
    assert pair.ask("/health")[1]["context_length"] == 198656


def test_context_0_takes_what_fits(pair: Pair) -> None:
    pair.machines[1].memory(95.0)
    pair.up("--context", "0")
    assert pair.ask("/health")[1]["context_length"] == 399_360


@pytest.mark.parametrize(
    ("one", "env", "text"),
    [
        (
            ["--context", "524288"],
            {},
            "tensorfold: CUDA ranks have different native windows or context flags; start both",
        ),
        (["--parallel", "2"], {}, "['parallel', 4]], rank 1 [['parallel', 2]]"),
        (["--drafter", "none", "--parallel", "1"], {}, "'draft model', None"),
        ([], {"TF_GLM_KV": "bf16"}, "rank 0 [['TF_GLM_KV', 'fp8']], rank 1 [['TF_GLM_KV', 'bf16']]"),
        ([], {"TF_GLM_HC_SPLIT": "0"}, "TF_GLM_HC_SPLIT"),
        ([], {"TF_GLM_MULTI_PREFILL": None}, "rank 1 [['TF_GLM_MULTI_PREFILL', None]]"),
    ],
)
def test_ranks_that_differ_end_together(
    pair: Pair, one: list[str], env: dict[str, str | None], text: str
) -> None:
    for machine in pair.machines:
        machine.memory(200)  # so that no window is refused first
    first = pair.start(1, *one, env=env)
    last = _refused_together(pair.start(0), first)
    assert last[0] == last[1]
    assert text in last[0]
    if "different settings" in last[0]:
        assert "Traceback" in first.log()


def test_what_is_not_compared_may_differ(pair: Pair) -> None:
    different: dict[str, str | None] = {"TF_GLM_CACHE_GIB": "5", "TF_GLM_DENSE": "fp8"}
    pair.start(1, "--max-tokens", "7", "--no-thinking", env=different)
    pair.start(0).until("serving ")


@pytest.mark.parametrize("rank", [0, 1])
def test_a_broken_checkpoint_on_one_rank_stops_both(pair: Pair, rank: int, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / pair.model.name
    shutil.copytree(pair.model, copy)
    shard = copy / "model-00004-of-00012.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    words = [str(copy) if word == str(pair.model) else word for word in pair.words(rank)]
    ranks = {number: pair.start(number, words=words if number == rank else None) for number in (1, 0)}
    last = _refused_together(ranks[0], ranks[1])
    assert last[0] == last[1]
    text = "tensorfold: CUDA startup memory geometry could not be established on every rank: "
    assert last[0].startswith(f"{text}rank {rank}: {shard} is ")


SHARD = "model-00001-of-00012.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        (SHARD, None, "is missing"),
        (SHARD, b"", "cut short"),
        (SHARD, bytes(5000), "has an unreadable safetensors header"),
        (INDEX, None, "has neither"),
        (INDEX, json.dumps({"metadata": {"total_size": 9}, "weight_map": {}}).encode(), "promises 9 bytes"),
        (INDEX, json.dumps({"weight_map": {"ghost": SHARD}}).encode(), "has no tensor ghost"),
    ],
)
def test_every_damage_has_its_words(pair: Pair, file: str, content: bytes | None, reason: str) -> None:
    path = pair.model / file
    path.unlink() if content is None else path.write_bytes(content)
    assert reason in _refused_together(*_start_both(pair))[0]


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"NCCL_IB_GID_INDEX": ""}, "GID 0 is link-local"),
        ({"NCCL_IB_GID_INDEX": "1"}, "GID 1 is link-local"),
        ({"NCCL_IB_GID_INDEX": "7"}, "GID 7 is empty"),
        ({"NCCL_IB_HCA": "rocep1s0f0,mlx5_9"}, "hca mlx5_9: no such device"),
        ({"NCCL_IB_HCA": "=rocep1s0f0"}, "hca =rocep1s0f0: no such device"),
    ],
)
def test_a_gather_that_cannot_start_ends_both_after_loading(
    pair: Pair, env: dict[str, str | None], text: str
) -> None:
    one = pair.start(1, env=env)
    last = _refused_together(pair.start(0), one)
    assert last[0] == last[1]
    assert last[0].startswith("RuntimeError: RoCE all-gather setup failed on some rank: rank 1: ")
    assert text in last[0]


def test_without_a_given_index_the_gather_takes_3_and_all_active_devices(pair: Pair) -> None:
    zero, _ = pair.up(env={"NCCL_IB_GID_INDEX": None, "NCCL_IB_HCA": None})
    assert "RoCE all-gather over roceP2p1s0f0 to roceP2p1s0f0, rocep1s0f0 to rocep1s0f0" in zero.log()


@pytest.mark.parametrize(
    ("device", "text"),
    [
        ({"state": "1: DOWN"}, "port 1 is 1: DOWN, not ACTIVE"),
        ({"kind": "IB/RoCE v1"}, "GID 3 is IB/RoCE v1, not RoCE v2"),
        ({"index": 5}, "GID 3 is empty"),
        ({"address": "192.0.2.9"}, "192.0.2.9 on lo: Cannot assign requested address"),
    ],
)
def test_devices_must_work(pair: Pair, device: dict[str, object], text: str) -> None:
    shutil.rmtree(pair.machines[1].root / "sys/class/infiniband/roceP2p1s0f0")
    pair.machines[1].device("roceP2p1s0f0", **device)  # type: ignore[arg-type]
    assert text in _refused_together(*_start_both(pair))[0]


def test_unequal_device_counts_are_refused(pair: Pair) -> None:
    one = pair.start(1, env={"NCCL_IB_HCA": "rocep1s0f0"})
    last = _refused_together(pair.start(0), one)
    assert (
        last
        == ["RuntimeError: RoCE all-gather setup failed on some rank: rank 0 has 2 devices, rank 1 has 1"] * 2
    )


def test_a_container_without_its_devices_fails(pair: Pair) -> None:
    (pair.machines[0].root / "dev/infiniband").rmdir()
    assert "rank 0: no RDMA device in this container" in _refused_together(*_start_both(pair))[1]
    alone = pair.start(0, env={"NVIDIA_VISIBLE_DEVICES": None})
    assert alone.wait() == 1 and "RuntimeError: No CUDA GPUs are available" in alone.log()


def test_an_unknown_interface_stops_nccl_on_both(pair: Pair) -> None:
    one = pair.start(1, env={"NCCL_SOCKET_IFNAME": "enp9s0"})
    last = _refused_together(pair.start(0), one)
    assert last[0] == last[1]
    assert "no socket interface found: enp9s0 (present: lo)" in last[0]


def test_nccl_without_a_usable_device_goes_over_sockets_and_says_so(pair: Pair) -> None:
    zero, _ = pair.up(env={"TF_GLM_COMM": "nccl", "NCCL_IB_HCA": "mlx5_9", "NCCL_DEBUG": "INFO"})
    assert "NCCL INFO NET/IB : No device found. hca mlx5_9: no such device" in zero.log()
    assert "NCCL INFO Using network Socket" in zero.log()
    assert pair.chat("Reply with OK.")["choices"][0]["message"]["content"] == "OK"


def test_nccl_names_the_devices_it_uses(pair: Pair) -> None:
    zero, _ = pair.up(env={"TF_GLM_COMM": "nccl", "NCCL_DEBUG": "INFO"})
    assert "NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [1]roceP2p1s0f0:1/RoCE [RO]; OOB lo" in zero.log()
    assert "NET/Socket" not in zero.log()


def test_nccl_goes_over_tcp_on_the_rank_that_is_switched_and_says_so_where_it_talks(pair: Pair) -> None:
    pair.machines[1].switch(nccl_over_tcp=True)
    zero, one = pair.up(env={"NCCL_DEBUG": "INFO"})
    assert "NCCL INFO NET/Socket : Using [0]lo" in one.log()
    assert "NET/Socket" not in zero.log()


def test_nccl_is_silent_unless_it_is_asked(pair: Pair) -> None:
    zero, one = pair.up()
    assert "NCCL INFO" not in zero.log() + one.log()


def test_sigterm_to_a_serving_rank_0_is_clean_and_ends_rank_1_with_an_error(pair: Pair) -> None:
    zero, one = pair.up()
    zero.process.send_signal(signal.SIGTERM)
    assert (zero.wait(), one.wait()) == (0, 1)
    assert "RuntimeError: TCP store: connection to rank 0 lost" in one.log()
    assert not list(pair.root.glob("*/lab/gpu.json"))


def test_sigterm_cuts_a_running_request(pair: Pair) -> None:
    pair.machines[0].switch(decode_tokens_per_s=0.1)
    zero, _ = pair.up()
    failed = threading.Event()

    def ask() -> None:
        try:
            pair.chat("Tell me of many hills.")
        except (http.client.HTTPException, OSError):
            failed.set()

    client = threading.Thread(target=ask)
    client.start()
    while pair.ask("/health")[1]["requests_running"] == 0:
        time.sleep(0.02)
    zero.process.send_signal(signal.SIGTERM)
    assert zero.wait() == 0
    client.join()
    assert failed.is_set()


def test_sigusr1_shows_the_stacks_and_ends_nothing(pair: Pair) -> None:
    zero, one = pair.up()
    for rank in (zero, one):
        rank.process.send_signal(signal.SIGUSR1)
        rank.until("most recent call first")
    assert pair.chat("Reply with OK.")["choices"][0]["message"]["content"] == "OK"


def _state(pid: int, field: str) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(field))


def test_only_a_serving_rank_0_handles_sigterm(pair: Pair) -> None:
    """Without a handler PID 1 of a container ignores the signal, so Docker has to kill it."""

    def handles(rank: Rank) -> bool:
        return bool(int(_state(rank.process.pid, "SigCgt:"), 16) >> (signal.SIGTERM - 1) & 1)

    pair.machines[0].switch(hang_load=True)
    zero, one = _start_both(pair)
    zero.until("allocated")
    assert (handles(zero), handles(one)) == (False, False)
    pair.machines[0].switch()
    zero.until("serving ")
    assert (handles(zero), handles(one)) == (True, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a PID namespace")
def test_as_pid_1_rank_1_survives_sigterm(pair: Pair) -> None:
    zero = pair.start(0)
    env = {**ENVIRONMENT, "PYTHONPATH": str(ENGINE), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", DRIVER, str(pair.machines[1].root), *pair.words(1)]
    log = pair.root / "pid1.log"
    with log.open("wb") as out:
        outer = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", *command], env=env, stdout=out, stderr=out
        )
    one = Rank(outer, log)
    pair.ranks.append(one)
    zero.until("serving ")
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGTERM)
    assert pair.chat("Reply with OK.")["choices"][0]["message"]["content"] == "OK"
    assert outer.poll() is None


def test_a_dead_rank_1_leaves_health_up_and_requests_hanging(pair: Pair) -> None:
    pair.machines[0].switch(roce_wait_s=0.1)
    zero, one = pair.up()
    pair.chat("Reply with OK.")
    one.process.kill()
    one.wait()
    with pytest.raises((TimeoutError, urllib.error.URLError)):
        pair.ask(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "Reply with OK."}]}, seconds=1
        )
    assert pair.ask("/health")[1]["ok"] is True
    assert pair.ask("/health")[1]["requests_running"] == 1
    assert pair.ask("/v1/models")[1]["data"][0]["id"] == "sim"
    assert zero.process.poll() is None


def test_a_restarted_rank_1_cannot_join_again(pair: Pair) -> None:
    _, one = pair.up()
    one.process.kill()
    one.wait()
    pair.machines[1].switch(rendezvous_wait_s=1.0)
    again = pair.start(1)
    assert again.wait() == 1
    assert "timed out after 1s waiting for rank 0" in again.log()


def test_requests_fail_once_and_then_the_ranks_are_out_of_step(pair: Pair) -> None:
    pair.machines[0].switch(peer_death="fail", roce_wait_s=0.2)
    zero, one = pair.up()
    one.process.kill()
    one.wait()
    body = {"messages": [{"role": "user", "content": "x"}]}
    assert pair.ask("/v1/chat/completions", body) == (
        500,
        {"error": {"message": "RoCE all-gather failed (sequence 1, peer 1, hca rocep1s0f0)"}},
    )
    message = "the two ranks are out of step after an error; restart both"
    assert pair.ask("/v1/chat/completions", body) == (500, {"error": {"message": message}})
    assert "[tensorfold] request error: RuntimeError: RoCE all-gather failed" in zero.log()


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        ({"nccl_error": {"only_split": True}}, "RuntimeError: NCCL error 2: unhandled system error"),
        (
            {"roce_error": {"message": "rank lost"}},
            "RuntimeError: RoCE all-gather setup failed on some rank: rank 1: rank lost",
        ),
        ({"refuse_window": 786432}, "prompt-plus-reply window: 786432 tokens across the ranks."),
    ],
)
def test_failures_switched_on_one_machine_end_both_ranks(
    pair: Pair, switch: dict[str, object], text: str
) -> None:
    pair.machines[1].switch(**switch)
    for line in _refused_together(*_start_both(pair)):
        assert text in line


def test_the_split_error_is_gone_without_split(pair: Pair) -> None:
    pair.machines[1].switch(nccl_error={"only_split": True})
    pair.up(env={"TF_GLM_HC_SPLIT": "0"})


def test_an_error_limited_to_one_time_passes_at_the_next_start(pair: Pair) -> None:
    pair.machines[0].switch(nccl_error={"times": 1})
    _refused_together(*_start_both(pair))
    pair.up()


def test_a_forced_window_is_refused_only_above_it(pair: Pair) -> None:
    pair.machines[1].switch(refuse_window=786432)
    zero, _ = pair.up("--context", "786432")
    assert "allocated prompt/reply window 786432" in zero.log()


def test_a_crash_at_the_start_and_one_when_ready(pair: Pair) -> None:
    pair.machines[0].switch(crash_at_start={"message": "boom", "times": 1})
    first = pair.start(0)
    assert first.wait() == 1 and "RuntimeError: boom" in first.log()
    pair.machines[0].switch(crash_after_ready_s=0.1, exit_code=139)
    zero, one = pair.up()
    assert (zero.wait(), one.wait()) == (139, 1)


def test_an_unknown_switch_stops_the_start(pair: Pair) -> None:
    pair.machines[0].switch(nccl_eror=True)
    alone = pair.start(0)
    assert alone.wait() == 1 and "unknown switch nccl_eror" in alone.log()


def test_the_gpu_figure_grows_and_tells_a_live_process_from_a_dead_one(pair: Pair) -> None:
    for machine in pair.machines:
        machine.switch(load_seconds=0.6)
    figure = pair.machines[0].root / "lab/gpu.json"
    zero, _ = _start_both(pair)
    seen = set()
    while "serving " not in zero.log():
        if figure.exists() and figure.read_text().strip():
            seen.add(json.loads(figure.read_text())["gib"])
        time.sleep(0.01)
    # The last figure is written before the line is: read once more, the loop may have missed it.
    seen.add(json.loads(figure.read_text())["gib"])
    assert len(seen) > 3 and max(seen) == 88.09
    locked = ["flock", "--nonblock", str(figure), "true"]
    assert subprocess.run(locked, check=False).returncode == 1
    zero.process.kill()
    zero.wait()
    assert json.loads(figure.read_text())["gib"] == 88.09
    assert subprocess.run(locked, check=False).returncode == 0


def test_a_figure_left_behind_is_gone_before_the_memory_is_looked_at(pair: Pair) -> None:
    figure = pair.machines[0].root / "lab/gpu.json"
    figure.write_text('{"gib": 88.09, "rank": 0}')
    zero = pair.start(0)
    zero.until("loading ")
    assert json.loads(figure.read_text())["gib"] == 0


def test_one_gpu_holds_one_engine(pair: Pair) -> None:
    pair.start(0).until("loading ")
    second = pair.start(0)
    assert second.wait() == 1 and "CUDA out of memory: another engine holds this GPU" in second.log()
