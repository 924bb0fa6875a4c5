"""site.yml: from two bare machines to a chat answer, and then nothing more to do."""

from __future__ import annotations

import json
from typing import Any

from hosts_state import differences, pair_state
from lab_pair import Lab, Play


def test_site_ends_with_an_answer(lab: Lab, converged: Play) -> None:
    assert "The capital of France is Paris." in converged.output
    assert "http://127.0.0.1:8888/v1" in converged.output
    assert "What is 2+3?" not in lab.chat("What is 2+3? Answer with the number only.")
    assert "5" in lab.chat("What is 2+3? Answer with the number only.")


def test_second_run_changes_and_restarts_nothing(lab: Lab, converged: Play) -> None:
    before, containers = pair_state(lab), lab.containers()

    run = lab.play("site.yml").succeeded()

    assert run.changed == 0
    assert lab.containers() == containers
    assert differences(before, pair_state(lab)) == []


def test_check_mode_on_a_converged_pair_reports_nothing(lab: Lab, converged: Play) -> None:
    before = pair_state(lab)

    run = lab.play("site.yml", "--check", "--diff").succeeded()

    assert run.changed == 0
    assert differences(before, pair_state(lab)) == []


def test_f20_check_mode_shows_the_command_that_each_rank_runs(lab: Lab, converged: Play) -> None:
    run = lab.play("playbooks/ranks.yml", "--check").succeeded()

    told = " ".join(run.output.split())
    for host in lab.hosts:
        container = lab.inspect(host)
        for word in [*container["Config"]["Cmd"], container["Config"]["Image"], *docker_env(container)]:
            assert word in told
    assert run.changed == 0


def docker_env(container: dict[str, Any]) -> list[str]:
    """The variables that we gave a container: those of NCCL, as the link of this start has them."""
    return [one for one in container["Config"]["Env"] if one.startswith("NCCL_")]


def test_only_the_supervisor_is_enabled_and_no_container_restarts_alone(lab: Lab, converged: Play) -> None:
    head, worker = (lab.node(host) for host in lab.hosts)

    assert head.service("twinserve").is_enabled and head.service("twinserve").is_running
    assert not worker.file("/etc/systemd/system/twinserve.service").exists
    for node in (head, worker):
        assert node.service("twinserve-rank").is_running
        # `static`: it has no [Install], so nobody can enable it by mistake.
        assert node.check_output("systemctl show -P UnitFileState twinserve-rank") == "static"
    for host in lab.hosts:
        assert lab.inspect(host)["HostConfig"]["RestartPolicy"]["Name"] == "no"


def test_ranks_run_the_same_image_and_see_the_weights_read_only(lab: Lab, converged: Play) -> None:
    first, second = (lab.inspect(host) for host in lab.hosts)

    assert first["Config"]["Image"] == second["Config"]["Image"]
    assert "@sha256:" in first["Config"]["Image"]
    for one in (first, second):
        mounts = {mount["Destination"]: mount["RW"] for mount in one["Mounts"]}
        assert mounts["/root/.cache/huggingface"] is False
        assert mounts["/cache"] is True


def test_f01_f07_each_rank_gets_both_rails_and_its_own_gid_index(lab: Lab, converged: Play) -> None:
    for host, last in zip(lab.hosts, (1, 2), strict=True):
        env = dict(line.split("=", 1) for line in lab.inspect(host)["Config"]["Env"])
        assert env["NCCL_IB_HCA"] == "rocep1s0f0,roceP2p1s0f0"
        assert env["NCCL_SOCKET_IFNAME"] == "enp1s0f0np0"
        gids = f"/sys/class/infiniband/rocep1s0f0/ports/1/gids/{env['NCCL_IB_GID_INDEX']}"
        kind = f"/sys/class/infiniband/rocep1s0f0/ports/1/gid_attrs/types/{env['NCCL_IB_GID_INDEX']}"
        assert lab.root(host, "cat", gids).strip().endswith(f"ffff:c0a8:b10{last}")
        assert lab.root(host, "cat", kind).strip() == "RoCE v2"


def test_x01_the_api_is_on_loopback_only(lab: Lab, converged: Play) -> None:
    listening = lab.root(lab.hosts[0], "ss", "-Hltn", "sport", "=", ":8888").split()

    assert "127.0.0.1:8888" in listening
    assert not [word for word in listening if word in ("0.0.0.0:8888", "*:8888")]


def test_both_nodes_have_the_whole_model_owned_by_the_login_user(lab: Lab, converged: Play) -> None:
    lists = []
    for host in lab.hosts:
        top = "/home/nvidia/.cache/huggingface/hub"
        lists.append(
            lab.root(host, "sh", "-c", f"cd {top} && find . -path '*/snapshots/*' -printf '%P %l\n' | sort")
        )
        strangers = lab.root(host, "find", "/home/nvidia/.cache/huggingface", "-not", "-user", "nvidia")
        assert strangers == ""
    assert lists[0] == lists[1]
    assert "config.json" in lists[0]


def test_keys_and_control_files_are_closed(lab: Lab, converged: Play) -> None:
    head, worker = (lab.node(host) for host in lab.hosts)

    assert head.file("/etc/twinserve/keys/control").mode == 0o600
    assert head.file("/etc/twinserve/pair.json").mode == 0o600
    assert head.file("/etc/netplan/60-twinserve-fabric.yaml").mode == 0o600
    assert worker.file("/etc/sudoers.d/twinserve").mode == 0o440
    assert head.file("/etc").user == "root"


def test_the_control_key_can_do_what_its_list_says_and_nothing_else(lab: Lab, converged: Play) -> None:
    ssh = ["ssh", "-i", "/etc/twinserve/keys/control", "-o", "UserKnownHostsFile=/etc/twinserve/known_hosts"]
    ssh += ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ControlPath=none"]
    target = f"twinserve@{lab.root(lab.hosts[0], 'cut', '-d,', '-f2', '/etc/twinserve/known_hosts').strip()}"
    script = '"$@"; echo "exit $?"'

    state = json.loads(lab.root(lab.hosts[0], *ssh, target, "state"))
    shell = lab.root(lab.hosts[0], "sh", "-c", script, "sh", *ssh, target, "id")
    injected = lab.root(lab.hosts[0], "sh", "-c", script, "sh", *ssh, target, "state; id")

    assert state["unit"] == "active"
    assert shell.strip() == "exit 126"
    assert injected.strip() == "exit 126"
