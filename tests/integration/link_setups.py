"""What others made of the rails: by netplan, by NetworkManager, by hand; and the way back to nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab_pair import ROOT, Lab

RAILS = ("enp1s0f0np0", "enP2p1s0f0np0")
SPARE = ("enp1s0f1np1", "enP2p1s0f1np1")
_THEIR_FILE = "/etc/netplan/50-theirs.yaml"
_PROFILE = """
nmcli con add type ethernet con-name rail-{port} ifname {port} ipv4.method manual ipv4.addresses {address} \\
    ipv4.never-default yes ipv6.method disabled 802-3-ethernet.mtu {mtu}
nmcli --wait 10 con up rail-{port}
"""
_BARE = """
if command -v nmcli >/dev/null; then
    nmcli -t -f NAME con show | grep -E '^(rail-|twinserve-)' | xargs -r -n1 nmcli con delete
fi
rm -rf /etc/netplan/50-theirs.yaml /etc/netplan/60-twinserve-fabric.yaml /var/lib/twinserve/fabric
netplan generate
networkctl reload
for port in {ports}; do
    ip addr flush dev $port
    ip link set $port down mtu 1500
done
"""
_NETWORK_MANAGER = """
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends network-manager
printf '[main]\\n{main}\\n
[keyfile]\\nunmanaged-devices=interface-name:enP7s7,interface-name:docker0,interface-name:veth*\\n' \\
  > /etc/NetworkManager/conf.d/10-office.conf
systemctl restart NetworkManager
"""
# Contents, so that a file that was written anew and alike is no difference; the rest as the kernel has it.
_FILES = """
cd /
for folder in etc/netplan etc/NetworkManager/system-connections etc/systemd/network run/netplan \
    run/NetworkManager/system-connections run/systemd/network; do
    [ ! -d $folder ] || find $folder -type f
done | sort | while IFS= read -r file; do
    stat -c '%n %a %U' "$file"
    cat "$file"
done
"""


@contextmanager
def own_lab(name: str, *options: str, mark: str = "x") -> Iterator[Lab]:
    """A pair beside that of the story, whose network is set up otherwise; wiped afterwards.

    `mark`, one letter, tells one that lives beside another such pair.
    """
    state = Path(os.environ.get("TWINSERVE_LAB", ROOT / ".lab"))
    lab = Lab(f"{name[:8]}{mark}", state / f"{name[:8]}{mark}")
    lab.verb("down", "--wipe")
    lab.verb("up", *options)
    yield lab
    lab.verb("down", "--wipe")


def said(output: str) -> str:
    """What a run said, in one line, so that a message is found wherever it was wrapped."""
    return " ".join(output.replace('"', " ").split())


def shell(lab: Lab, host: str, script: str) -> str:
    """Run a script as root; its first failing command ends it."""
    return lab.root(host, "sh", "-ec", script)


def make_bare(lab: Lab) -> None:
    """Take every set-up of the rails away, ours too; both hosts keep the ssh between them."""
    for host in lab.hosts:
        shell(lab, host, _BARE.format(ports=" ".join((*RAILS, *SPARE))))


def by_netplan(lab: Lab, host: str, ports: dict[str, tuple[str, int]]) -> None:
    """A file for networkd: port -> address and MTU."""
    lines = "".join(
        f"    {port}: {{mtu: {mtu}, dhcp4: false, link-local: [], addresses: [{address}]}}\n"
        for port, (address, mtu) in ports.items()
    )
    text = f"network:\n  version: 2\n  renderer: networkd\n  ethernets:\n{lines}"
    shell(
        lab, host, f"umask 077; cat > {_THEIR_FILE} <<'END'\n{text}END\nnetplan generate; networkctl reload"
    )
    up(lab, host, *ports)


def by_hand(lab: Lab, host: str, ports: dict[str, tuple[str, int]]) -> None:
    """`ip addr add`, which no reboot survives."""
    for port, (address, mtu) in ports.items():
        shell(lab, host, f"ip addr add {address} dev {port}; ip link set {port} up mtu {mtu}")


def by_profile(lab: Lab, host: str, ports: dict[str, tuple[str, int]]) -> None:
    """A profile of NetworkManager for each port."""
    for port, (address, mtu) in ports.items():
        shell(lab, host, _PROFILE.format(port=port, address=address, mtu=mtu))


def up(lab: Lab, host: str, *ports: str) -> None:
    """Set ports up."""
    shell(lab, host, "; ".join(f"ip link set {port} up" for port in ports))


def install_network_manager(lab: Lab, main: str = "") -> None:
    """NetworkManager takes the rails, as on DGX OS; management stays where it is. `main` is its section."""
    for host in lab.hosts:
        shell(lab, host, _NETWORK_MANAGER.format(main=main))


def network_state(lab: Lab) -> dict[str, Any]:
    """Files of all makers with their contents; addresses, MTUs and state of every port; routes."""
    return {host: {"files": shell(lab, host, _FILES), "links": links(lab, host)} for host in lab.hosts}


def links(lab: Lab, host: str) -> dict[str, tuple[int, str, list[str]]]:
    """MTU, state and IPv4 addresses of each port."""
    listed = json.loads(lab.root(host, "ip", "-j", "-4", "addr"))
    everything = json.loads(lab.root(host, "ip", "-j", "link"))
    found = {
        link["ifname"]: [f"{one['local']}/{one['prefixlen']}" for one in link["addr_info"]] for link in listed
    }
    return {
        link["ifname"]: (link["mtu"], link["operstate"], found.get(link["ifname"], []))
        for link in everything
        if not link["ifname"].startswith(("veth", "br-"))
    }
