"""The files that lie over the base in one host: name, keys, addresses, and the lab's shims (hostfiles/)."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path

from .apt_sources import Distribution
from .command import run
from .layout import APT_PORT, PACKAGE, Host, Lab

_USER_ID = 1000
_RUNTIME = "/usr/local/bin/lab-runtime"


def write(lab: Lab, host: Host, distribution: Distribution) -> None:
    """Write the layer of a host that is off.  What has to stay the same (keys, machine id) does."""
    layer = host.layer
    shutil.copytree(PACKAGE / "hostfiles", layer, dirs_exist_ok=True, symlinks=True)
    _identity(layer, host)
    _put(layer / "etc/dgx-release", _dgx_release(host))
    _put(layer / "etc/netplan/01-management.yaml", _management(lab, host), 0o600)
    _put(layer / "etc/apt/sources.list", _apt_sources(lab, distribution))
    _put(
        layer / "etc/docker/daemon.json",
        json.dumps(
            {
                "default-runtime": "lab",
                "insecure-registries": [lab.registry],
                "runtimes": {name: {"path": _RUNTIME} for name in ("lab", "nvidia")},
            },
            indent=2,
        )
        + "\n",
    )
    (layer / "etc/sudoers.d/90-nvidia").chmod(0o440)
    _authorize(lab, layer)


def _put(file: Path, text: str, mode: int = 0o644) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)


def _identity(layer: Path, host: Host) -> None:
    _put(layer / "etc/hostname", f"{host.name}\n")
    _put(layer / "etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {host.name}\n::1 localhost ip6-localhost\n")
    _put(layer / "etc/resolv.conf", "# no name server: the hosts of a lab reach only the lab\n")
    if not (layer / "etc/machine-id").exists():
        _put(layer / "etc/machine-id", f"{uuid.uuid4().hex}\n")
    key = layer / "etc/ssh/ssh_host_ed25519_key"
    if not key.exists():
        key.parent.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"root@{host.name}", "-f", str(key)])


def _dgx_release(host: Host) -> str:
    title = host.hardware.title
    return f'DGX_NAME="{title}"\nDGX_PRETTY_NAME="NVIDIA {title}"\nDGX_SWBUILD_VERSION="7.2.3"\n'


def _management(lab: Lab, host: Host) -> str:
    return (
        f"network:\n  version: 2\n  renderer: networkd\n  ethernets:\n    {host.hardware.management}:\n"
        f"      addresses: [{lab.network.address(host.number)}/24]\n"
    )


def _apt_sources(lab: Lab, distribution: Distribution) -> str:
    """Each archive under its number at the lab's mirror, which knows the real address."""
    mirror = f"http://{lab.network.gateway}:{APT_PORT}"
    return "".join(source.line(f"{mirror}/{number}") for number, source in enumerate(distribution.sources))


def _authorize(lab: Lab, layer: Path) -> None:
    """Let the lab's key in as the user."""
    home = layer / "home/nvidia"
    keys = home / ".ssh/authorized_keys"
    _put(keys, lab.private_key.with_suffix(".pub").read_text(), 0o600)
    keys.parent.chmod(0o700)
    for path in (home, keys.parent, keys):
        os.chown(path, _USER_ID, _USER_ID)
    home.chmod(0o750)


def make_user_key(lab: Lab) -> None:
    """The key pair with which the controller enters all labs of this folder."""
    if not lab.private_key.exists():
        lab.keys.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(lab.private_key)])
