"""System B: the engine's and NCCL's lines, against the patterns that the supervisor is given."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.log_signs import scan, signs
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.config import parse_config
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import judge as smoke
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import Attempt
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.verdict import Next, alarm, judge
from station_data import PRODUCT, RELEASE, config, settings

DATA = PRODUCT.release(RELEASE)
CONFIG = parse_config(config())
ENDED = "rank 0 exited (code 1)"

FAILURES = [
    (
        "ray.exceptions.OutOfMemoryError: 2 worker(s) were killed due to the node running low on memory.",
        "Ray's memory monitor killed a worker (unified memory)",
        True,
    ),
    (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "Ray's memory monitor",
        True,
    ),
    (
        "station-b:71:90 [0] misc/mlx5dvwrap.cc:120 NCCL WARN Call to mlx5dv_reg_dmabuf_mr failed",
        "IOMMU groups",
        True,
    ),
    (
        "ValueError: Free memory on device cuda:0 (198.4/250.69 GiB) on startup is less than desired GPU "
        "memory utilization (0.93, 233.14 GiB). Decrease GPU memory utilization",
        "nvidia-smi shows which program",
        False,
    ),
    ("ValueError: No available memory for the cache blocks.", "max_model_len", False),
    ("torch.OutOfMemoryError: CUDA out of memory.", "max_model_len or parallel", False),
    ("vllm serve: error: unrecognized arguments: --max-modl-len", "check extra_args", True),
    (
        "ValueError: Model architectures ['GlmMoeDsaForCausalLM'] are not supported for now.",
        "image and image_digest",
        True,
    ),
    (
        "DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.",
        "a rank did not join",
        False,
    ),
    (
        "[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE)",
        "waited for the other",
        False,
    ),
    ("RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO)", "fabric role", False),
]  # fmt: skip


@pytest.mark.parametrize(("line", "cure", "refusal"), FAILURES)
def test_a_known_failure_comes_with_its_cure(line: str, cure: str, refusal: bool) -> None:
    verdict = judge(ENDED, ["Loading weights took 3 seconds", line], [1], CONFIG, Attempt())
    assert line[:200] in verdict.reason
    assert cure in verdict.reason
    assert verdict.next is (Next.REFUSED if refusal else Next.RESTART)


@pytest.mark.parametrize(
    "line",
    [
        "workers were killed due to the node running low on memory",
        "2 worker(s) were killed due to the node running low on memory.",
        "3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
    ],
)
def test_l21_rays_memory_monitor_is_named_and_the_ranks_meet_without_ray(line: str) -> None:
    verdict = judge(ENDED, [line], [0], CONFIG, Attempt())
    assert verdict.next is Next.REFUSED
    assert "; Ray's memory monitor killed a worker (unified memory)" in verdict.reason
    assert not [word for part in DATA["command"] for word in part["words"] if "ray" in str(word).lower()]
    assert "without Ray" in DATA["managed_flags"]["--distributed-executor-backend"]


def test_l03_the_window_that_fits_is_taken_from_the_refusal() -> None:
    line = (
        "ValueError: To serve at least one request with the model's max seq len (98304), (9.30 GiB KV cache "
        "is needed, which is larger than the available KV cache memory (6.11 GiB). Based on the available "
        "memory, the estimated maximum model length is 64512. Try increasing `gpu_memory_utilization`"
    )
    verdict = judge(ENDED, [line], [1], CONFIG, Attempt())
    assert (verdict.next, verdict.attempt.window) == (Next.AGAIN, 64512)
    assert verdict.reason == "this start holds a 64512-token window, not 98304"
    assert CONFIG.refit_append == ("--max-model-len", "{window}")


PROGRESS = [
    "(Worker_TP0 pid=112) \rLoading safetensors checkpoint shards:  42% Completed | 21/50 [03:10<04:22]",
    "(Worker_TP0 pid=112) INFO 11-02 10:11:12 [default_loader.py:314] Loading weights took 431.20 seconds",
    "(Worker_TP0 pid=112) INFO 11-02 10:11:13 [model.py:3] Model loading took 218.02 GiB memory and 440 s",
    "(Worker_TP0 pid=112) INFO 11-02 10:12:13 [gpu_worker.py:298] Available KV cache memory: 11.4 GiB",
    "(EngineCore pid=90) INFO 11-02 10:12:14 [kv_cache_utils.py:1] GPU KV cache size: 231,424 tokens",
    "(Worker_TP0 pid=112) Capturing CUDA graphs (decode, FULL):  60%|######    | 3/5 [00:04<00:02]",
    "(Worker_TP0 pid=112) INFO 11-02 10:13:00 [gpu_model_runner.py:4] Graph capturing finished in 41 secs",
    "(APIServer pid=1) INFO:     Application startup complete.",
]  # fmt: skip


@pytest.mark.parametrize("line", PROGRESS)
def test_l14_each_step_of_a_long_start_is_seen_while_the_port_is_closed(line: str) -> None:
    found = [match["step"] for pattern in CONFIG.progress if (match := pattern.search(line))]
    assert len(found) == 1
    assert CONFIG.wait_timeout >= 1800


ON_RDMA = """\
station-a:112:112 [0] NCCL INFO Bootstrap: Using enP1p3s0f0np0:198.51.100.1<0>
station-a:112:112 [0] NCCL INFO NCCL version 2.30.7+cuda13.0
station-a:112:180 [0] NCCL INFO NET/IB: Data Direct DMA Interface is detected for device mlx5_1
station-a:112:180 [0] NCCL INFO NET/IB : Using [0]mlx5_1_dma:1/RoCE [RO]; OOB enP1p3s0f0np0:198.51.100.1<0>
station-a:112:180 [0] NCCL INFO Initialized NET plugin IB
station-a:112:180 [0] NCCL INFO Assigned NET plugin IB to comm
station-a:112:180 [0] NCCL INFO Using network IB
station-a:112:180 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA(PCI)
(Worker_TP0 pid=112) INFO 11-02 10:10:00 [pynccl.py:113] vLLM is using nccl==2.30.7
"""


def alarms(**raw: str) -> Iterator[str]:
    """Each line that must end a start, and what is said of it."""
    own = parse_config(config(**raw))
    for line in (
        "station-b:71:90 [0] NCCL INFO NET/Socket : Using [0]enP9p3s0f0np0:198.51.100.2<0>",
        "station-b:71:90 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/Socket/0",
        "station-b:71:90 [0] NCCL INFO Using network Socket",
        "station-b:71:71 [0] NCCL INFO NCCL version 2.28.9+cuda13.0",
        "(Worker_TP1 pid=71) INFO 11-02 10:10:00 [pynccl.py:113] vLLM is using nccl==2.28.9",
    ):
        yield alarm({0: ON_RDMA, 1: f"{ON_RDMA}{line}\n"}, own) or ""


def test_f22_a_rank_over_tcp_or_with_another_nccl_ends_the_start() -> None:
    *sockets, version, loader = alarms()
    assert all(text.startswith("rank 1 uses TCP, not RoCE: ") for text in sockets)
    assert version.startswith("rank 1 runs another NCCL than 2.30.7: ")
    assert loader.startswith("rank 1 runs another NCCL than 2.30.7: ")


def test_f22_gpu_memory_over_rdma_is_no_alarm() -> None:
    assert alarm({0: ON_RDMA, 1: ON_RDMA}, CONFIG) is None


def test_f22_where_nccl_was_told_to_be_silent_its_version_still_counts() -> None:
    *sockets, version, _loader = alarms(nccl_debug="VERSION")
    assert sockets == ["", "", ""]
    assert "another NCCL" in version


@pytest.mark.parametrize("text", [",,,,,,,,,,,,,,,,", ", , , , , , ,", ",", "", "the the the the the the"])
def test_l04_repeated_commas_are_no_answer(text: str) -> None:
    """What this model says with the engine's own choice of kernels and graphs."""
    verdict = smoke(Reply(200, text))
    assert (verdict.ok, verdict.hopeless) == (False, True)
    assert smoke(Reply(200, "OK")).ok


