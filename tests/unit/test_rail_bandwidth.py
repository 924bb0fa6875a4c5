"""The module that measures: units with limits, rates from what the tool prints, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import bandwidth_run, counters, sysfs
from ansible_collections.twinserve.pair.plugins.modules import rail_bandwidth
from fake_programs import Programs
from module_run import run_module

RECORDED = Path(__file__).parent / "recorded"
RUN: dict[str, Any] = {
    "rail": 0,
    "hca": "rocep1s0f1",
    "netdev": "enp1s0f1np1",
    "address": "198.51.100.1",
    "port": 18515,
    "memory": "host",
}
CLIENT = RUN | {"peer": "198.51.100.2", "to": "spark-b", "phase": 0, "together": False}
LISTENS = 'LISTEN 0 1 *:18515 *:* users:(("ib_write_bw",pid=1,fd=3))\n'


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """A node with one rail at GID index 5, on which no rank runs and the tool is installed."""
    root = tmp_path / "root"
    fake.add_port(root, "enp1s0f1np1")
    fake.add_device(root, "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", fake.table_of("198.51.100.1", 5))
    found = sysfs.read_devices(root, {"enp1s0f1np1": ["198.51.100.1/24"]})
    monkeypatch.setattr(bandwidth_run, "read_devices", lambda: found)
    pcie = {"pcie": {"throughput_gbps": 126.0}}
    monkeypatch.setattr(bandwidth_run, "read_hardware", lambda _root, _hca: pcie)
    monkeypatch.setattr(bandwidth_run, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(bandwidth_run, "_START", 0.0)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(rail_bandwidth, "port_folder", lambda _root, _hca: root)
    node = Programs(
        tmp_path / "node", monkeypatch, "systemd-run", "systemctl", "ss", "ib_write_bw", "nvidia-smi"
    )
    node.answer("ss", LISTENS)
    return node


def unit(kind: str, port: int = 18515) -> str:
    return f"systemd-run_--quiet_--collect_--unit=twinserve-bandwidth-{kind}-{port}"


def started(programs: Programs) -> list[str]:
    """What each started unit runs, without the path of the tool."""
    calls = [call for call in programs.calls if call.startswith("systemd-run ")]
    return [call.partition(" -- ")[2].rpartition("/")[2] for call in calls]


def test_a_server_listens_with_a_limit_on_its_own_port(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run_module(rail_bandwidth, capsys, state="listening", runs=[RUN], limit=77)
    assert (answer["failed"], answer["changed"], answer["silent"]) == (False, False, [])
    assert started(programs) == ["ib_write_bw -d rocep1s0f1 -x 5 -F --report_gbits -s 65536 -D 5 -p 18515"]
    (call,) = [call for call in programs.calls if call.startswith("systemd-run ")]
    assert "--collect --unit=twinserve-bandwidth-server-18515 --property=RuntimeMaxSec=77 " in call


def test_a_server_that_does_not_listen_is_told_and_fails_nothing(
    programs: Programs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    programs.answer("ss", "")
    text = recorded("error_other_device").replace("\n", "\\n")
    log = tmp_path / "logs/18515.log"
    programs.answer(unit("server"), do=f"printf '{text}' > {log}")
    answer = run_module(rail_bandwidth, capsys, state="listening", runs=[RUN])
    assert not answer["failed"]
    assert answer["silent"] == [
        "ib_write_bw does not listen on port 18515: ib_write_bw finds no RDMA device rocep9s0f0"
    ]


def test_a_client_returns_its_rate_and_what_its_end_can_carry(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.answer(unit("client"), recorded("good_rail0"))
    answer = run_module(rail_bandwidth, capsys, state="measured", runs=[CLIENT])
    assert answer["runs"] == [CLIENT | {"speed": 200.0, "pcie": 126.0, "gbits": 92.57, "problem": ""}]
    assert started(programs)[0].endswith("-p 18515 198.51.100.2")
    (call,) = [call for call in programs.calls if call.startswith("systemd-run ")]
    assert "--property=RuntimeMaxSec=25 " in call and " --wait --pipe -- " in call


def test_a_client_that_fails_has_a_problem_and_the_others_go_on(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.answer(unit("client"), recorded("error_connect"), 1)
    programs.answer(unit("client", 18516), recorded("degraded"))
    other = CLIENT | {"port": 18516, "phase": 1}
    gone = CLIENT | {"port": 18517, "phase": 2, "hca": "rocep9s0f0"}
    moved = CLIENT | {"port": 18518, "phase": 3, "address": "198.51.100.9"}
    found = run_module(rail_bandwidth, capsys, state="measured", runs=[CLIENT, other, gone, moved])["runs"]
    assert [one["gbits"] for one in found] == [None, 13.23, None, None]
    assert found[0]["problem"].startswith("192.168.177.2:18515 does not answer")
    assert found[2]["problem"].startswith("RoCE device of enp1s0f1np1 is gone: look at rdma link")
    assert found[3]["problem"].startswith(
        "rocep1s0f1 has no RoCE v2 GID for 198.51.100.9 (found: 0 link-local"
    )


def test_f17_it_is_refused_while_a_rank_runs_and_nothing_is_started(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.answer("systemctl_show", "Id=twinserve-rank.service\nActiveState=active\n")
    for state in ("listening", "measured"):
        answer = run_module(rail_bandwidth, capsys, state=state, runs=[CLIENT])
        assert answer["failed"] and "run playbooks/stop.yml first" in answer["msg"]
    assert started(programs) == []


def test_stopping_ends_all_units_and_forgets_their_output(
    programs: Programs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    assert not run_module(rail_bandwidth, capsys, state="stopped")["changed"]
    assert programs.calls == ["systemctl stop twinserve-bandwidth-*"]
    assert not (tmp_path / "logs").exists()


def test_check_mode_asks_and_starts_nothing(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    for state in ("listening", "measured", "stopped"):
        assert not run_module(rail_bandwidth, capsys, check=True, state=state, runs=[CLIENT])["changed"]
    assert programs.calls == []


def test_counters_that_rise_meanwhile_are_told(
    programs: Programs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = iter([{"symbol_error": 4, "link_downed": 1}, {"symbol_error": 9, "link_downed": 1}])
    monkeypatch.setattr(counters, "read_counters", lambda _port: next(seen))
    programs.answer(unit("client"), recorded("good_rail0"))
    answer = run_module(rail_bandwidth, capsys, state="measured", runs=[CLIENT])
    (told,) = answer["rose"]
    assert told.startswith("rocep1s0f1: symbol_error") and "rose by 5" in told


GPU = CLIENT | {"memory": "gpu", "port": 18516}


@pytest.mark.parametrize(
    ("uuid", "chosen"), [(None, "--use_cuda=0"), ("GPU-2", "--use_cuda_bus_id=0009:06:00.0")]
)
def test_gpu_memory_is_measured_with_cuda_named_before_its_options(
    programs: Programs, capsys: pytest.CaptureFixture[str], uuid: str | None, chosen: str
) -> None:
    programs.answer("ib_write_bw_--help", recorded("help_cuda"))
    programs.answer("nvidia-smi", "GPU-1, 00000008:01:00.0\nGPU-2, 00000009:06:00.0\n")
    programs.answer(unit("client", 18516), recorded("station_gpu_memory"))
    given: dict[str, Any] = {"state": "measured", "runs": [GPU]} | ({"gpu_uuid": uuid} if uuid else {})
    answer = run_module(rail_bandwidth, capsys, **given)
    assert (answer["runs"][0]["gbits"], answer["gpu_problem"]) == (392.1, "")
    assert started(programs)[0].endswith(
        f"-s 1048576 -D 5 -p 18516 {chosen} --use_cuda_dmabuf --use_data_direct 198.51.100.2"
    )


def test_a_tool_without_cuda_measures_the_rest_and_says_what_to_build(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.answer("ib_write_bw_--help", recorded("help_distribution"))
    programs.answer(unit("client"), recorded("station_host_memory"))
    answer = run_module(rail_bandwidth, capsys, state="measured", runs=[CLIENT, GPU])
    assert [one["gbits"] for one in answer["runs"]] == [228.8]
    assert "has no --use_cuda_dmabuf, --use_data_direct: build perftest 26.04.17" in answer["gpu_problem"]
    assert "CUDA_H_PATH=/usr/local/cuda/include/cuda.h" in answer["gpu_problem"]


def test_a_gpu_that_is_not_here_is_told(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.answer("ib_write_bw_--help", recorded("help_cuda"))
    programs.answer("nvidia-smi", "GPU-1, 00000008:01:00.0\n")
    answer = run_module(rail_bandwidth, capsys, state="measured", runs=[GPU], gpu_uuid="GPU-2")
    assert (answer["runs"], answer["gpu_problem"]) == (
        [],
        "gpu_uuid GPU-2 is no GPU of this node: nvidia-smi -L",
    )
