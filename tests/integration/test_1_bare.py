"""Two bare machines: nothing of ours is there yet, and nothing may come by asking."""

from __future__ import annotations

import pytest
from hosts_state import differences, host_state, pair_state
from lab_pair import Lab


def test_check_mode_says_what_it_would_do_and_changes_nothing(lab: Lab) -> None:
    before = pair_state(lab)

    run = lab.play("site.yml", "--check", "--diff").succeeded()

    assert differences(before, pair_state(lab)) == []
    assert run.changed > 10
    assert "RDMA ports are down" in run.output
    assert '+    "serve"' in run.output, "the diff shows the rank's command"


def test_f20_a_node_that_is_off_is_reported_in_check_mode_and_else_ends_the_run(lab: Lab) -> None:
    head, worker = lab.hosts
    before = host_state(lab, head)
    lab.verb("power-cut", worker)
    try:
        looked = lab.play("site.yml", "--check").succeeded()
        refused = lab.play("site.yml").refused()
    finally:
        lab.verb("power-on", worker)

    report = " ".join(looked.output.split())
    assert f"{worker} cannot be looked at: Failed to connect" in report
    assert f"rank 0 ({head}) would run: docker run --rm" in report
    assert f"<rail address of {head}>" in report
    assert f"<RDMA devices of {worker}>" in report
    assert "Traceback" not in looked.output + refused.output
    assert looked.changed == 0
    text = " ".join(refused.output.split())
    assert f"Nothing was changed on any node: switch {worker} on, or mend the way to it" in text
    assert differences({head: before}, {head: host_state(lab, head)}) == []


def test_f21_a_kernel_that_cannot_register_memory_is_warned_of(lab: Lab) -> None:
    worker, fake = lab.hosts[1], "/run/meminfo"
    figures = r"CmaTotal: 0 kB\nCmaFree: 940604 kB\n"
    script = (
        f"sed /^Cma/d /proc/meminfo >{fake}; printf '{figures}' >>{fake}; mount --bind {fake} /proc/meminfo"
    )
    lab.root(worker, "sh", "-c", script)
    try:
        run = lab.play("playbooks/preflight.yml").succeeded()
    finally:
        lab.root(worker, "umount", "/proc/meminfo")

    kernel = lab.root(worker, "uname", "-r").strip()
    assert (
        f"warn worker: CmaFree 940604 kB exceeds CmaTotal 0 kB on {kernel}: RDMA registration is known "
        "to fail; boot with kho=off or the 6.17 kernel"
    ) in " ".join(run.output.split())
    assert run.changed == 0
    assert "CmaFree" not in lab.play("playbooks/preflight.yml").succeeded().output


def test_f22_a_node_without_rdma_device_files_is_refused(lab: Lab) -> None:
    worker = lab.hosts[1]
    before = pair_state(lab)
    lab.root(worker, "mv", "/dev/infiniband", "/dev/without")
    try:
        run = lab.play("site.yml").refused()
    finally:
        lab.root(worker, "mv", "/dev/without", "/dev/infiniband")

    assert f"{worker}: worker has no /dev/infiniband: RDMA modules not loaded" in " ".join(run.output.split())
    assert differences(before, pair_state(lab)) == []


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (
            ["parallel=banana", "paralel=2", "context=2000000", "kv=int8"],
            [
                "paralel is not a setting: did you mean parallel?",
                "parallel is 'banana': it takes a whole number from 1 to 4",
                "context is 2000000: it takes a whole number from 0 to 1048576",
                "kv is 'int8': it takes fp8 or bf16",
            ],
        ),
        (
            ["drafter=mtp", "parallel=4"],
            ["parallel 4 needs drafter dflash2 (mtp serves one request at a time)"],
        ),
        (["release=v1.1"], ["release v1.1 has an image for arm64 only"]),
        (["accept_dflash2_license=false"], ["CC BY-NC-ND 4.0", "drafter: mtp"]),
    ],
)
def test_bad_settings_are_refused_at_once_and_together(
    lab: Lab, words: list[str], messages: list[str]
) -> None:
    before = pair_state(lab)

    run = lab.play("site.yml", *[part for word in words for part in ("-e", word)]).refused()

    text = " ".join(run.output.split())
    assert [message for message in messages if message not in text] == []
    assert differences(before, pair_state(lab)) == []


def test_o11_two_major_versions_of_the_driver_are_refused(lab: Lab) -> None:
    def driver(version: str) -> None:
        change = f's/"driver_version": "[0-9.]*"/"driver_version": "{version}"/'
        lab.root(lab.hosts[1], "sed", "-i", change, "/var/lib/lab-engine/.gpus.json")

    before = pair_state(lab)
    try:
        driver("595.84")
        refused = lab.play("site.yml").refused()
        driver("580.178.04")
        warned = lab.play("playbooks/preflight.yml").succeeded()
    finally:
        driver("580.95.05")

    assert "NVIDIA driver differs: head 580.95.05, worker 595.84" in refused.output
    assert differences(before, pair_state(lab)) == []
    assert "warn driver differs: head 580.95.05, worker 580.178.04" in warned.output


def test_l15_too_little_memory_is_refused_before_anything_changes(lab: Lab) -> None:
    before = pair_state(lab)
    lab.verb("memory", lab.hosts[1], "71")
    try:
        run = lab.play("site.yml").refused()
    finally:
        lab.verb("memory", lab.hosts[1], "115")

    assert f"{lab.hosts[1]}: 71 GiB available, about 110 needed" in run.output
    assert "allow_low_memory: true" in run.output
    assert differences(before, pair_state(lab)) == []
