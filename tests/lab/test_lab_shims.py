"""The programs that the hosts have in place of real ones: the container runtime and nvidia-smi."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import resource
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from twinlab.layout import PACKAGE


def _load(path: str) -> ModuleType:
    """A program without .py, as a module."""
    name = Path(path).name.replace("-", "_")
    loader = importlib.machinery.SourceFileLoader(name, str(PACKAGE / "hostfiles" / path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


runtime = _load("usr/local/bin/lab-runtime")
smi = _load("usr/bin/nvidia-smi")


def _gpu(index: int, name: str, uuid: str, bus: str, **more: str) -> dict[str, str]:
    shown = {"driver_version": "580.95.05", "cuda": "13.0", "compute_cap": "12.1", "pci.bus_id": bus}
    return {"index": str(index), "name": name, "uuid": uuid, **shown, **more}


GB10 = {"engine": 0, "gpus": [_gpu(0, "NVIDIA GB10", "GPU-1234", "0000000F:01:00.0")]}
RTX = _gpu(0, "NVIDIA RTX PRO 2000", "GPU-5", "00000005:01:00.0", **{"memory.total": "16311"})
GB300 = _gpu(1, "NVIDIA GB300", "GPU-6", "00000009:06:00.0", **{"memory.total": "256703"})


def _spec(**more: Any) -> dict[str, Any]:
    return {
        "process": {"env": []},
        "linux": {"namespaces": [{"type": "network", "path": ""}]},
        "mounts": [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "ro"]}],
    } | more


def _targets(spec: dict[str, Any]) -> list[str]:
    return [mount["destination"] for mount in spec["mounts"]]


@pytest.mark.parametrize(
    ("hard", "bounding", "rlimit", "capabilities"),
    [
        (8 << 20, 0, 8 << 20, ["CAP_IPC_LOCK"]),
        (resource.RLIM_INFINITY, 1 << 24, 1 << 63, ["CAP_IPC_LOCK", "CAP_SYS_RESOURCE"]),
    ],
)
def test_a_container_gets_no_more_than_the_machine_has(
    hard: int, bounding: int, rlimit: int, capabilities: list[str]
) -> None:
    process = {
        "rlimits": [{"type": "RLIMIT_MEMLOCK", "hard": 1 << 63, "soft": 1 << 63}],
        "capabilities": {"bounding": ["CAP_IPC_LOCK", "CAP_SYS_RESOURCE"]},
    }
    runtime.grantable(process, lambda kind: hard, bounding)
    assert process["rlimits"] == [{"type": "RLIMIT_MEMLOCK", "hard": rlimit, "soft": rlimit}]
    assert process["capabilities"] == {"bounding": capabilities}


def test_every_container_sees_the_memory_and_the_folder_of_the_lab() -> None:
    spec = _spec()
    runtime.add_mounts(spec)
    assert _targets(spec) == ["/sys", "/proc/meminfo", "/lab"]
    assert spec["mounts"][0]["type"] == "sysfs"


@pytest.mark.parametrize("namespaces", [[], [{"type": "network", "path": "/var/run/docker/netns/default"}]])
def test_with_the_hosts_network_come_its_devices(namespaces: list[dict[str, str]]) -> None:
    spec = _spec(linux={"namespaces": namespaces})
    runtime.add_mounts(spec)
    assert (spec["mounts"][0]["source"], spec["mounts"][0]["options"]) == ("/sys", ["rbind", "rslave", "ro"])


@pytest.mark.parametrize(
    ("more", "gpu"),
    [
        ({}, False),
        ({"hooks": {"prestart": [{"path": "/usr/bin/nvidia-container-runtime-hook"}]}}, True),
        ({"hooks": {"prestart": [{"path": "/usr/bin/dockerd"}]}}, False),
        ({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}, True),
        ({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}}, False),
    ],
)
def test_nvidia_smi_is_there_only_with_a_gpu(more: dict[str, Any], gpu: bool) -> None:
    spec = _spec(**more)
    runtime.add_mounts(spec)
    assert ("/usr/bin/nvidia-smi" in _targets(spec)) is gpu


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of the lab whose engine holds 81.2 GiB."""
    folder, proc = tmp_path / "lab", tmp_path / "proc"
    folder.mkdir()
    for pid, command in (
        ("7", "docker run tensorfold serve"),
        ("42", "python3 /bin/tensorfold serve /model"),
    ):
        (proc / pid).mkdir(parents=True)
        (proc / pid / "cmdline").write_text(command.replace(" ", "\0"))
    (folder / "gpu.json").write_text(json.dumps({"gib": 81.2}))
    (folder / ".gpus.json").write_text(json.dumps(GB10))
    monkeypatch.setattr(smi, "_LAB_FOLDERS", (folder,))
    monkeypatch.setattr(smi, "_CLOCKS", tmp_path / "clocks")
    monkeypatch.setattr(smi, "_PROC", proc)
    return folder


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("-L", "GPU 0: NVIDIA GB10 (UUID: GPU-1234)"),
        ("--query-compute-apps=pid,used_memory --format=csv,noheader,nounits", "42, 83149"),
        (
            "--query-compute-apps=pid,process_name,used_memory --format=csv",
            "pid, process_name, used_memory\n42, python3, 83149 MiB",
        ),
        ("--query-gpu=name,memory.total,memory.used --format=csv,noheader", "NVIDIA GB10, [N/A], [N/A]"),
        ("--query-gpu=utilization.gpu --format=csv,noheader,nounits", "96"),
    ],
)
def test_nvidia_smi_answers_as_a_gb10(loaded: Path, arguments: str, answer: str) -> None:
    assert smi.main(arguments.split()) == (answer, 0)


