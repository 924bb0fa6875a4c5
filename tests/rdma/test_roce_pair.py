"""The fabric role on two machines with real RoCE devices (rdma_rxe): the truth behind the simulated pair.

Run by `make test-rdma`; the tests tell one story, in this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import vm_pair as vm
from ansible_collections.twinserve.pair.plugins.module_utils.gids import mapped

MAIN = "enp1s0f0np0"
HCA = vm.RAILS[MAIN]


@pytest.fixture(scope="module", autouse=True)
def machines() -> Iterator[None]:
    with vm.machines():
        yield


def main_address(host: str) -> str:
    """The one address of the main rail, without its length."""
    (address,) = vm.addresses(host)[MAIN]
    return address.partition("/")[0]


def index_of(host: str, address: str) -> int:
    """Where the kernel's own table has the address as RoCE v2."""
    (found,) = [
        index for index, entry in vm.gid_table(host, HCA).items() if entry == f"{mapped(address)} RoCE v2"
    ]
    return found


def test_check_mode_leaves_bare_ports_bare() -> None:
    vm.play("--check", "--diff")
    for host in (vm.HEAD, vm.WORKER):
        assert vm.addresses(host) == {port: [] for port in vm.RAILS}


def test_rails_are_found_addressed_and_proved() -> None:
    done = vm.play("--diff")
    assert done.changed > 0
    assert "2 rails: rocep1s0f0,roceP2p1s0f0 <-> rocep1s0f0,roceP2p1s0f0" in done.output
    seen = [vm.addresses(host) for host in (vm.HEAD, vm.WORKER)]
    for port in vm.RAILS:
        networks = {address.rpartition(".")[0] for addresses in seen for address in addresses[port]}
        assert [len(addresses[port]) for addresses in seen] == [1, 1]
        assert len(networks) == 1, seen
        assert vm.on(vm.HEAD, f"cat /sys/class/net/{port}/mtu").strip() == "9000"


def test_a_second_run_changes_nothing_and_measures_each_rail() -> None:
    done = vm.play("-e", "fabric_bandwidth_test=true")
    assert done.changed == 0
    rates = r"rail ([01]): roce-a -> roce-b [\d.]+ Gb/s, roce-b -> roce-a [\d.]+ Gb/s"
    assert re.findall(rates, " ".join(done.output.split())) == ["0", "1"], done.output


@pytest.mark.parametrize("host", [vm.HEAD, vm.WORKER])
def test_the_products_look_is_what_the_kernel_says(host: str) -> None:
    info = vm.rdma_info(host)
    assert list(info) == list(vm.RAILS.values())
    for hca, device in info.items():
        told = {entry["index"]: f"{entry['gid']} {entry['type']}" for entry in device["gids"]}
        assert told == vm.gid_table(host, hca)
        assert device["state"] == "ACTIVE"
        assert device["addresses"] == vm.addresses(host)[device["netdev"]]


def test_f02_an_index_that_moved_is_found_again() -> None:
    address = main_address(vm.HEAD)
    before = index_of(vm.HEAD, address)
    port = f"dev {MAIN}"
    (own,) = vm.addresses(vm.HEAD)[MAIN]
    other = "198.18.250.1/30"
    steps = (f"del {own}", f"add {other}", f"add {own}", f"del {other}")
    vm.on(vm.HEAD, " && ".join(f"sudo ip addr {step} {port}; sleep 3" for step in steps))
    after = index_of(vm.HEAD, address)
    assert after != before
    told = vm.rdma_info(vm.HEAD)[HCA]["gids"]
    assert after in [entry["index"] for entry in told if entry["gid"] == mapped(address)]
    assert vm.play().changed == 0


def test_rdma_write_works_with_the_index_that_was_found() -> None:
    ends = {host: main_address(host) for host in (vm.HEAD, vm.WORKER)}
    index = {host: index_of(host, address) for host, address in ends.items()}
    options = f"-d {HCA} -s 65536 -n 100 -F"
    vm.on(vm.WORKER, f"ib_write_bw {options} -x {index[vm.WORKER]} >/tmp/bw 2>&1 </dev/null & sleep 5")
    said = vm.on(vm.HEAD, f"ib_write_bw {options} -x {index[vm.HEAD]} {ends[vm.WORKER]}")
    found = re.search(r"^ 65536 +100 +([\d.]+) +([\d.]+)", said, re.MULTILINE)
    assert found and float(found[2]) > 0, said


def test_addresses_are_back_after_a_reboot() -> None:
    before = vm.addresses(vm.WORKER)
    vm.verb("reboot", vm.WORKER)
    assert vm.addresses(vm.WORKER) == before
    assert vm.play().changed == 0
