"""`up --cabled`: the hosts as their owner leaves them after NVIDIA's guide for two Sparks.

The rails have addresses and MTU 9000; the user may use Docker and enters the other host by ssh, also by name.
"""

from __future__ import annotations

from .base import USER
from .errors import LabError
from .layout import Host, Lab
from .power import run_in

_NETPLAN = "/etc/netplan/40-rails.yaml"
_PREPARE = f"""set -eu
umask 077
cat > {_NETPLAN}.new
usermod -aG docker {USER}
cd /home/{USER}/.ssh
[ -f id_ed25519 ] || su {USER} -c 'ssh-keygen -q -t ed25519 -N "" -f ~/.ssh/id_ed25519'
if ! cmp -s {_NETPLAN}.new {_NETPLAN}; then
    mv {_NETPLAN}.new {_NETPLAN}
    netplan apply
else
    rm {_NETPLAN}.new
fi
cat /home/{USER}/.ssh/id_ed25519.pub /etc/ssh/ssh_host_ed25519_key.pub
"""
_KNOW = f"""set -eu
umask 077
cd /home/{USER}/.ssh
touch known_hosts authorized_keys
while read -r file line; do
    grep -qxF "$line" "$file" || echo "$line" >> "$file"
done
chown {USER}: known_hosts authorized_keys
"""
_NAMES = """set -eu
while read -r line; do grep -qxF "$line" /etc/hosts || echo "$line" >> /etc/hosts; done
"""


def netplan(lab: Lab, host: Host) -> str:
    """The host's rails."""
    ports = "".join(
        f"    {port.netdev}:\n      mtu: 9000\n      dhcp4: false\n      link-local: []\n"
        f"      addresses: [{lab.network.rail_address(port.rail, host.number)}/24]\n"
        for port in host.hardware.cabled()
    )
    return f"network:\n  version: 2\n  renderer: networkd\n  ethernets:\n{ports}"


def addresses(lab: Lab, host: Host) -> list[str]:
    """Every name and address by which another host may know this one."""
    rails = [lab.network.rail_address(rail, host.number) for rail in host.hardware.rails]
    return [host.name, lab.network.address(host.number), *rails]


def apply(lab: Lab) -> None:
    """Bring both running hosts into that state; a second time changes nothing."""
    user_keys, host_keys = {}, {}
    for host in lab.hosts:
        user_keys[host.name], host_keys[host.name] = _script(host, _PREPARE, netplan(lab, host)).splitlines()
    for host in lab.hosts:
        lines = []
        for other in lab.hosts:
            if other != host:
                lines.append(f"authorized_keys {user_keys[other.name]}")
            key = " ".join(host_keys[other.name].split()[:2])
            lines.append(f"known_hosts {','.join(addresses(lab, other))} {key}")
        _script(host, _KNOW, "\n".join(lines) + "\n")
        _script(
            host,
            _NAMES,
            "".join(
                f"{lab.network.address(other.number)} {other.name}\n" for other in lab.hosts if other != host
            ),
        )


def _script(host: Host, script: str, stdin: str) -> str:
    done = run_in(host, ["sh", "-c", script], stdin)
    if done.returncode != 0:
        raise LabError(
            f"cannot cable {host.name}: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}"
        )
    return done.stdout
