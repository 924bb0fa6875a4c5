"""Links that others own or made: NetworkManager hosts, and rails that were addressed before us."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hosts_state import differences, pair_state
from lab_pair import ROOT, Lab

SETUP = """
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends network-manager
printf '[keyfile]\\nunmanaged-devices=interface-name:enP7s7,interface-name:docker0,interface-name:veth*\\n' \
  > /etc/NetworkManager/conf.d/10-office.conf
systemctl restart NetworkManager
"""


@pytest.fixture
def other(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A pair of its own, since the hosts' network is set up otherwise."""
    lab = Lab("other", ROOT / ".lab/other")
    lab.verb("down", "--wipe")
    lab.verb("up", *request.param)
    yield lab
    lab.verb("down", "--wipe")


def rails(lab: Lab, host: str) -> str:
    """Addresses and MTUs of the rails."""
    ports = ("enp1s0f0np0", "enP2p1s0f0np0")
    return "".join(lab.root(host, "ip", "-br", "-4", "addr", "show", port) for port in ports)


@pytest.mark.slow
@pytest.mark.parametrize("other", [()], indirect=True)
def test_f14_ports_of_networkmanager_stay_with_it_and_keep_their_address_through_a_reboot(other: Lab) -> None:
    for host in other.hosts:
        other.root(host, "sh", "-ec", SETUP)

    other.play("playbooks/fabric.yml").succeeded()

    before = rails(other, other.hosts[1])
    assert "192.168.177.2/24" in before and "192.168.178.2/24" in before
    other.verb("reboot", other.hosts[1])
    assert rails(other, other.hosts[1]) == before
    owner = other.root(other.hosts[1], "nmcli", "-t", "-f", "DEVICE,STATE", "device")
    assert "enp1s0f0np0:connected" in owner
    assert other.play("playbooks/fabric.yml").succeeded().changed == 0


@pytest.mark.slow
@pytest.mark.parametrize("other", [("--cabled",)], indirect=True)
def test_f07_rails_that_others_addressed_are_kept_as_they_are(other: Lab) -> None:
    before = pair_state(other)

    run = other.play("playbooks/fabric.yml").succeeded()

    assert "2 rails: rocep1s0f0,roceP2p1s0f0 <-> rocep1s0f0,roceP2p1s0f0" in run.output
    changed = [
        line for line in differences(before, pair_state(other)) if "netplan" in line or "links" in line
    ]
    assert changed == []
