"""The lab itself, in a lab of its own: hosts boot, verbs do what they say, nothing is left behind."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from twinlab import cgroups
from twinlab.layout import PROJECT, Lab, state_root
from twinlab.ownership import remembered_network

pytestmark = pytest.mark.lab
NAME = "labtest"
RAIL = "enp1s0f0np0"
HCA = "/sys/class/infiniband/rocep1s0f0/ports/1"
ENGINE = """cat > tensorfold.py <<'END'
import fcntl, time
figure = open("/lab/gpu.json", "w")
fcntl.flock(figure, fcntl.LOCK_EX)
figure.write('{"gib": 80}')
figure.flush()
time.sleep(600)
END
"""


def lab_command(*words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a verb of the lab under test."""
    verb, *rest = words
    return subprocess.run(
        [str(PROJECT / "lab/lab"), verb, "--name", NAME, *rest],
        input=stdin,
        text=True,
        capture_output=True,
        check=False,
    )


def do(*words: str) -> str:
    """Run a verb that has to work."""
    done = lab_command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on(host: str, script: str) -> str:
    """Run a script as the user over ssh."""
    return do("ssh", host, script).strip()


def eventually(question: Callable[[], object], answer: object, timeout: float = 15.0) -> None:
    """Wait for an answer that comes soon."""
    end = time.monotonic() + timeout
    while (got := question()) != answer:
        assert time.monotonic() < end, f"still {got!r}, not {answer!r}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab in its bare state; wiped afterwards."""
    lab_command("down", "--wipe")
    do("up")
    yield Lab(NAME, state_root(), remembered_network(state_root(), NAME))
    do("wipe")


@pytest.fixture(scope="module")
def cabled(lab: Lab) -> Lab:
    """The same with addresses on the rails."""
    do("up", "--cabled")
    return lab


@pytest.fixture(scope="module")
def image(lab: Lab) -> str:
    """The engine's image by digest, present on host a."""
    release = yaml.safe_load((lab.catalogue / "lab.yml").read_text())["defaults"]
    name = f"{release['image']}@{release['image_digest']}"
    on("a", f"sudo docker pull -q {name}")
    return name


def test_a_bare_host_is_a_spark_to_look_at(lab: Lab) -> None:
    assert on("a", "hostname; . /etc/os-release; echo $ID $VERSION_ID") == f"{NAME}-a\nubuntu 24.04"
    assert on("b", "id -nG; sudo id -un") == "nvidia sudo\nroot"
    assert on("a", f"cat /sys/class/net/{RAIL}/operstate /sys/class/net/{RAIL}/mtu") == "down\n1500"
    assert on("a", "ls /sys/class/infiniband").split() == [
        "roceP2p1s0f0",
        "roceP2p1s0f1",
        "rocep1s0f0",
        "rocep1s0f1",
    ]
    assert on("a", "nvidia-smi -L") != on("b", "nvidia-smi -L")
    assert on(
        "a", "systemctl is-system-running; sudo docker info -f '{{.DefaultRuntime}} {{.CgroupVersion}}'"
    ) == ("running\nlab 2")


def test_up_again_changes_nothing(lab: Lab) -> None:
    before = on("a", "cat /proc/sys/kernel/random/boot_id")
    assert f"lab {NAME} is up already" in lab_command("up").stderr
    assert on("a", "cat /proc/sys/kernel/random/boot_id") == before


def test_packages_come_through_the_mirror(lab: Lab) -> None:
    on("a", "sudo apt-get update -q && apt-cache policy tree | grep -q Candidate")


def test_cabled_hosts_reach_each_other(cabled: Lab) -> None:
    for rail in (1, 2):
        on("a", f"ping -c1 -W2 -M do -s 8972 {cabled.network.rail_address(rail, 2)}")
    assert (
        on("a", f"ssh {cabled.network.rail_address(1, 2)} hostname; ssh {NAME}-b hostname")
        == f"{NAME}-b\n{NAME}-b"
    )
    gid = on("a", f"cat {HCA}/gids/3 {HCA}/gid_attrs/types/3 {HCA}/gid_attrs/ndevs/3").splitlines()
    assert gid[0].startswith("0000:0000:0000:0000:0000:ffff:c6")
    assert gid[1:] == ["RoCE v2", RAIL]
    # An empty slot has no type: reading it must fail, and with EINVAL.
    assert "Invalid argument" in on("a", f"if cat {HCA}/gid_attrs/types/9 2>&1; then exit 1; fi")


