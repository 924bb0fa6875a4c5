"""The GID of a rail's end at a start: what the head resolves, and what the rank verifies before it runs.

Each situation is a GID table and the addresses of the head's main port; the worker is as always.
"""

from __future__ import annotations

from dataclasses import dataclass

import fake_pair as pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent.check import rail_problem
from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid, mapped
from ansible_collections.twinserve.pair.plugins.module_utils.link import Link
from ansible_collections.twinserve.pair.plugins.module_utils.rails import pair_rails
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device

OWN, OLD, OFFICE = "198.51.100.1", "198.51.100.7", "10.9.9.1"
V1, V2, LINK_LOCAL = pair.V1, pair.V2, pair.LINK_LOCAL
NONE = f"rank 0: rocep1s0f1 has no RoCE v2 GID for {OWN} (found: {{}})"


@dataclass(frozen=True)
class Situation:
    """A table of (index, address or GID, type), the port's addresses, and the right index, or the error."""

    table: tuple[tuple[int, str, str], ...]
    index: int | None = None
    error: str = ""
    addresses: tuple[str, ...] = (f"{OWN}/24",)

    @property
    def device(self) -> Device:
        gids = tuple(Gid(index, gid if ":" in gid else mapped(gid), kind) for index, gid, kind in self.table)
        return pair.device(
            "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", None, addresses=self.addresses, gids=gids
        )

    def link(self) -> Link:
        """What the head makes of it, with one rail."""
        return pair_rails([[self.device], pair.worker()[:1]], 1, 2, "roce")


LOCAL = ((0, LINK_LOCAL, V1), (1, LINK_LOCAL, V2))
SITUATIONS = {
    "as usual": Situation((*LOCAL, (2, OWN, V1), (3, OWN, V2)), 3),
    "slot 3 is empty": Situation((*LOCAL, (2, OWN, V1), (4, OWN, V2)), 4),
    "slot 3 is v1": Situation((*LOCAL, (3, OWN, V1), (4, OWN, V2)), 4),
    "slot 3 is link-local v2": Situation((*LOCAL, (3, LINK_LOCAL, V2), (4, OWN, V1), (5, OWN, V2)), 5),
    "slot 3 was given to another address": Situation((*LOCAL, (2, OLD, V1), (3, OLD, V2), (5, OWN, V2)), 5),
    "a second address came first": Situation(
        (*LOCAL, (3, OFFICE, V2), (5, OWN, V2)), 5, addresses=(f"{OFFICE}/24", f"{OWN}/24")
    ),
    "a second address in the same subnet": Situation(
        (*LOCAL, (3, OLD, V2), (5, OWN, V2)), 5, addresses=(f"{OWN}/24", f"{OLD}/24")
    ),
    "an empty table": Situation((), error=NONE.format("empty")),
    "v1 only": Situation(
        (*LOCAL, (3, OWN, V1)),
        error=NONE.format(f"0 link-local v1, 1 link-local v2, 3 {OWN} v1"),
    ),
    "link-local only": Situation(LOCAL, error=NONE.format("0 link-local v1, 1 link-local v2")),
    "only the old address is in the table": Situation(
        (*LOCAL, (3, OLD, V2)),
        error=NONE.format(f"0 link-local v1, 1 link-local v2, 3 {OLD} v2"),
    ),
}
ALL = pytest.mark.parametrize("situation", [pytest.param(one, id=name) for name, one in SITUATIONS.items()])


@ALL
def test_f01_f02_the_head_resolves_by_value_and_type(situation: Situation) -> None:
    link = situation.link()
    assert link.errors == ((situation.error,) if situation.error else ())
    if not situation.error:
        (end,) = link.of_rank(0)
        assert (end["address"], end["gid_index"]) == (OWN, situation.index)


@ALL
def test_f02_the_rank_verifies_what_it_is_told_right_before_it_runs(situation: Situation) -> None:
    told = {"hca": "rocep1s0f1", "netdev": "enp1s0f1np1", "address": OWN, "gid_index": 3}
    problem = rail_problem(told, situation.device)
    if situation.error:
        assert problem == situation.error.removeprefix("rank 0: ")
    elif situation.index == 3:
        assert problem is None
    else:
        assert (
            problem == f"the GID of {OWN} on rocep1s0f1 moved from 3 to {situation.index} during this start"
        )
        assert rail_problem({**told, "gid_index": situation.index}, situation.device) is None


def test_f12_the_rank_refuses_an_address_that_its_port_lost() -> None:
    told = {"hca": "rocep1s0f1", "netdev": "enp1s0f1np1", "address": OLD, "gid_index": 3}
    device = SITUATIONS["slot 3 was given to another address"].device
    assert rail_problem(told, device) == f"enp1s0f1np1 lost {OLD}; run the fabric play"


@pytest.mark.parametrize(("comm", "told"), [("nccl", [3, 5]), ("roce", [3])])
def test_f03_twins_with_different_indexes_are_each_verified_by_their_own(comm: str, told: list[int]) -> None:
    head = pair.head(3, 5)
    ends = pair_rails([head, pair.worker()], "auto", 2, comm).of_rank(0)
    assert [end["gid_index"] for end in ends] == told
    assert [rail_problem(end, device) for end, device in zip(ends, head, strict=False)] == [None] * len(ends)
