"""What a run may not change: everything on the hosts that a user would notice."""

from __future__ import annotations

import json
from typing import Any, Protocol


class HasRoot(Protocol):
    """A lab that runs programs as root on its hosts."""

    @property
    def hosts(self) -> tuple[str, str]: ...

    def root(self, host: str, *argv: str) -> str: ...


# Ansible's own scratch folders and sudo's marker of a first use are left out: any login makes them.
_FILES = r"""
find /etc /usr/local /opt /srv /home /root /var/lib/twinserve -xdev \
  -not -path '*/.ansible/*' -not -name .ansible -not -name .sudo_as_admin_successful \
  \( -type d -printf '%p %m %u\n' -o -printf '%p %m %u %s %l %T@\n' \) | sort
"""
_UNITS = """
systemctl list-unit-files --no-legend --no-pager 'twinserve*'
systemctl show -P ActiveEnterTimestamp twinserve
"""
_DOCKER = """
docker ps -a --no-trunc --format '{{.ID}} {{.Image}} {{.Names}}'
docker images --no-trunc -q | sort
"""


def host_state(lab: HasRoot, host: str) -> dict[str, Any]:
    """Files with mode, owner and time; addresses and MTUs; units; containers and images."""
    links = json.loads(lab.root(host, "ip", "-j", "addr"))
    return {
        "files": lab.root(host, "sh", "-c", _FILES).splitlines(),
        "links": {
            link["ifname"]: (link["mtu"], link["operstate"], [one["local"] for one in link["addr_info"]])
            for link in links
            if not link["ifname"].startswith(("veth", "br-"))
        },
        "units": lab.root(host, "sh", "-c", _UNITS),
        "docker": lab.root(host, "sh", "-c", _DOCKER),
    }


def pair_state(lab: HasRoot) -> dict[str, Any]:
    """The state of all hosts of the pair."""
    return {host: host_state(lab, host) for host in lab.hosts}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is different, one line each: readable where two large dictionaries are not."""
    found = []
    for host, parts in before.items():
        for part, was in parts.items():
            now = after[host][part]
            if isinstance(was, list):
                found += [f"{host}: gone or changed: {line}" for line in sorted(set(was) - set(now))]
                found += [f"{host}: new or changed: {line}" for line in sorted(set(now) - set(was))]
            elif was != now:
                found.append(f"{host}: {part}: {was!r} -> {now!r}")
    return found


_LINK_FILES = r"""
for file in /etc/netplan/* /run/netplan/* /etc/NetworkManager/system-connections/* /etc/systemd/network/* \
  /home/*/.ssh/* /root/.ssh/* /var/lib/twinserve/.ssh/* /etc/twinserve/keys/* \
  /etc/twinserve/known_hosts /etc/sudoers.d/twinserve-image /usr/local/sbin/twinserve-image; do
  [ ! -f "$file" ] || echo "$(stat -c '%n %a %U:%G' "$file") $(sha256sum < "$file")"
done
"""
_LINK_KERNEL = r"""
for file in disable_ipv6 accept_ra addr_gen_mode; do grep -H . /proc/sys/net/ipv6/conf/en*/$file; done
ip -4 route show
"""


def link_state(lab: HasRoot) -> dict[str, Any]:
    """The link of each host: files byte for byte, addresses, MTU, flags, routes, profiles in use."""
    return {host: _link_state(lab, host) for host in lab.hosts}


def _link_state(lab: HasRoot, host: str) -> dict[str, Any]:
    links = json.loads(lab.root(host, "ip", "-j", "addr"))
    nmcli = "command -v nmcli > /dev/null && nmcli -t -f DEVICE,STATE,CONNECTION device | sort"
    return {
        "files": lab.root(host, "sh", "-c", _LINK_FILES).splitlines(),
        "kernel": lab.root(host, "sh", "-c", _LINK_KERNEL).splitlines(),
        "links": [
            f"{link['ifname']}: MTU {link['mtu']} {','.join(link['flags'])} {_shown(link['addr_info'])}"
            for link in links
            if not link["ifname"].startswith(("veth", "br-"))
        ],
        "profiles": lab.root(host, "sh", "-c", f"if {nmcli}; then :; fi").splitlines(),
    }


def _shown(addresses: list[dict[str, Any]]) -> str:
    return " ".join(f"{one['local']}/{one['prefixlen']} {one.get('label', '')}".strip() for one in addresses)