def test_a_pulled_cable_is_seen_on_both_sides(cabled: Lab) -> None:
    do("cut-rail", "1")
    for host in "ab":
        eventually(partial(on, host, f"cat /sys/class/net/{RAIL}/carrier {HCA}/state"), "0\n1: DOWN")
        assert on(host, "cat /sys/class/net/enP2p1s0f0np0/carrier") == "1"
    do("mend-rail", "1")
    eventually(lambda: on("b", f"cat /sys/class/net/{RAIL}/carrier {HCA}/state"), "1\n4: ACTIVE")


def test_a_power_cut_takes_the_carrier_from_the_other(cabled: Lab) -> None:
    before = on("b", "cat /proc/sys/kernel/random/boot_id; echo kept > ~/file; sync")
    do("power-cut", "b")
    assert lab_command("status").returncode == 1
    assert f"{NAME}-b is off" in lab_command("exec", "b", "true").stderr
    eventually(lambda: on("a", f"cat {HCA}/state"), "1: DOWN")
    do("power-on", "b")
    assert on("b", "cat file; cat /proc/sys/kernel/random/boot_id").split()[0] == "kept"
    assert on("b", "cat /proc/sys/kernel/random/boot_id") != before
    eventually(lambda: on("a", f"cat {HCA}/state"), "4: ACTIVE")


def test_a_bad_cable_is_seen_in_the_counters_until_the_next_boot(cabled: Lab) -> None:
    read = f"cat {HCA}/counters/symbol_error"
    do("flaky", "1")
    eventually(lambda: int(on("b", read)) > 20, True)
    do("flaky", "1", "--clear")
    before = on("b", read)
    assert on("a", f"cat {HCA}/counters/port_rcv_errors") != "0"
    time.sleep(0.5)
    assert on("b", read) == before
    do("reboot", "b")
    assert on("b", read) == "0"


def test_gids_move_and_come_back(cabled: Lab) -> None:
    address = on("a", f"cat {HCA}/gids/3")
    do("gids", "a", "rocep1s0f0", "--shift", "2")
    assert on("a", f"cat {HCA}/gids/5 {HCA}/gid_attrs/types/5") == f"{address}\nRoCE v2"
    do("gids", "a", "rocep1s0f0", "--v1-only")
    assert on("a", f"cat {HCA}/gid_attrs/types/2; cat {HCA}/gids/3").startswith("IB/RoCE v1\n0000:")
    assert on("a", f"cat {HCA}/gids/3").endswith(":0000")
    do("gids", "a", "rocep1s0f0", "--clear")
    assert on("a", f"cat {HCA}/gids/3") == address


def test_a_device_is_lost_until_a_power_cycle(cabled: Lab) -> None:
    do("lose", "b", "rocep1s0f0")
    port = f"/sys/class/net/{RAIL}"
    show = f"ls /sys/class/infiniband; ls {port}/device/infiniband; cat {port}/mtu"
    assert on("b", show).split() == ["roceP2p1s0f0", "roceP2p1s0f1", "rocep1s0f1", "9000"]
    do("reboot", "b")
    assert "rocep1s0f0" not in on("b", "ls /sys/class/infiniband").split()
    do("power-cut", "b")
    do("power-on", "b")
    eventually(lambda: on("b", f"cat {HCA}/state"), "4: ACTIVE")


def test_the_drivers_devices_can_be_away(cabled: Lab) -> None:
    do("rdma", "a", "off")
    assert on("a", "! ls /dev/infiniband 2>&1").endswith("No such file or directory")
    do("rdma", "a", "on")
    assert on("a", "ls /dev/infiniband").split()[0] == "rdma_cm"


def test_the_cable_goes_into_the_other_socket(cabled: Lab) -> None:
    do("plug", "b", "1")
    eventually(lambda: on("b", f"cat /sys/class/net/{RAIL}/carrier"), "0")
    on("b", "sudo ip link set enp1s0f1np1 up")
    eventually(lambda: on("b", "cat /sys/class/net/enp1s0f1np1/carrier"), "1")
    on("b", "sudo ip link set enp1s0f1np1 down")
    do("plug", "b", "0")
    eventually(lambda: on("b", f"cat /sys/class/net/{RAIL}/carrier"), "1")
    assert "no socket 2" in lab_command("plug", "b", "2").stderr


