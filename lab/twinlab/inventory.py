"""What the controller needs to reach the hosts: ssh configuration, known hosts, and the Ansible inventory."""

from __future__ import annotations

from pathlib import Path

from .base import USER
from .layout import Lab

RELEASE = "lab"  # the entry that the lab adds to the product's catalogue


def hosts_yml(lab: Lab) -> str:
    """The inventory: group `sparks`, in it the pair, named after the lab."""
    hosts = "".join(
        f"          {host.name}:\n"
        f"            ansible_host: {lab.network.address(host.number)}\n"
        f"            rank: {host.number - 1}\n"
        for host in lab.hosts
    )
    return (
        "---\n"
        "sparks:\n"
        "  children:\n"
        f"    {group(lab)}:\n"
        "      hosts:\n"
        f"{hosts}"
        "  vars:\n"
        f"    ansible_user: {USER}\n"
        f"    ansible_ssh_private_key_file: {lab.private_key}\n"
        f"    ansible_ssh_common_args: -F {lab.ssh_config}\n"
    )


def group(lab: Lab) -> str:
    """The name of the pair's group: the lab's, in the letters that Ansible allows, and not that of a host."""
    return f"{lab.name.replace('-', '_')}_pair"


def lab_yml(lab: Lab) -> str:
    """The product's settings for which the lab differs from real machines: sources, sizes, waits."""
    return (
        "---\n"
        f"hf_endpoint: {lab.hub_url}\n"
        f"catalogue_path:\n  - {lab.catalogue}\n"
        f"release: {RELEASE}\n"
        "accept_dflash2_license: true\n"
        "wait_timeout: 120\n"
    )


def release_yml(image: str, digest: str, label: str, architecture: str) -> str:
    """The release that the lab adds to the product's catalogue: v1.1, from the lab's own sources."""
    return (
        "---\n"
        "extends: v1.1\n"
        f"architecture: {architecture}\n"
        f"image_label: {label}\n"
        "defaults:\n"
        f"  image: {image}\n"
        f"  image_digest: {digest}\n"
        "  model_min_free_gib: 1\n"
        "  image_min_free_gib: 1\n"
    )


def write_release(lab: Lab, text: str) -> None:
    """Write it where the product looks."""
    lab.catalogue.mkdir(parents=True, exist_ok=True)
    (lab.catalogue / f"{RELEASE}.yml").write_text(text)


def ssh_config(lab: Lab) -> str:
    """Entries for the hosts' names and addresses; host keys are checked."""
    return "".join(
        f"Host {host.name} {address}\n"
        f"  HostName {address}\n  User {USER}\n  IdentityFile {lab.private_key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {lab.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
        for host in lab.hosts
        for address in [lab.network.address(host.number)]
    )


def known_hosts(lab: Lab) -> str:
    """One line for each host, by address and name."""
    return "".join(
        f"{lab.network.address(host.number)},{host.name} {_host_key(host.layer)}" for host in lab.hosts
    )


def _host_key(layer: Path) -> str:
    kind, key = (layer / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    return f"{kind} {key}\n"


def write(lab: Lab) -> None:
    """Write all of them; the hosts' layers must be there."""
    lab.catalogue.mkdir(parents=True, exist_ok=True)
    settings = lab.inventory.parent / "group_vars" / "sparks" / "lab.yml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    for file, text in (
        (lab.inventory, hosts_yml(lab)),
        (settings, lab_yml(lab)),
        (lab.ssh_config, ssh_config(lab)),
        (lab.known_hosts, known_hosts(lab)),
    ):
        file.write_text(text)
