"""The rails' cables: which far ends carry a signal, given the ports and the cables that were pulled."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..errors import LabError
from ..hardware import RAILS
from ..layout import Host, Lab
from ..network import far_end, ip, ip_json


def far_ends_up(port_up: Mapping[tuple[int, int], bool], cut: Collection[int]) -> dict[tuple[int, int], bool]:
    """For each (host, rail): whether its port has to see a carrier.

    A port has one while the cable is in and every other port on the cable is up.
    """
    return {
        (host, rail): rail not in cut
        and all(up for (other, its_rail), up in port_up.items() if its_rail == rail and other != host)
        for host, rail in port_up
    }


def pulled(lab: Lab) -> set[int]:
    """The rails whose cable is out."""
    return {int(file.name) for file in lab.cuts.iterdir()} if lab.cuts.is_dir() else set()


def settle(lab: Lab) -> None:
    """Make the far ends agree with the ports and the pulled cables."""
    hosts = {host.number: host for host in lab.hosts}
    port_up: dict[tuple[int, int], bool] = {}
    for host in lab.hosts:
        flags = {link["ifname"]: link["flags"] for link in ip_json("link", netns=host.netns)}
        for port in RAILS:
            port_up[host.number, port.rail or 0] = "UP" in flags.get(port.netdev, [])
    now = {link["ifname"]: "UP" in link["flags"] for link in ip_json("link", netns=lab.cable_netns)}
    for (number, rail), wanted in far_ends_up(port_up, pulled(lab)).items():
        name = far_end(hosts[number], RAILS[rail - 1].mac_index)
        if name in now and now[name] != wanted:
            ip("link", "set", name, "up" if wanted else "down", netns=lab.cable_netns)


def set_cut(lab: Lab, rail: int, cut: bool) -> None:
    """Pull the cable of a rail, or put it back.  Raises LabError for a rail that is not there."""
    if not 1 <= rail <= len(RAILS):
        raise LabError(f"no rail {rail}: 1 to {len(RAILS)}")
    lab.cuts.mkdir(parents=True, exist_ok=True)
    flag = lab.cuts / str(rail)
    if cut:
        flag.touch()
    else:
        flag.unlink(missing_ok=True)
    settle(lab)


def port_summary(host: Host) -> list[str]:
    """For `lab status`: each cabled port with its state and addresses."""
    lines = []
    links = {link["ifname"]: link for link in ip_json("addr", netns=host.netns)}
    for port in RAILS:
        link = links.get(port.netdev, {"flags": [], "addr_info": []})
        state = (
            "carrier" if "LOWER_UP" in link["flags"] else "no carrier" if "UP" in link["flags"] else "down"
        )
        addresses = " ".join(entry["local"] for entry in link["addr_info"] if entry["family"] == "inet")
        lines.append(f"{port.netdev} {state}, mtu {link.get('mtu')}{', ' + addresses if addresses else ''}")
    return lines