def test_reboot(cabled: Lab) -> None:
    before = on("b", "cat /proc/sys/kernel/random/boot_id")
    do("reboot", "b")
    assert on("b", "cat /proc/sys/kernel/random/boot_id") != before


@pytest.mark.parametrize("gib", [20, 900])
def test_free_disk_is_what_was_set(lab: Lab, gib: int) -> None:
    do("disk", "a", str(gib))
    shown = on("a", "df --block-size=1M --output=avail / /var/lib/docker | tail -n +2").split()
    assert [int(megabytes) / 1024 for megabytes in shown] == pytest.approx([gib, gib], rel=0.001)


def test_memory_is_what_was_set_also_in_containers(lab: Lab, image: str) -> None:
    do("memory", "a", "20")
    show = "grep MemAvailable /proc/meminfo"
    assert (
        on("a", f"{show}; sudo docker run --rm --entrypoint sh {image} -c '{show}'").split()[1::3]
        == ["20971520"] * 2
    )
    do("memory", "a", "115")


def test_a_loaded_engine_holds_memory_and_shows_on_the_gpu(lab: Lab, image: str) -> None:
    ask = "nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits"
    options = "--gpus all --network host -v ./tensorfold.py:/tensorfold.py --entrypoint python3"
    on("a", f"{ENGINE} sudo docker run -d --name load {options} {image} /tensorfold.py serve")
    eventually(lambda: on("a", ask), "81920")
    assert on("a", f"sudo docker exec load sh -c '{ask}; ls /sys/class/infiniband | wc -l'") == "81920\n4"
    eventually(lambda: on("a", "grep MemAvailable /proc/meminfo").split()[1], str(35 * 1024 * 1024))
    assert "engine holds 80.0" in (shown := do("status")), shown
    on("a", "sudo docker rm -f load")
    assert on("a", ask) == ""
    eventually(lambda: on("a", "grep MemAvailable /proc/meminfo").split()[1], str(115 * 1024 * 1024))


def test_the_hub_serves_the_hosts_own_client(lab: Lab) -> None:
    do("up", "--hf")
    repository = "incoai/GLM-5.3-Flash-DFlash2"
    revision = json.loads((lab.hub / f"{repository}.json").read_text())["sha"]
    download = f"HF_ENDPOINT={lab.hub_url} ~/.local/bin/hf download {repository} --revision {revision} -q"
    assert on("a", f"ls $({download})").split() == ["README.md", "config.json", "model.safetensors"]


def test_a_service_dies_and_comes_back(lab: Lab) -> None:
    asked = f"curl -s -o /dev/null -w '%{{http_code}}' {lab.hub_url}/; true"
    do("service", "hub", "off")
    assert on("a", asked) == "000"
    do("service", "hub", "on")
    assert on("a", asked) == "404"


def test_switches_reach_the_host(lab: Lab) -> None:
    do("engine", "b", "load_seconds=3")
    assert on("b", "cat /var/lib/lab-engine/switches.json").split() == ["{", '"load_seconds":', "3", "}"]
    do("engine", "b", "--clear")
    assert on("b", "cat /var/lib/lab-engine/switches.json") == "{}"


def test_a_killed_lab_comes_up_again(cabled: Lab) -> None:
    for group in (cabled.services_cgroup, *(host.cgroup for host in cabled.hosts)):
        cgroups.kill(group)
    assert lab_command("status").returncode == 1
    do("up")
    assert on("a", "hostname") == f"{NAME}-a"


def test_down_leaves_nothing(cabled: Lab) -> None:
    do("down", "--wipe")
    assert not cabled.folder.exists()
    assert NAME not in Path("/proc/mounts").read_text()
    root = cgroups.unified_root()
    assert root is not None and not (root / "twinlab" / NAME).exists()
    for question in (["ip", "netns"], ["ip", "link"], ["losetup", "--all"], ["ps", "-ef"]):
        shown = subprocess.run(question, capture_output=True, text=True, check=True).stdout
        assert NAME not in shown
    assert "there is no lab" in lab_command("down").stderr
