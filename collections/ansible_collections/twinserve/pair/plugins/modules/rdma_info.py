#!/usr/bin/python
"""Ansible module: the whole RoCE state of a node, in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_info
short_description: Look at the RoCE devices and network ports of a node
description:
  - "Reports RoCE devices (with their port, GID table, error counters and PCIe link), network ports (with the service that
    owns each), the device files that programs need, and which tools are installed."
  - Reads sysfs, and asks C(ip) and, where NetworkManager runs, C(nmcli). It needs no RDMA tools and sends nothing.
  - "Never fails because a part cannot be read: that part is empty, and C(rdma.errors) says why."
  - Works alone, on any Linux machine with RoCE devices, also software devices (C(rdma_rxe)).
author: [The Twinserve developers]
options: {}
notes:
  - Who configures a port is known to root only, since netplan's files are; the rest is for everybody.
  - Python 3.11 or later on the node.
  - >-
    Error counters count from when the driver was loaded, or from a reset that nobody noted. Compare two calls; a value alone
    says little.
  - A device whose link layer is InfiniBand, and one without a network port, is left out.
attributes:
  check_mode: {support: full, description: Only reads.}
  diff_mode: {support: none, description: Changes nothing.}
"""

EXAMPLES = r"""
- name: Look at the fabric
  twinserve.pair.rdma_info:
  become: true
  register: fabric

- name: Show each device with its port and its RoCE v2 GIDs
  ansible.builtin.debug:
    msg: "{{ item.hca }} on {{ item.netdev }}: {{ item.gids | selectattr('type', 'equalto', 'RoCE v2') }}"
  loop: "{{ fabric.rdma.devices }}"
  loop_control:
    label: "{{ item.hca }}"

- name: Refuse a PCIe link that is slower than the cable
  ansible.builtin.assert:
    that: item.pcie.throughput_gbps * 1000 >= item.speed
    fail_msg: "{{ item.hca }}: PCIe x{{ item.pcie.width }} carries {{ item.pcie.throughput_gbps }} Gb/s at most"
  loop: "{{ fabric.rdma.devices | selectattr('pcie') | selectattr('speed') }}"
  loop_control:
    label: "{{ item.hca }}"
"""

