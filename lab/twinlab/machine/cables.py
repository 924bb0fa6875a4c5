"""The rails' cables: which far ends carry a signal, given the ports and the cables that were pulled."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..errors import LabError
from ..layout import Host, Lab
from ..network import far_end, ip, ip_json
from . import quirks


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
    """Make the far ends agree with the ports and the pulled cables; those of an empty socket are down."""
    now = {link["ifname"]: "UP" in link["flags"] for link in ip_json("link", netns=lab.cable_netns)}
    wanted = {far_end(host, port.mac_index): False for host in lab.hosts for port in host.hardware.ports}
    sockets, port_up, names = quirks.read(lab), {}, {}
    for host in lab.hosts:
        flags = {link["ifname"]: link["flags"] for link in ip_json("link", netns=host.netns)}
        for port in host.hardware.cabled(sockets.socket(host)):
            port_up[host.number, port.rail] = "UP" in flags.get(port.netdev, [])
            names[host.number, port.rail] = far_end(host, port.mac_index)
    wanted |= {names[end]: up for end, up in far_ends_up(port_up, pulled(lab)).items()}
    for name, up in wanted.items():
        if name in now and now[name] != up:
            ip("link", "set", name, "up" if up else "down", netns=lab.cable_netns)


def check_rail(lab: Lab, rail: int) -> int:
    """Return the number of a rail that is there, or raise LabError."""
    if rail not in lab.hardware.rails:
        raise LabError(f"no rail {rail}: 1 to {len(lab.hardware.rails)}")
    return rail


def plug(lab: Lab, host: Host, socket: int) -> None:
    """Put a host's end of the cable into a socket.  Raises LabError for one that has none of its own."""
    if socket not in host.hardware.sockets:
        raise LabError(f"{host.name} has no socket {socket} for the cable: {host.hardware.sockets}")
    quirks.change(lab, lambda now: now.with_socket(host, socket))


def set_cut(lab: Lab, rail: int, cut: bool) -> None:
    """Pull the cable of a rail, or put it back.  Raises LabError for a rail that is not there."""
    check_rail(lab, rail)
    lab.cuts.mkdir(parents=True, exist_ok=True)
    flag = lab.cuts / str(rail)
    if cut:
        flag.touch()
    else:
        flag.unlink(missing_ok=True)
    settle(lab)


def port_summary(lab: Lab, host: Host) -> list[str]:
    """For `lab status`: each cabled port with its state and addresses."""
    lines = []
    links = {link["ifname"]: link for link in ip_json("addr", netns=host.netns)}
    for port in host.hardware.cabled(quirks.read(lab).socket(host)):
        link = links.get(port.netdev, {"flags": [], "addr_info": []})
        state = (
            "carrier" if "LOWER_UP" in link["flags"] else "no carrier" if "UP" in link["flags"] else "down"
        )
        addresses = " ".join(entry["local"] for entry in link["addr_info"] if entry["family"] == "inet")
        lines.append(f"{port.netdev} {state}, mtu {link.get('mtu')}{', ' + addresses if addresses else ''}")
    return lines