def test_nvidia_smi_answers_as_a_station_with_two_gpus(loaded: Path) -> None:
    (loaded / ".gpus.json").write_text(json.dumps({"engine": 1, "gpus": [RTX, GB300]}))
    asked = ["--query-gpu=uuid,name,memory.used,utilization.gpu", "--format=csv,noheader"]
    assert smi.main(asked) == (
        "GPU-5, NVIDIA RTX PRO 2000, 5 MiB, 0 %\nGPU-6, NVIDIA GB300, 83154 MiB, 96 %",
        0,
    )
    assert smi.main(["--query-compute-apps=gpu_uuid", "--format=csv,noheader"]) == ("GPU-6", 0)
    assert "GPU 00000009:06:00.0" in smi.main(["--lock-gpu-clocks", "0,2200"])[0]
    assert "83154MiB / 256703MiB" in smi.main([])[0]
    clock = ["--query-gpu=clocks.sm", "--format=csv,noheader,nounits"]
    assert smi.main(["-i", "GPU-6", *clock]) == ("2200", 0), "the limit holds while it works"
    assert smi.main(["-i", "GPU-5", *clock]) == ("208", 0)
    smi.main(["--reset-gpu-clocks"])
    assert smi.main(clock) == ("208\n2411", 0)


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("tensorfold serve /model", True),
        ("python3 -m tensorfold serve /model", True),
        ("docker run tensorfold serve", False),
        ("tensorfold info /model", False),
    ],
)
def test_only_the_engine_itself_is_on_the_gpu(command: str, engine: bool) -> None:
    assert smi.is_engine([word.encode() for word in command.split(" ")]) is engine


@pytest.mark.parametrize("content", [None, '{"gib": 0}', '{"gi'])
def test_no_engine_no_processes(loaded: Path, content: str | None) -> None:
    if content is None:
        (loaded / "gpu.json").unlink()
    else:
        (loaded / "gpu.json").write_text(content)
    assert smi.main(["--query-compute-apps=pid,used_memory", "--format=csv,noheader"]) == ("", 0)
    assert "No running processes found" in smi.main([])[0]


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("tensorfold serve /model --tp 2", True),
        ("/usr/bin/python3 /usr/local/bin/tensorfold serve /model", True),
        ("python3 -m tensorfold serve /model", True),
        ("docker run --rm image tensorfold serve /model", False),
        ("/usr/bin/docker run tensorfold serve", False),
        ("/sbin/docker-init -- tensorfold serve /model", False),
        ("sudo docker run x tensorfold serve", False),
        ("tensorfold info", False),
        ("sshd: nvidia", False),
    ],
)
def test_only_the_engine_itself_is_shown_as_the_process_on_the_gpu(command: str, engine: bool) -> None:
    assert smi.is_engine([word.encode() for word in command.split(" ")]) is engine
