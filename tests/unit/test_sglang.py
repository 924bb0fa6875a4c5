"""SGLang, the example of docs/adding-an-engine.md: what its data makes of both ranks, and what it says.

Nobody has run it. The golden files hold that the data is whole and stays what was read and thought through;
that SGLang serves with it they cannot hold.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import gpu_choice, image_source
from ansible_collections.twinserve.pair.plugins.module_utils.docker_argv import docker_argv
from ansible_collections.twinserve.pair.plugins.module_utils.pair_finding import Pair
from ansible_collections.twinserve.pair.plugins.module_utils.render import pair_config, rank_plans
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import Resolved, resolve
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.client import added
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.config import Config, parse_config
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.observe import counters
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import Attempt
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.verdict import Next, alarm, judge
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import Product, load_product
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import check_host, public
from station_data import LINKS, NODES

GOLDEN = Path(__file__).parent / "golden"
PRODUCT: Product = load_product("sglang")
RELEASE = "glm-5.3-sglang"
DATA = PRODUCT.release(RELEASE)
# Made up: the release pins no image.
IMAGE = {"image_digest": f"sha256:{'ab' * 32}"}
LICENCE = {"accept_nvidia_open_model_license": True}
UNTESTED = "engine sglang is an example that was never run on hardware: "


def resolved(**raw: Any) -> Resolved:
    return resolve(PRODUCT.specs, PRODUCT.rules, DATA, {"engine": "sglang", "release": RELEASE, **raw})


def settings(**raw: Any) -> dict[str, Any]:
    """The facts of a host with these settings, which must be right."""
    result = resolved(**IMAGE, **LICENCE, **raw)
    assert [fault.text for fault in result.faults] == []
    return public(result, PRODUCT.specs)


def plans(**raw: Any) -> list[dict[str, Any]]:
    return rank_plans([settings(**raw)] * 2, DATA, NODES, "pair1")


def config() -> Config:
    """The supervisor's configuration, as it reads it."""
    return parse_config(pair_config(plans(), settings(), DATA, NODES))


def command_lines(**raw: Any) -> list[list[str]]:
    """Each rank's; the label with the digest over all of it is tested elsewhere."""
    found = [docker_argv(plan, link) for plan, link in zip(plans(**raw), LINKS, strict=True)]
    return [[re.sub(r"^(twinserve\.digest=).+", r"\1...", word) for word in argv] for argv in found]


@pytest.mark.parametrize("rank", [0, 1])
def test_the_command_line_of_each_rank(rank: int) -> None:
    golden = (GOLDEN / f"sglang.rank{rank}.txt").read_text(encoding="utf-8").splitlines()
    assert command_lines(expose="direct")[rank] == golden


def test_ranks_differ_in_rank_link_and_where_they_listen() -> None:
    head, worker = command_lines(expose="direct")
    differing = [(one, two) for one, two in zip(head, worker, strict=True) if one != two]
    assert differing == [
        ("device=GPU-aaaa", "device=GPU-bbbb"),
        ("GLOO_SOCKET_IFNAME=enP1p3s0f0np0", "GLOO_SOCKET_IFNAME=enP9p3s0f0np0"),
        ("NCCL_IB_GID_INDEX=3", "NCCL_IB_GID_INDEX=5"),
        ("NCCL_IB_HCA=mlx5_1", "NCCL_IB_HCA=mlx5_0"),
        ("NCCL_SOCKET_IFNAME=enP1p3s0f0np0", "NCCL_SOCKET_IFNAME=enP9p3s0f0np0"),
        ("SGLANG_HOST_IP=198.51.100.1", "SGLANG_HOST_IP=198.51.100.2"),
        ("0.0.0.0", "127.0.0.1"),
        ("0", "1"),
    ]


