"""The simulated GID table against the kernel's: the changes of the captured story, played to both."""

from __future__ import annotations

import json
from pathlib import Path

from captured import TREES, entries
from twinlab.machine.gids import EMPTY, V2, Gid, update
from vm.capture import STORY
from vm.machines import RAILS, Machine

PORT, DEVICE = RAILS[0], "rocep1s0f0"
MAC = Machine("roce-a", 1, Path(), 0, (0, 0, 0)).mac(1)


def real_table(text: str) -> dict[int, Gid]:
    """The port's own entries in a captured tree: what lies on top of it, a VLAN, is not simulated."""
    base = f"class/infiniband/{DEVICE}/ports/1"
    files = {path: value for path, _, value in entries(text) if path.startswith(base)}
    return {
        slot: Gid(value, files[f"{base}/gid_attrs/types/{slot}"])
        for slot, value in ((slot, files[f"{base}/gids/{slot}"]) for slot in range(1024))
        if value != EMPTY and files[f"{base}/gid_attrs/ndevs/{slot}"] == PORT
    }


def addresses_in(text: str) -> list[str]:
    """All of the port's addresses."""
    (said,) = [json.loads(value) for path, _, value in entries(text) if path == "ip"]
    (link,) = [one for one in said if one["ifname"] == PORT]
    return [info["local"] for info in link["addr_info"]]


def test_the_simulated_table_is_the_real_one_in_every_captured_state() -> None:
    table: dict[int, Gid] = {}
    addresses: list[str] = []
    for state in STORY:
        text = (TREES / f"{state.name}.txt").read_text()
        for words in (command.removeprefix("-6 ").split() for command in state.commands):
            if words[0] != "addr" or words[-1] != PORT:
                continue
            address = words[2].partition("/")[0]
            addresses = [one for one in addresses if one != address]
            addresses += [address] if words[1] == "add" else []
            table = update(table, MAC, addresses, types=(V2,))
        addresses = addresses_in(text)  # the kernel drops IPv6 addresses of a port that is set down
        table = update(table, MAC, addresses, types=(V2,))
        assert table == real_table(text), state.name
