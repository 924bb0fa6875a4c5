"""Which ports face each other, and that the role and a start judge the same ports alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import fake_pair as pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.fabric_plan import Wish, plan_all
from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid, mapped
from ansible_collections.twinserve.pair.plugins.module_utils.link import Link
from ansible_collections.twinserve.pair.plugins.module_utils.neighbours import facing, neighbours, shared
from ansible_collections.twinserve.pair.plugins.module_utils.rails import pair_rails
from ansible_collections.twinserve.pair.plugins.module_utils.selection import select_devices
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from probes import NAMES, link, network


@pytest.mark.parametrize(
    ("one", "other", "right"),
    [
        ("198.51.100.1/24", "198.51.100.2/24", True),
        ("198.51.100.1/24", "198.51.100.2/25", True),
        ("198.51.100.1/24", "198.51.100.200/25", False),
        ("198.51.100.1/24", "198.51.100.1/24", False),
        ("198.51.100.1/24", "198.51.100.1/25", False),
        ("198.51.100.1/24", "198.51.101.2/16", False),
        ("198.51.100.1/24", "203.0.113.2/24", False),
        ("10.0.0.0/31", "10.0.0.1/31", True),
        ("10.0.0.1/32", "10.0.0.1/32", False),
    ],
)
def test_neighbours_see_each_other_both_ways(one: str, other: str, right: bool) -> None:
    assert neighbours(one, other) is neighbours(other, one) is right


@dataclass(frozen=True)
class Tree:
    """One RDMA port of a node, as a probe and as a report show it."""

    netdev: str
    hca: str
    pci: str
    addresses: tuple[str, ...] = ()
    mtu: int = 9000
    up: bool = True

    @property
    def device(self) -> Device:
        table = [Gid(0, pair.LINK_LOCAL, pair.V1), Gid(1, pair.LINK_LOCAL, pair.V2)]
        table += [Gid(3 + n, mapped(one), pair.V2) for n, one in enumerate(self.addresses)]
        state, oper = ("ACTIVE", "up") if self.up else ("DOWN", "down")
        made = Device(self.hca, self.netdev, self.pci, state, oper, self.up, self.mtu, 200000)
        return Device(**vars(made) | {"addresses": self.addresses, "gids": tuple(table)})


def cable(number: int, main: Any = (), twin: Any = (), **both: Any) -> list[Tree]:
    """The two PCIe links of a QSFP port of a Spark, with addresses (one or more) of each."""
    sides = []
    for domain, prefix, own in (("0000", "p1", main), ("0002", "P2p1", twin)):
        own = (own,) if isinstance(own, str) else own
        name = f"{prefix}s0f{number}"
        sides.append(
            Tree(f"en{name}np{number}", f"roce{name}", f"{domain}:01:00.{number}", tuple(own), **both)
        )
    return sides


def card(number: int, address: str, **state: Any) -> Tree:
    """A card of a Station."""
    return Tree(f"enP{number}p3s0f0np0", f"mlx5_{number}", f"000{number}:03:00.0", (address,), **state)


TREES: dict[str, tuple[list[Tree], list[Tree]]] = {
    "twins in two subnets": (
        cable(1, "10.1.0.1/24", "10.2.0.1/24"),
        cable(0, "10.1.0.2/24", "10.2.0.2/24"),
    ),
    "twins crossed": (cable(1, "10.1.0.1/24", "10.2.0.1/24"), cable(0, "10.2.0.2/24", "10.1.0.2/24")),
    "twins in one subnet": (
        cable(1, "10.1.0.1/24", "10.1.0.101/24"),
        cable(0, "10.1.0.2/24", "10.1.0.102/24"),
    ),
    "prefix lengths differ": (
        cable(0, "10.1.0.1/24", "10.2.0.1/16"),
        cable(0, "10.1.0.2/25", "10.2.0.2/24"),
    ),
    "prefix too long": (cable(0, "10.1.0.1/24", "10.2.0.1/24"), cable(0, "10.1.0.200/25", "10.2.0.2/24")),
    "one address twice": (cable(0, "10.1.0.1/24", "10.2.0.1/24"), cable(0, "10.1.0.1/24", "10.2.0.2/24")),
    "nothing shared": (cable(0, "10.1.0.1/24"), cable(0, "10.2.0.2/24")),
    "bare": (cable(0), cable(0)),
    "link-local": (cable(0, "169.254.7.9/16"), cable(0, "169.254.201.3/16")),
    "link-local main, addressed twin": (
        cable(0, "169.254.7.9/16", "10.2.0.1/24"),
        cable(0, "169.254.201.3/16", "10.2.0.2/24"),
    ),
    "link-local beside an address": (
        cable(0, ("169.254.7.9/16", "10.1.0.1/24")),
        cable(0, ("169.254.201.3/16", "10.1.0.2/24")),
    ),
    "several addresses": (cable(0, ("10.9.0.1/24", "10.1.0.1/24")), cable(0, "10.1.0.2/24")),
    "two cables, all addressed": (
        cable(0, "10.1.0.1/24", "10.2.0.1/24") + cable(1, "10.3.0.1/24", "10.4.0.1/24"),
        cable(0, "10.1.0.2/24", "10.2.0.2/24") + cable(1, "10.3.0.2/24", "10.4.0.2/24"),
    ),
    "second cable instead of a twin": (
        cable(0, "10.1.0.1/24") + cable(1, "10.3.0.1/24"),
        cable(0, "10.1.0.2/24") + cable(1, "10.3.0.2/24"),
    ),
    "only a twin and the other cable": (
        cable(0, (), "10.2.0.1/24") + cable(1, "10.3.0.1/24"),
        cable(0, (), "10.2.0.2/24") + cable(1, "10.3.0.2/24"),
    ),
    "a live port of another network": (
        cable(0, "192.0.2.140/30") + cable(1, "10.1.0.1/24", "10.2.0.1/24"),
        cable(0, "10.1.0.2/24", "10.2.0.2/24"),
    ),
    "dark main rail": (
        cable(0, "10.1.0.1/24", up=False) + cable(1, "10.2.0.1/24"),
        cable(0, "10.1.0.2/24") + cable(1, "10.2.0.2/24"),
    ),
    "dark on the worker": (
        cable(0, "10.1.0.1/24") + cable(1, "10.2.0.1/24"),
        cable(0, "10.1.0.2/24", up=False) + cable(1, "10.2.0.2/24"),
    ),
    "dark twins": (
        [cable(0, "10.1.0.1/24")[0], cable(0, twin="10.2.0.1/24", up=False)[1]],
        [cable(0, "10.1.0.2/24")[0], cable(0, up=False)[1]],
    ),
    "main rail with two MTUs": (cable(0, "10.1.0.1/24"), cable(0, "10.1.0.2/24", mtu=1500)),
    "twin with another MTU": (
        [*cable(0, "10.1.0.1/24", "10.2.0.1/24")],
        [cable(0, "10.1.0.2/24")[0], cable(0, twin="10.2.0.2/24", mtu=1500)[1]],
    ),
    "station": (
        [card(1, "10.1.0.1/24"), card(2, "10.2.0.1/24")],
        [card(1, "10.1.0.2/24"), card(2, "10.2.0.2/24")],
    ),
    "station, crossed": (
        [card(1, "10.1.0.1/24"), card(2, "10.2.0.1/24")],
        [card(1, "10.2.0.2/24"), card(2, "10.1.0.2/24")],
    ),
}


def planned(trees: tuple[list[Tree], ...], **wish: Any) -> list[dict[str, Any]]:
    """What the role makes of these ports when it may only check."""
    nodes = [
        network(
            tuple((port.netdev, port.hca, port.pci) for port in ports),
            {p.netdev: link(*p.addresses, mtu=p.mtu, up=True, carrier=p.up) for p in ports},
        )
        for ports in trees
    ]
    return plan_all(nodes, NAMES, Wish(manage=False, **wish))


def started(trees: tuple[list[Tree], ...], rails: str, netdev: str | None = None) -> Link:
    """What a start makes of them."""
    devices = [[port.device for port in ports] for ports in trees]
    chosen = [select_devices(own, None, name, "x") for own, name in zip(devices, (netdev, None), strict=True)]
    return pair_rails(chosen, rails if rails == "auto" else int(rails), 2, "nccl", (netdev, None))


@pytest.mark.parametrize("rails", ["auto", "1", "2"])
@pytest.mark.parametrize("trees", TREES.values(), ids=TREES)
def test_f15_role_and_start_judge_the_same_ports_alike(
    trees: tuple[list[Tree], list[Tree]], rails: str
) -> None:
    plans, link_ = planned(trees, rails=rails), started(trees, rails)
    assert bool(plans[0]["error"]) is bool(link_.errors)
    if link_.errors:
        return
    for rank, own in enumerate(plans):
        expected = [(end["hca"], end["address"]) for end in link_.of_rank(rank)]
        assert [(port["hca"], port["address"].split("/")[0]) for port in own["ports"]] == expected
    assert plans[0]["summary"] == link_.summary()
    lost = " does not reach the peer: not used"
    said = [text.partition(lost)[0] for text in plans[0]["warnings"] if lost in text]
    assert said == [text.removesuffix(lost) for text in link_.warnings if lost in text]


def test_f12_link_local_rails_come_after_those_that_stay() -> None:
    assert started(TREES["link-local main, addressed twin"], "auto").master == "10.2.0.1"
    assert started(TREES["link-local beside an address"], "auto").master == "10.1.0.1"


@pytest.mark.parametrize("netdev", ["enp1s0f1np1", "enP2p1s0f0np0", "enp1s0f0np0"])
def test_f24_role_and_start_take_the_same_main_rail(netdev: str) -> None:
    trees = TREES["two cables, all addressed"]
    plans, link_ = planned(trees, netdevs=(netdev, None)), started(trees, "auto", netdev)
    assert plans[0]["ports"][0]["netdev"] == netdev
    assert plans[0]["summary"] == link_.summary()


def test_of_three_ranks_all_must_see_each_other() -> None:
    made = [Tree("e0", "r0", "0", (address,)) for address in ("10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24")]
    assert facing([[one] for one in made]) == [tuple(made)]
    far = Tree("e0", "r0", "0", ("10.0.0.2/30",))
    assert shared((made[0], far)) == ("10.0.0.1/24", "10.0.0.2/30")
    assert shared((made[0], far, Tree("e0", "r0", "0", ("10.0.0.9/24",)))) is None