@pytest.mark.parametrize(
    ("raw", "there", "gone"),
    [
        ({"context_length": 65536}, "--context-length 65536", "98304"),
        ({"parallel": 4}, "--max-running-requests 4", "16"),
        ({"mem_fraction_static": "0.9"}, "--mem-fraction-static 0.9", "0.93"),
        ({"kv_cache_dtype": "auto"}, "--kv-cache-dtype auto", "fp8_e4m3"),
        ({"speculative_tokens": 3}, "--speculative-num-draft-tokens 4", "6"),
        ({"speculative_tokens": 0}, "--reasoning-parser glm45 --disable-custom", "--speculative-algorithm"),
        ({"engine_port": 8000, "master_port": 9000}, "--dist-init-addr 198.51.100.1:9000", "31000"),
        ({"nccl_debug": "WARN"}, "NCCL_DEBUG=WARN", "NCCL_DEBUG=INFO"),
        ({"kernel_cache": "/data/kernels"}, "/data/kernels/abababababab:/cache", ""),
        ({"extra_args": "--disable-cuda-graph"}, "--enable-metrics --disable-cuda-graph", ""),
    ],
)
def test_a_setting_reaches_both_ranks(raw: dict[str, Any], there: str, gone: str) -> None:
    nodes = [{**node, "kernel_cache": raw.get("kernel_cache", "")} for node in NODES]
    for plan, link in zip(rank_plans([settings(**raw)] * 2, DATA, nodes, "pair1"), LINKS, strict=True):
        argv = docker_argv(plan, link)
        assert there in " ".join(argv)
        assert gone not in argv


@pytest.mark.parametrize("raw", [{}, {"parallel": 4}, {"rails": 2}])
def test_every_run_says_that_nobody_has_run_it(raw: dict[str, Any]) -> None:
    own = {"engine": "sglang", **IMAGE, **LICENCE, **raw}
    pair = Pair("pair1", ("a", "b"))
    outcome = check_host("a", pair, {"a": own, "b": own}, {"a": list(own), "b": list(own)})
    assert outcome.faults == []
    assert [UNTESTED in text for text in outcome.warnings] == [True]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (LICENCE, "image_digest is not set, and the release pins none: set that of a tag of lmsysorg/sglang"),
        (IMAGE, "nvidia/GLM-5.3-NVFP4 is under the NVIDIA Open Model Agreement"),
        (
            {**IMAGE, **LICENCE, "image_source": "build"},
            "image_source is 'build': it takes auto or pull (release glm-5.3-sglang)",
        ),
        (
            {**IMAGE, **LICENCE, "extra_args": "--tp 1"},
            "extra_args: --tp is managed; use the ranks of the inventory",
        ),
        (
            {**IMAGE, **LICENCE, "extra_args": "--dist-init 1:2"},
            "extra_args: write --dist-init in full (--dist-init-addr)",
        ),
        (
            {**IMAGE, **LICENCE, "engine_env": {"SGLANG_HOST_IP": "192.0.2.1"}},
            "engine_env: SGLANG_HOST_IP is managed; use fabric_netdev",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_name(raw: dict[str, Any], said: str) -> None:
    (fault,) = resolved(**raw).faults
    assert fault.text.startswith(said)


def test_the_image_is_the_users_alone() -> None:
    wanted = image_source.wanted(settings(), DATA)
    assert wanted["pinned"] == f"lmsysorg/sglang@{IMAGE['image_digest']}"
    assert (wanted["built"], DATA["defaults"]["image_digest"]) == (None, None)


def test_the_large_card_alone_is_passed() -> None:
    gpu = {"names": ["NVIDIA RTX PRO 6000", "NVIDIA GB300"], "uuids": ["GPU-aaaa", "GPU-bbbb"]}
    assert gpu_choice.choose({"gpu": gpu}, settings(), DATA).uuid == "GPU-bbbb"


@pytest.mark.parametrize(("more", "code"), [([], 0), (["--contxt-length", "5"], 2)])
def test_the_parser_gets_the_options_alone(tmp_path: Path, more: list[str], code: int) -> None:
    """What is asked before a start is the command without its first word. A stand-in has its options."""
    for plan in plans():
        words = [*plan["command"][1:], *more]
        options = [word for word in plan["command"] if word.startswith("--")]
        package = tmp_path / "sglang" / "srt"
        package.mkdir(parents=True, exist_ok=True)
        (package / "server_args.py").write_text(
            "class ServerArgs:\n    @staticmethod\n    def add_cli_args(parser):\n"
            f"        for option in {options!r}:\n            parser.add_argument(option, nargs='?')\n"
        )
        argv = [sys.executable, *DATA["parser"][1:], *words]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (done.returncode, "unrecognized arguments" in done.stderr) == (code, bool(code)), done.stderr


PROGRESS = [
    "[2026-11-20 21:19:24 TP0] Init parallel ends. elapsed=3.10 s",
    "[2026-08-28 21:19:24 TP0] Init torch distributed begin.",
    "[2026-08-28 21:19:30 TP0] Load weight begin. avail mem=111.97 GB",
    "Loading safetensors checkpoint shards:  86% Completed | 122/142 [00:07<00:00, 22.49it/s]",
    "[2026-02-26 05:24:12 TP1] Load weight end. elapsed=231.42 s, type=GlmMoeDsaForCausalLM, avail mem=194 G",
    "[2026-08-28 21:34:15] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 159552, K size: 1.83 GB",
    "[2026-11-20 21:34:15] Post-capture KV sizing: KV cache allocated. dtype: torch.uint8, #tokens: 159552",
    "[2026-08-28 21:34:50] Capture target verify CUDA graph begin. backend=full, bs=[1, 2], avail mem=26 GB",
    "[2025-03-03 18:46:44 TP0] Capture cuda graph begin. This can take up to several minutes.",
    "Capturing batches (bs=16 avail_mem=7.05 GB):  60%|######    | 3/5 [00:04<00:02]",
    "[2026-08-28 21:35:15] The server is fired up and ready to roll!",
]  # fmt: skip


@pytest.mark.parametrize("line", PROGRESS)
def test_each_step_of_a_start_is_seen(line: str) -> None:
    assert len([pattern for pattern in config().progress if pattern.search(line)]) == 1


@pytest.mark.parametrize(
    ("line", "cure", "refusal"),
    [
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "set a larger mem_fraction_static",
            False,
        ),
        (
            "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
            "something else holds the memory of one GPU",
            False,
        ),
        ("Exception: Capture cuda graph failed: CUDA out of memory.", "--disable-cuda-graph", False),
        ("Exception: Capture prefill CUDA graph failed: no", "--disable-cuda-graph", False),
        ("Scheduler watchdog timeout (self.watchdog_timeout=300)", "waited for the other", False),
        ("launch_server.py: error: unrecognized arguments: --contxt", "which SGLang image_digest has", True),
        ("misc/mlx5dvwrap.cc:120 NCCL WARN Call to mlx5dv_reg_dmabuf_mr failed", "IOMMU groups", True),
        ("torch.OutOfMemoryError: CUDA out of memory.", "context_length or parallel", False),
        ("ValueError: Model architectures ['X'] are not supported for now.", "image_digest", True),
        ("DistStoreError: Timed out after 1801 seconds waiting for clients.", "did not join", False),
        ("RuntimeError: NCCL error: unhandled system error", "fabric role", False),
        ("Scheduler hit an exception: Traceback (most recent call last):", "the lines after it", False),
    ],
)
def test_a_known_failure_comes_with_its_cure(line: str, cure: str, refusal: bool) -> None:
    verdict = judge("rank 0 exited (code 1)", [PROGRESS[0], line], [1], config(), Attempt())
    assert cure in verdict.reason
    assert verdict.next is (Next.REFUSED if refusal else Next.RESTART)


