"""What both machines start from: kernel, initial file system, and a disk of the distribution's packages."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from twinlab.apt_sources import Distribution
from twinlab.command import run
from twinlab.progress import Progress

from . import initial

USER = "nvidia"
USER_ID = 1000
HOSTFILES = Path(__file__).resolve().parent / "hostfiles"
# Everything that the playbook would else install: the machines reach no archive.
_PACKAGES = (
    "busybox-static",
    "dbus",
    "docker.io",
    "ibverbs-utils",
    "iproute2",
    "iputils-ping",
    "kmod",
    "netplan.io",
    "nfs-common",
    "nfs-kernel-server",
    "openssh-client",
    "openssh-server",
    "perftest",
    "procps",
    "python3",
    "rdma-core",
    "rsync",
    "sudo",
    "systemd",
    "systemd-resolved",
    "systemd-sysv",
    "udev",
)
_MORE = {
    "debian": ("docker-cli", "linux-image-amd64", "linux-sysctl-defaults"),
    "ubuntu": ("linux-image-generic",),
}
_ENABLED = ("systemd-networkd", "ssh", "docker", "roce-devices")
# What costs time at every boot under emulation, and changes nothing that is looked at here.
_MASKED = (
    "apparmor.service",
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
    "keyboard-setup.service",
    "modprobe@drm.service",
    "nfs-blkmap.service",
    "rdma-ndd.service",
    "systemd-binfmt.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
    "systemd-resolved.service",
    "systemd-timesyncd.service",
)
# Of the kernel's modules: those of parts that a virtual machine has not.
_UNUSED_DRIVERS = ("gpu", "media", "iio", "staging", "mtd", "isdn", "usb", "scsi", "ata", "bluetooth", "hid")
_RECIPE = 1  # raise it when _finish() changes
_DISK = "12G"  # sparse: about half a GiB is written


@dataclass(frozen=True)
class Base:
    """The files in a folder that was built in full."""

    folder: Path

    @property
    def disk(self) -> Path:
        """The root file system, ext4, never written to by a machine."""
        return self.folder / "disk.ext4"

    @property
    def kernel(self) -> Path:
        """The distribution's kernel."""
        return self.folder / "vmlinuz"

    @property
    def initial(self) -> Path:
        """The initial file system without any machine's own files."""
        return self.folder / "initial.cpio"


def of(root: Path, distribution: Distribution) -> Base:
    """Where the base of this recipe is, or will be."""
    files = {
        str(file.relative_to(HOSTFILES)): file.read_text()
        for file in sorted(HOSTFILES.rglob("*"))
        if file.is_file()
    }
    packages = _PACKAGES + _MORE[distribution.id]
    start = Path(initial.__file__).read_text()
    recipe = json.dumps(
        [distribution.release, packages, _ENABLED, _MASKED, _UNUSED_DRIVERS, files, start, _RECIPE]
    )
    name = f"{distribution.release}-{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    return Base(root / "base" / name)


def build(root: Path, distribution: Distribution, progress: Progress) -> Base:
    """Build the base unless it is there; a build that was broken off begins again, older ones go."""
    base = of(root, distribution)
    if base.folder.is_dir():
        return base
    shutil.rmtree(root / "base", ignore_errors=True)
    unfinished = Base(base.folder.with_suffix(".new"))
    unfinished.folder.mkdir(parents=True)
    tree = unfinished.folder / "tree"
    progress.say(
        f"building the machines' base: {distribution.id} {distribution.release}, one to five minutes"
    )
    _install(tree, distribution)
    release = _finish(tree)
    shutil.copy(tree / f"boot/vmlinuz-{release}", unfinished.kernel)
    unfinished.initial.write_bytes(initial.build(tree, release))
    run(["mkfs.ext4", "-q", "-L", "root", "-O", "^has_journal", "-d", str(tree), str(unfinished.disk), _DISK])
    shutil.rmtree(tree)
    unfinished.folder.rename(base.folder)
    progress.say(f"the base is built: {release}")
    return base


def _install(tree: Path, distribution: Distribution) -> None:
    packages = ",".join(_PACKAGES + _MORE[distribution.id])
    sources = "".join(source.line() for source in distribution.sources)
    options = ["--quiet", "--variant=minbase", "--mode=root", f"--include={packages}"]
    # Nobody reads them there, and the kernel's own initial file system is not used.
    options += [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")]
    # In a mount namespace of its own: on a busy machine it has left /proc mounted in the tree.
    alone = ["unshare", "--mount", "--propagation", "private", "env", "INITRD=No"]
    run([*alone, "mmdebstrap", *options, distribution.release, str(tree), "-"], stdin=sources)


def _finish(tree: Path) -> str:
    """What no package does: the user, the units, no identity.  Returns the kernel's release."""
    run(["chroot", str(tree), "useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", USER])
    shutil.copytree(HOSTFILES, tree, dirs_exist_ok=True)
    (tree / "etc/sudoers.d/90-nvidia").chmod(0o440)
    for key in (tree / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    for unit in _MASKED:
        link = tree / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    run(["chroot", str(tree), "systemctl", "--quiet", "enable", *_ENABLED])
    for folder in ("etc", "var"):  # else systemd takes each first boot for one after an upgrade
        (tree / folder / ".updated").touch()
    (release,) = [folder.name for folder in (tree / "lib/modules").iterdir()]
    for part in _UNUSED_DRIVERS:
        shutil.rmtree(tree / "lib/modules" / release / "kernel/drivers" / part, ignore_errors=True)
    for part in ("kernel/sound", "kernel/drivers/net/wireless", "kernel/drivers/net/ethernet"):
        shutil.rmtree(tree / "lib/modules" / release / part, ignore_errors=True)
    run(["chroot", str(tree), "depmod", release])
    return release
