"""The kernel's initial file system: loads the disk's drivers, copies the machine's own files, starts systemd.

The distribution's own one finds out what it runs on, with udev; under emulation that takes most of a minute.
"""

from __future__ import annotations

import lzma
import stat
from pathlib import Path

from twinlab.errors import LabError

from .cpio import Entry, archive

# crc32c is asked for by name, so it is in no list of needs; some kernels have it built in.
_DRIVERS = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
_PROGRAM = stat.S_IFREG | 0o755
_NODE = stat.S_IFDIR | 0o755
_INIT = """#!/bin/busybox sh
# Process 1 until the disk is there. /machine is what this machine has of its own, over the shared base.
set -e
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod /modules/$module; done
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 -o noatime /dev/vda /disk
# Once: what is written there later, such as authorized keys, stays through a reboot.
if [ ! -e /disk/.own-files ]; then /bin/busybox cp -a /machine/. /disk/; : >/disk/.own-files; fi
/bin/busybox umount /proc
/bin/busybox mount -o move /dev /disk/dev
exec /bin/busybox switch_root /disk /sbin/init
"""


def build(tree: Path, release: str) -> bytes:
    """The archive for a kernel release whose modules are in `tree`."""
    modules = tree / "lib/modules" / release
    entries = [Entry(name, mode=_NODE) for name in ("dev", "proc", "disk")]
    entries += [Entry("init", _INIT.encode(), _PROGRAM)]
    entries += [Entry("bin/busybox", (tree / "bin/busybox").read_bytes(), _PROGRAM)]
    order = []
    for path in load_order((modules / "modules.dep").read_text(), _DRIVERS):
        name = Path(path).name.removesuffix(".xz")
        order.append(name)
        content = (modules / path).read_bytes()
        entries.append(
            Entry(f"modules/{name}", lzma.decompress(content) if path.endswith(".xz") else content)
        )
    entries.append(Entry("modules/order", " ".join(order).encode()))
    return archive(entries)


def load_order(dependencies: str, wanted: tuple[str, ...]) -> list[str]:
    """Files of the wanted modules and of what they need, each after what it needs, from `modules.dep`.

    A driver that is built into the kernel has no file. Raises LabError when none is found at all.
    """
    needs = {
        path: rest.split() for path, _, rest in (line.partition(":") for line in dependencies.splitlines())
    }
    found: list[str] = []
    for driver in wanted:
        for path in needs:
            if Path(path).name.partition(".")[0] == driver:
                # depmod lists a module's needs with the one to be loaded first at the end.
                found += [one for one in [*reversed(needs[path]), path] if one not in found]
    if not found:
        raise LabError(f"the kernel has no modules {', '.join(wanted)}")
    return found
