"""One look at a node: what cannot be read does not hide the rest."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils import managed_files, meminfo, node_probe, rdma
from ansible_collections.twinserve.pair.plugins.module_utils.node_probe import Wanted, probe
from ansible_collections.twinserve.pair.plugins.modules import node_facts
from fake_programs import Programs
from module_run import run_module

INFO = {"ServerVersion": "28.1", "Driver": "overlay2", "DockerRootDir": "/", "Architecture": "aarch64"}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(
        tmp_path, monkeypatch, "ip", "nmcli", "docker", "nvidia-smi", "systemctl", "ss", "timedatectl"
    )
    programs.answer("ip_-j_addr", "[]")
    programs.answer("docker_info", json.dumps(INFO))
    programs.answer("docker_image_inspect", "Error: No such image: x\n", 1)
    programs.answer("nvidia-smi", "Driver/library version mismatch\n", 18)
    programs.answer("systemctl_show", "Id=twinserve.service\nActiveState=inactive\n")
    programs.answer("timedatectl_show", "NTP=yes\nNTPSynchronized=yes\n")
    programs.answer("ss", "LISTEN 0 9 127.0.0.1:8888 0.0.0.0:*\n")
    return programs


def look(**wanted: Any) -> dict[str, Any]:
    with ThreadPoolExecutor(max_workers=4) as pool:
        return probe(Wanted(**wanted), pool)


def test_what_fails_is_none_with_its_reason_and_the_rest_is_there(programs: Programs) -> None:
    found = look(images=("engine@sha256:1",))
    assert found["gpu"] is None
    assert list(found["errors"]) == ["gpu"]
    assert "version mismatch" in found["errors"]["gpu"]
    assert (found["docker"]["version"], found["image"]) == ("28.1", None)
    assert found["memory"]["total_gib"] > 0
    assert found["listeners"] == [{"address": "127.0.0.1", "port": 8888, "process": "", "pid": None}]
    assert found["services"]["twinserve.service"]["ActiveState"] == "inactive"
    assert found["clock"]["synchronized"] is True


def test_a_figure_that_the_kernel_lacks_is_such_a_failure(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise KeyError("MemAvailable")

    monkeypatch.setattr(meminfo, "read_memory", missing)
    assert look()["errors"]["memory"] == "'MemAvailable'"


def test_disk_is_measured_where_things_will_go_even_before_they_exist(
    programs: Programs, tmp_path: Path
) -> None:
    found = look(hf_cache=str(tmp_path / "not/yet/there"))
    assert found["hf"]["home"] == str(tmp_path / "not/yet/there")
    assert found["disk"]["hf_cache"]["path"] == str(tmp_path)
    assert found["disk"]["hf_cache"]["device"] == tmp_path.stat().st_dev
    assert found["disk"]["images"]["path"] == "/"
    assert found["disk"]["images"]["free_gb"] > 0


def test_m13_paths_are_the_users_and_not_roots(programs: Programs) -> None:
    found = look(kernel_cache="~/kernels")
    assert found["user"]["uid"] == os.getuid()
    assert found["kernel_cache"] == f"{found['user']['home']}/kernels"
    assert look()["kernel_cache"] == f"{found['user']['home']}/.cache/twinserve"


def test_of_the_users_keys_only_ours_are_read(tmp_path: Path) -> None:
    path = tmp_path / "authorized_keys"
    ours = "restrict ssh-ed25519 BBB twinserve-copy"
    path.write_text(f"ssh-ed25519 AAA me@laptop\n{ours}\nssh-ed25519 CCC x-twinserve-copyx\n")
    assert node_probe._our_keys(path, "twinserve-copy") == [ours]
    assert node_probe._our_keys(path, "twinserve-control") == []
    assert node_probe._our_keys(tmp_path / "absent", "twinserve-copy") == []


def test_a_node_is_recognised_by_the_best_host_key_that_it_has(tmp_path: Path) -> None:
    assert node_probe._host_key(tmp_path) is None
    (tmp_path / "ssh_host_rsa_key.pub").write_text("ssh-rsa RRR root@node\n")
    assert node_probe._host_key(tmp_path) == "ssh-rsa RRR"
    (tmp_path / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 EEE root@node\n")
    assert node_probe._host_key(tmp_path) == "ssh-ed25519 EEE"


def test_f22_only_device_files_count(tmp_path: Path) -> None:
    (tmp_path / "uverbs0").touch()
    (tmp_path / "uverbs1").symlink_to("/dev/null")
    assert rdma.device_files(tmp_path) == ["uverbs1"]
    assert rdma.device_files(tmp_path / "absent") == []


def test_the_runtime_that_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_files, "RUNTIME", str(tmp_path))
    assert node_probe._runtime_version() is None
    (tmp_path / "current").symlink_to("0123456789ab")
    assert node_probe._runtime_version() == "0123456789ab"


def test_an_account_counts_with_a_home_that_is_roots(tmp_path: Path) -> None:
    assert node_probe._is_ready("root", Path("/")) is True
    assert node_probe._is_ready("nobody-of-that-name", Path("/")) is False
    assert node_probe._is_ready("root", tmp_path / "absent") is False


def test_what_is_found_is_what_the_documentation_lists(programs: Programs) -> None:
    listed = yaml.safe_load(node_facts.RETURN)["ansible_facts"]["contains"]["twinserve_node"]["description"]
    keys = re.sub(r"^Keys: |\.$", "", listed).split(", ")
    assert sorted(keys) == sorted(look())


def test_the_module_reports_facts_and_changes_nothing(
    programs: Programs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    snapshots = [{"repo": "o/n", "revision": "a" * 40}]
    answer = run_module(
        node_facts, capsys, hf_cache=str(tmp_path), images=["engine@sha256:1"], snapshots=snapshots
    )
    assert answer["changed"] is False
    found = answer["ansible_facts"]["twinserve_node"]
    assert found["hf"]["snapshots"][f"o/n@{'a' * 40}"]["reason"] == "not verified on this node yet"
    assert "docker image inspect engine@sha256:1" in programs.calls
