"""The root filesystem that all hosts share, read-only: packages, the user, and which units run."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from .apt_sources import Distribution
from .command import run
from .ownership import waiting_for
from .progress import Progress

USER = "nvidia"
PACKAGES = (
    "ca-certificates",
    "curl",
    "dbus",
    "dbus-user-session",
    "docker.io",
    "e2fsprogs",
    "ethtool",
    "iproute2",
    "iptables",
    "iputils-ping",
    "jq",
    "kmod",
    "less",
    "libpam-systemd",
    "locales",
    "netcat-openbsd",
    "netplan.io",
    "openssh-client",
    "openssh-server",
    "pciutils",
    "procps",
    "psmisc",
    "python3",
    "python3-apt",
    "rsync",
    "sudo",
    "systemd",
    "systemd-sysv",
    "udev",
)
# Debian splits these off; without the second, `ping` fails for users.
_MORE = {"debian": ("docker-cli", "linux-sysctl-defaults"), "ubuntu": ()}
_ENABLED = ("systemd-networkd", "ssh", "docker")
# Units that make no sense, or do harm, in a machine without kernel, devices and terminals of its own.
_MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-firstboot.service",
    "systemd-networkd-wait-online.service",
    "systemd-timesyncd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udevd.service",
)
_RECIPE = 1  # raise it when finish() changes


def folder(root: Path, distribution: Distribution) -> Path:
    """Where the base of this release and package list is, or will be."""
    packages = PACKAGES + _MORE[distribution.id]
    recipe = json.dumps([distribution.release, packages, _ENABLED, _MASKED, _RECIPE])
    return root / "base" / f"{distribution.release}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"


def build(root: Path, distribution: Distribution, progress: Progress) -> Path:
    """Build the base unless it is there; a build that was broken off begins again.  Returns its folder."""
    base = folder(root, distribution)
    with waiting_for("the base"):
        if not base.is_dir():
            _build(base, distribution, progress)
    return base


def _build(base: Path, distribution: Distribution, progress: Progress) -> None:
    progress.say(f"building the hosts' base: {distribution.id} {distribution.release}, about a minute")
    unfinished = base.with_suffix(".new")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    sources = "".join(source.line() for source in distribution.sources)
    run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--mode=root",
            "--include=" + ",".join(PACKAGES + _MORE[distribution.id]),
            distribution.release,
            str(unfinished),
            "-",
        ],
        stdin=sources,
    )
    finish(unfinished)
    unfinished.rename(base)


def finish(tree: Path) -> None:
    """What no package does: the user, the units, and no identity, which each host gets of its own."""
    run(["chroot", str(tree), "useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", USER])
    for key in (tree / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (tree / "etc/machine-id").write_text("")
    for unit in _MASKED:
        link = tree / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    run(["chroot", str(tree), "systemctl", "--quiet", "enable", *_ENABLED])
