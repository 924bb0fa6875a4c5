"""The parts of the virtual machines that need no machine."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml
from captured import entries
from twinlab.errors import LabError
from vm import inventory, qemu
from vm.base import Base
from vm.cpio import Entry, archive, with_folders
from vm.initial import load_order
from vm.machines import make_key, own_files, pair
from vm.tree import joined

DEPENDENCIES = """kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz
kernel/fs/jbd2/jbd2.ko.xz:
kernel/lib/crc16.ko.xz:
kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/virtio/virtio.ko.xz:
"""


def test_modules_are_loaded_after_what_they_need_and_once() -> None:
    order = [Path(path).name for path in load_order(DEPENDENCIES, ("virtio_blk", "ext4", "not_there"))]
    assert order == ["virtio.ko.xz", "virtio_blk.ko.xz", "crc16.ko.xz", "jbd2.ko.xz", "ext4.ko.xz"]


def test_kernel_without_the_disks_drivers_is_refused() -> None:
    with pytest.raises(LabError, match="the kernel has no modules virtio_blk, ext4"):
        load_order("", ("virtio_blk", "ext4"))


def test_folders_come_before_what_is_in_them_and_keep_a_mode_of_their_own() -> None:
    home = Entry("home/user", mode=stat.S_IFDIR | 0o750, owner=1000)
    found = with_folders([Entry("home/user/.ssh/keys", b"x"), home])
    assert [entry.path for entry in found] == ["home", "home/user", "home/user/.ssh", "home/user/.ssh/keys"]
    assert found[1] is home


def test_archive_is_what_the_kernel_unpacks() -> None:
    text = archive([Entry("init", b"#!", stat.S_IFREG | 0o755)])
    assert len(text) % 512 == 0
    assert text.startswith(b"070701" + b"00000001" + b"000081ed")
    assert b"init\0" in text
    assert b"#!\0\0" + b"070701" in text
    assert text.rstrip(b"\0").endswith(b"TRAILER!!!")


def test_cables_lead_from_each_end_to_the_other(tmp_path: Path) -> None:
    head, worker = pair(tmp_path, range(1, 9))
    base = Base(tmp_path)
    for port in (1, 2):
        one, two = head.cables[port], worker.cables[port]
        ends = "dgram,id=cable{0},local.type=inet,local.host=127.0.0.1,local.port={1},"
        ends += "remote.type=inet,remote.host=127.0.0.1,remote.port={2}"
        assert ends.format(port, one, two) in qemu.argv(head, worker, base)
        assert ends.format(port, two, one) in qemu.argv(worker, head, base)


def test_machines_are_reached_by_their_own_address_and_key(tmp_path: Path) -> None:
    machines = pair(tmp_path, range(1, 9))
    for machine in machines:
        make_key(machine.host_key)
        paths = [entry.path for entry in own_files(machine, "ssh-ed25519 AAAA user")]
        assert "machine/etc/systemd/network/10-enp1s0f0np0.link" in paths
    inventory.write(tmp_path, machines)
    hosts = yaml.safe_load((tmp_path / "inventory/hosts.yml").read_text())
    assert hosts["sparks"]["children"]["roce_pair"]["hosts"] == {
        "roce-a": {"ansible_host": "198.18.99.11", "rank": 0},
        "roce-b": {"ansible_host": "198.18.99.12", "rank": 1},
    }
    assert (
        "Host roce-b 198.18.99.12\n  HostName 127.0.0.1\n  Port 5\n" in (tmp_path / "ssh_config").read_text()
    )


def test_alike_numbers_in_a_row_become_one_line_and_are_read_back() -> None:
    folder = Path("/sys/class/infiniband/rocep1s0f0/ports/1/gids")
    found = [(folder / str(number), "=a" if number < 2 else "!EINVAL") for number in range(5)]
    lines = list(joined([(folder.parent / "state", "=4: ACTIVE"), *found]))
    head = "class/infiniband/rocep1s0f0/ports/1"
    assert lines == [f"{head}/state=4: ACTIVE", f"{head}/gids/0..1=a", f"{head}/gids/2..4!EINVAL"]
    assert list(entries("\n".join(["# who", *lines])))[-1] == (f"{head}/gids/4", "!", "EINVAL")