RETURN = r"""
rdma:
  description: What was found.
  returned: always
  type: dict
  contains:
    devices:
      description: RoCE devices, in the order of their PCI addresses. What a driver does not tell is null.
      returned: always
      type: list
      elements: dict
      contains:
        hca: {description: Name of the RDMA device., type: str, returned: always}
        netdev: {description: Its network port., type: str, returned: always}
        pci: {description: PCI address; of its port for a software device., type: str, returned: always}
        mac: {description: The port's Ethernet address., type: str, returned: always}
        driver: {description: "Kernel driver, such as C(mlx5_core); null for a software device.", type: str, returned: always}
        firmware: {description: Firmware version., type: str, returned: always}
        model: {description: "The adapter's type, such as C(MT4129).", type: str, returned: always}
        board: {description: The adapter's board identifier (PSID)., type: str, returned: always}
        node_guid: {description: The device's GUID., type: str, returned: always}
        link_layer: {description: "C(Ethernet), or null where the driver does not tell.", type: str, returned: always}
        state: {description: "State of the RDMA port: C(ACTIVE), C(INIT), C(DOWN).", type: str, returned: always}
        phys_state: {description: "Physical state, such as C(LinkUp).", type: str, returned: always}
        rate: {description: Rate as the driver words it; a software device invents one., type: str, returned: always}
        operstate: {description: "State of the network port: C(up), C(down), C(unknown).", type: str, returned: always}
        carrier: {description: Whether the cable has a live other end; null while the port is down., type: bool, returned: always}
        mtu: {description: MTU of the network port in bytes., type: int, returned: always}
        speed: {description: Speed of the network port in Mb/s; null when it is not known., type: int, returned: always}
        addresses: {description: IPv4 addresses with prefix length., type: list, elements: str, returned: always}
        shares_subnet:
          description: >-
            Whether another port of the node has an address in a subnet of this one. The kernel then answers for both through
            one of them, and a ping proves nothing.
          type: bool
          returned: always
        gids:
          description: The filled entries of the GID table.
          type: list
          elements: dict
          returned: always
          contains:
            index: {description: Index in the table. It moves; look it up by value and type., type: int, returned: always}
            gid: {description: The GID in full notation., type: str, returned: always}
            type: {description: "C(RoCE v2) or C(IB/RoCE v1).", type: str, returned: always}
            netdev: {description: "The port that the entry belongs to: the device's own, or a VLAN on it.", type: str, returned: always}
        counters:
          description: "Error counters that the driver has, of C(counters) and C(hw_counters)."
          type: dict
          returned: always
        pcie:
          description: The PCIe link; null for a software device. An entry is null where the kernel does not say.
          type: dict
          returned: always
          contains:
            width: {description: Lanes in use., type: int, returned: always}
            speed_gts: {description: Speed in use in GT/s., type: float, returned: always}
            max_width: {description: Lanes at best., type: int, returned: always}
            max_speed_gts: {description: Speed at best in GT/s., type: float, returned: always}
            throughput_gbps:
              description: The most that width and speed carry in one direction, in Gb/s, before the headers of packets.
              type: float
              returned: always
    ports:
      description: All network ports, by name.
      returned: always
      type: list
      elements: dict
      contains:
        netdev: {description: Name of the port., type: str, returned: always}
        hca: {description: Its RoCE device, or null., type: str, returned: always}
        addresses: {description: IPv4 addresses with prefix length., type: list, elements: str, returned: always}
        unrouted:
          description: Those addresses for which the kernel makes no route of its own (C(noprefixroute)).
          type: list
          elements: str
          returned: always
        leased: {description: Those addresses that somebody hands out (DHCP)., type: list, elements: str, returned: always}
        ipv6: {description: Global IPv6 addresses with prefix length., type: list, elements: str, returned: always}
        master: {description: "The bridge, bond or VRF that it is part of, or null.", type: str, returned: always}
        carries: {description: VLANs and the like on top of it., type: list, elements: str, returned: always}
        mtu: {description: MTU in bytes., type: int, returned: always}
        mac: {description: Ethernet address., type: str, returned: always}
        up: {description: Whether it is set up., type: bool, returned: always}
        carrier: {description: Whether the cable has a live other end., type: bool, returned: always}
        service: {description: "Who configures it: C(NetworkManager), C(networkd), or null.", type: str, returned: always}
        profile:
          description: Name of NetworkManager's profile or of networkd's file that applies, or null.
          type: str
          returned: always
        files: {description: Where that is written., type: list, elements: str, returned: always}
        lasting: {description: Whether it is still there after a reboot; null when that is not known., type: bool, returned: always}
        by_hand: {description: Addresses that no service knows of., type: list, elements: str, returned: always}
        link_local: {description: Whether it is only to give itself an address., type: bool, returned: always}
    lost:
      description: Ports of an mlx5 card without an RDMA device, while the node has others.
      returned: always
      type: list
      elements: dict
      contains:
        netdev: {description: Name of the port., type: str, returned: always}
        pcie_error:
          description: "The last line of this boot's kernel log on a fatal PCIe error or a dead card; null when there is none."
          type: str
          returned: always
    char_devices: {description: Device files for RDMA., type: list, elements: str, returned: always}
    tools: {description: Programs with their paths; null for one that is not installed., type: dict, returned: always}
    errors:
      description: "Why a part could not be read, by part (C(devices), C(devices.NAME), C(ports), C(makers), C(lost), C(char_devices))."
      type: dict
      returned: always
  sample:
    devices:
      - hca: rocep1s0f0
        netdev: enp1s0f0np0
        pci: "0000:01:00.0"
        mac: 4c:bb:47:00:01:10
        driver: mlx5_core
        firmware: 28.45.4028
        model: MT4129
        board: NVD0000000087
        node_guid: 4cbb:4703:0000:0110
        link_layer: Ethernet
        state: ACTIVE
        phys_state: LinkUp
        rate: 200 Gb/sec (4X HDR)
        operstate: up
        carrier: true
        mtu: 9000
        speed: 200000
        addresses: [192.168.177.1/24]
        shares_subnet: false
        gids:
          - {index: 0, gid: "fe80:0000:0000:0000:4ebb:47ff:fe00:0110", type: IB/RoCE v1, netdev: enp1s0f0np0}
          - {index: 3, gid: "0000:0000:0000:0000:0000:ffff:c0a8:b101", type: RoCE v2, netdev: enp1s0f0np0}
        counters: {link_downed: 1, packet_seq_err: 0, symbol_error: 0}
        pcie: {width: 4, speed_gts: 32.0, max_width: 16, max_speed_gts: 32.0, throughput_gbps: 126.0}
    ports:
      - netdev: enp1s0f0np0
        hca: rocep1s0f0
        addresses: [192.168.177.1/24]
        unrouted: []
        leased: []
        ipv6: []
        master: null
        carries: []
        mtu: 9000
        mac: 4c:bb:47:00:01:10
        up: true
        carrier: true
        service: networkd
        profile: 10-netplan-enp1s0f0np0.network
        files: [/etc/netplan/60-twinserve-fabric.yaml]
        lasting: true
        by_hand: []
        link_local: false
    lost: []
    char_devices: [/dev/infiniband/rdma_cm, /dev/infiniband/uverbs0]
    tools: {ethtool: /usr/sbin/ethtool, ib_write_bw: null, ibv_devinfo: null, ip: /usr/sbin/ip}
    errors: {}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.rdma import read_rdma

ARGUMENTS: dict[str, Any] = {}


def main() -> None:
    """Read and report."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    module.exit_json(changed=False, rdma=read_rdma())


if __name__ == "__main__":
    main()