@pytest.mark.parametrize("thought", [",", ", ", "the "])
def test_l04_neither_are_commas_in_place_of_thoughts(thought: str) -> None:
    """All 1,024 tokens of the smoke test go by, and no answer begins."""
    assert DATA["smoke"]["max_tokens"] == 1024
    verdict = smoke(Reply(200, "", thought * 1024, cut=True))
    assert (verdict.ok, verdict.hopeless) == (False, True)
    assert f'rank pair answers "{thought * 10}'[:30] in verdict.detail
    assert smoke(Reply(200, "", "The user wants OK, so I think about it", cut=True)).ok, "it only thinks long"


def test_l05_the_smoke_test_leaves_room_for_a_model_that_always_thinks() -> None:
    assert DATA["smoke"]["max_tokens"] >= 512
    assert DATA["smoke"]["extra"]["chat_template_kwargs"] == {"reasoning_effort": "low"}
    assert DATA["smoke"]["max_tokens"] < settings()["max_model_len"]


def test_the_doctor_knows_the_same_signs() -> None:
    log = "\n".join(f"2026-11-02T10:00:00 {line}" for line, _cure, _refusal in FAILURES)
    found = scan([("rank.log", log)], signs(DATA["failures"]))
    # Both lines of Ray's are one sign.
    assert len(found) == len(FAILURES) - 1
    assert all(re.search(r"\w", one["cure"]) for one in found)


def test_a_busy_pair_is_judged_by_the_engines_metrics() -> None:
    """Its /health is empty: without them a canary that waits behind long requests would look like a hang."""
    names = CONFIG.health_metrics
    assert set(names) == {
        "requests_running",
        "requests_total",
        "prompt_tokens_total",
        "completion_tokens_total",
    }
    assert all(one.startswith("vllm:") for parts in names.values() for one in parts)
