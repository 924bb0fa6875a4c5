"""The engine's log lines, in the contract's words, against the patterns that the supervisor is given."""

from __future__ import annotations

import re

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.render import pair_config
from engine_data import NODES, PRODUCT, plans, settings

RELEASE = PRODUCT.release("v1.1")


def test_the_largest_window_is_read_from_the_refusal() -> None:
    line = (
        "tensorfold: CUDA startup memory budget cannot fit requested context 1048576; estimated largest "
        "fitting prompt-plus-reply window: 786432 tokens across the ranks."
    )
    found = re.search(RELEASE["refit"]["pattern"], line)
    assert found is not None
    assert (found["requested"], found["window"]) == ("1048576", "786432")


def test_the_window_is_read_from_a_shorter_line_too() -> None:
    found = re.search(RELEASE["refit"]["pattern"], "largest fitting prompt-plus-reply window: 4096 tokens")
    assert found is not None
    assert (found["requested"], found["window"]) == (None, "4096")


PROGRESS = [
    ("[tensorfold] loading GLM-5.3-Flash-EXL3: GLM-5.3-Flash (glm5_next) on CUDA, rank 0 of 2", {}),
    (
        "[tensorfold] CUDA rank 0 startup estimate 88.09 GiB within 95.5 GiB; native 1048576, allocated "
        "prompt/reply window 1048576, cache slots 8",
        {"estimate_gib": "88.09"},
    ),
    (
        "[tensorfold] --parallel 4: up to 4 requests decode together, their caches in one pool of "
        "2684928 tokens (each up to 1048576)",
        {"pool_tokens": "2684928"},
    ),
]


@pytest.mark.parametrize(("line", "values"), PROGRESS)
def test_progress_is_recognised(line: str, values: dict[str, str]) -> None:
    found = next(match for pattern in RELEASE["progress"] if (match := re.search(pattern, line)))
    assert {name: found[name] for name in values} == values


FAILURES = [
    (
        "CUDA ranks have different native windows or context flags; start both with the same flags",
        "arguments",
    ),
    (
        "RuntimeError: the two ranks were started with different settings (draft model, ...): rank 0 [...]",
        "plans",
    ),
    ("RuntimeError: NCCL error 2: unhandled system error", "split: false"),
    (
        "NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "RDMA registration is known to fail; boot with kho=off or the 6.17 kernel",
    ),
    ("RuntimeError: NCCL error 6: remote process exited", "fabric"),
    ("RuntimeError: RoCE all-gather failed (sequence 4, peer 1, hca rocep1s0f0)", "cable"),
    ("tensorfold serve: error: unrecognized arguments: --contxt 4096", "extra_args"),
]


@pytest.mark.parametrize(("line", "cure"), FAILURES)
def test_a_known_failure_comes_with_its_cure(line: str, cure: str) -> None:
    found = next(entry for entry in RELEASE["failures"] if re.search(entry["pattern"], line))
    assert cure in found["cure"]


def test_f21_the_kernel_is_told_before_the_general_nccl_error() -> None:
    patterns = [entry["pattern"] for entry in RELEASE["failures"]]
    (kernel,) = [n for n, entry in enumerate(RELEASE["failures"]) if "kho=off" in entry["cure"]]
    general = next(n for n, pattern in enumerate(patterns) if re.search(pattern, "NCCL error 2: unhandled"))
    assert kernel < general
    assert RELEASE["failures"][kernel]["refusal"]


@pytest.mark.parametrize(
    ("line", "alarmed"),
    [
        ("spark-b:1:7 [0] NCCL INFO NET/Socket : Using [0]enp1s0f1np1:198.51.100.2<0>", True),
        ("NCCL INFO Channel 00/0 : 1[0] -> 0[0] [send] via NET/Socket/0", True),
        ("NCCL INFO Using network Socket", True),
        ("NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE [RO]; OOB enp1s0f1np1:198.51.100.2<0>", False),
        ("NCCL INFO Bootstrap: Using enp1s0f1np1:198.51.100.2<0>", False),
    ],
)
def test_f22_nccl_says_what_it_runs_over(line: str, alarmed: bool) -> None:
    (rule,) = RELEASE["alarms"]
    assert bool(re.search(rule["pattern"], line)) is alarmed
    assert rule["says"].replace("{rank}", "1") == "rank 1 uses TCP, not RoCE"


@pytest.mark.parametrize(("level", "count"), [(None, 0), ("WARN", 0), ("INFO", 1), ("TRACE", 1)])
def test_f22_ranks_are_listened_to_only_where_nccl_talks(level: str | None, count: int) -> None:
    own = settings(nccl_debug=level) if level else settings()
    config = pair_config(plans(), own, RELEASE, NODES)
    assert len(config["patterns"]["alarms"]) == count