def test_a_start_over_tcp_is_ended() -> None:
    line = "station-b:71:90 [0] NCCL INFO Using network Socket\n"
    assert (alarm({0: "", 1: line}, config()) or "").startswith("rank 1 uses TCP, not RoCE: ")


METRICS = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="GLM",tp_rank="0"} 2.0
sglang:num_queue_reqs{engine_type="unified",model_name="GLM",tp_rank="0"} 1.0
sglang:num_requests_total{model_name="GLM"} 7.0
sglang:prompt_tokens_total{model_name="GLM"} 100.0
sglang:realtime_tokens_total{mode="prefill_compute",model_name="GLM",tp_rank="0"} 60.0
sglang:realtime_tokens_total{mode="decode",model_name="GLM",tp_rank="0"} %s
"""


def test_a_long_request_is_seen_at_work() -> None:
    """Tokens of a request are counted at its end: one number must grow before."""
    first, later = (
        {name: sum(page.get(part, 0) for part in parts) for name, parts in config().health_metrics.items()}
        for page in (added(METRICS % "5.0"), added(METRICS % "45.0"))
    )
    assert (first["requests_running"], first["requests_total"]) == (3, 7)
    assert first["completion_tokens_total"] == later["completion_tokens_total"]
    assert counters(first) != counters(later)
