"""What the controller needs: ssh configuration, known hosts, and the Ansible inventory with its settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .base import USER
from .machines import Machine

# The machines have neither the memory nor the disk of a real one, and serve nothing.
_SETTINGS = """---
release: roce
catalogue_path:
  - {catalogue}
prepare: never
hf_cache: /home/{user}/.cache/huggingface
allow_low_memory: true
accept_dflash2_license: true
"""
_RELEASE = """---
extends: v1.1
architecture: amd64
image_layers_gib: 1
defaults:
  model_min_free_gib: 1
  image_min_free_gib: 1
"""


def write(root: Path, machines: Sequence[Machine]) -> None:
    """Write all of it; the machines' keys must be there."""
    for file, text in (
        (root / "ssh_config", ssh_config(root, machines)),
        (root / "known_hosts", known_hosts(machines)),
        (root / "inventory/hosts.yml", hosts_yml(root, machines)),
        (
            root / "inventory/group_vars/sparks/roce.yml",
            _SETTINGS.format(catalogue=root / "catalogue", user=USER),
        ),
        (root / "catalogue/roce.yml", _RELEASE),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def ssh_config(root: Path, machines: Sequence[Machine]) -> str:
    """A machine's name and address lead to its port on the controller; host keys are checked."""
    return "".join(
        f"Host {machine.name} {machine.address}\n"
        f"  HostName 127.0.0.1\n  Port {machine.ssh_port}\n  HostKeyAlias {machine.name}\n"
        f"  User {USER}\n  IdentityFile {root}/user_key\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {root}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n  ConnectTimeout 60\n"
        for machine in machines
    )


def known_hosts(machines: Sequence[Machine]) -> str:
    """One line a machine."""
    keys = ((machine.name, machine.host_key.with_suffix(".pub").read_text()) for machine in machines)
    return "".join(f"{name} {' '.join(key.split()[:2])}\n" for name, key in keys)


def hosts_yml(root: Path, machines: Sequence[Machine]) -> str:
    """The inventory: group `sparks`, in it the pair. An emulated processor takes its time, so ssh may too."""
    hosts = "".join(
        f"        {machine.name}:\n"
        f"          ansible_host: {machine.address}\n          rank: {machine.number - 1}\n"
        for machine in machines
    )
    return (
        f"---\nsparks:\n  children:\n    roce_pair:\n      hosts:\n{hosts}"
        f"  vars:\n    ansible_user: {USER}\n    ansible_ssh_private_key_file: {root}/user_key\n"
        f"    ansible_ssh_common_args: -F {root}/ssh_config\n    ansible_ssh_timeout: 120\n"
    )
