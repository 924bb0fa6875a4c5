"""Weights over NFS: what is exported and mounted, what is refused, and that they can be read."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils import nfs_probe, shared_weights

ROLE = Path(__file__).resolve().parents[2] / "roles/model"
USER = {"name": "bob", "uid": 1000, "gid": 1001}
HEAD = {"hf": {"hub": "/home/bob/.cache/huggingface/hub"}, "user": USER, "nfs": {"server": True}}
WORKER: dict[str, Any] = {
    "hf": {"home": "/models"},
    "user": USER,
    "nfs": {"client": True},
    "kernel_cache": "/home/bob/.cache/x",
}


ADDRESSES = ["198.51.100.1", "198.51.100.2"]
SOURCE = "198.51.100.1:/home/bob/.cache/huggingface/hub"


def test_x03_the_head_exports_weights_only_read_only_to_rail_addresses_and_as_the_owner() -> None:
    head, worker = shared_weights.plan([HEAD, WORKER], ADDRESSES, "nfs")
    assert head["exports"].splitlines()[1:] == [
        "/home/bob/.cache/huggingface/hub "
        "198.51.100.2(ro,sync,subtree_check,all_squash,anonuid=1000,anongid=1001)"
    ]
    assert (head["mount"], worker["exports"], worker["mount"]) == (None, None, SOURCE)


def test_what_the_role_writes_is_what_the_probe_looks_for() -> None:
    role = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    assert role["__model_mount"] == shared_weights.MOUNT
    assert role["__model_exports"] == shared_weights.EXPORTS
    look = yaml.safe_load((ROLE.parent / "preflight/vars/main.yml").read_text())
    assert look["__preflight_shared"] == shared_weights.HOME
    options = role["__model_mount_options"].split(",")
    assert {"ro", "nfsvers=4.2", "nconnect=8", "hard"} <= set(options)
    boot = {"nofail", "_netdev", "x-systemd.automount", "x-systemd.mount-timeout=30"}
    assert boot <= set(options), "no boot waits for the head"


def test_a_blank_in_a_path_does_not_end_it() -> None:
    head, _ = shared_weights.plan([{**HEAD, "hf": {"hub": "/my models/hub"}}, WORKER], ADDRESSES, "nfs")
    assert head["exports"].splitlines()[1].startswith("/my\\040models/hub 198.51.100.2(")
    assert head["fault"] == ""


@pytest.mark.parametrize("address", ["", "rail 0", "*", "0.0.0.0/0"])
def test_x03_no_client_address_is_refused(address: str) -> None:
    head, _ = shared_weights.plan([HEAD, WORKER], ["198.51.100.1", address], "nfs")
    assert head["fault"].startswith("no client address for the NFS export")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/home 192.0.2.0/24(rw)", True),
        ('"/home/bob/.cache/huggingface" *(ro)', True),
        ("/home/bob/.cache/huggingface/hub *(ro)", True),
        ("/home/bob/.cache/hugging *(ro)", False),
        ("/my\\040things *(ro)", False),
    ],
)
def test_x03_a_wider_export_is_named_with_its_line(line: str, told: bool) -> None:
    node = {**HEAD, "nfs": {"others": [{"file": "/etc/exports", "line": line}]}}
    assert shared_weights.wider(node) == [f"/etc/exports gives away more than the weights: {line}"] * told


def test_what_is_there_is_left_and_what_is_not_wanted_any_more_goes() -> None:
    head, worker = shared_weights.plan([HEAD, WORKER], ADDRESSES, "nfs")
    assert (head["due"], worker["due"]) == (True, True)
    there = [
        {**HEAD, "nfs": {"exports": head["exports"], "source": None}},
        {**WORKER, "nfs": {"exports": None, "source": SOURCE, "at_boot": SOURCE}},
    ]
    assert [one["due"] for one in shared_weights.plan(there, ADDRESSES, "nfs")] == [False, False]
    assert [one["due"] for one in shared_weights.plan(there, ADDRESSES, "copy")] == [True, True]
    assert [one["due"] for one in shared_weights.plan([HEAD, WORKER], ADDRESSES, "copy")] == [False, False]
    waiting = [HEAD, {**WORKER, "nfs": {"exports": None, "source": None, "at_boot": SOURCE}}]
    assert [one["due"] for one in shared_weights.plan(waiting, ADDRESSES, "copy")] == [False, True]


def test_nothing_is_taken_away_under_a_rank_that_reads_from_it() -> None:
    """Back to copies, while the pair serves; and again when it has been restarted from them."""
    head = {**HEAD, "nfs": {"exports": "x", "source": None}}
    worker = {**WORKER, "nfs": {"exports": None, "source": SOURCE, "at_boot": SOURCE}}
    worker["services"] = {"twinserve-rank.service": {"ActiveState": "active"}}
    for source, due in ((shared_weights.HOME, False), ("/models", True)):
        worker["rank_plan"] = {"mounts": [{"source": source}]}
        plans = shared_weights.plan([head, worker], ADDRESSES, "copy")
        assert [one["due"] for one in plans] == [due, due]
        assert [one["held"] for one in plans] == [not due, not due]
    worker["rank_plan"] = {"mounts": [{"source": shared_weights.HOME}]}
    assert [one["due"] for one in shared_weights.plan([head, worker], ADDRESSES, "nfs")] == [True, False]


def test_the_way_is_the_main_rail() -> None:
    plans: list[dict[str, Any]] = [
        {"ports": [{"address": "198.51.100.1/24"}, {"address": "203.0.113.1/24"}]},
        {"ports": []},
    ]
    assert shared_weights.rail_addresses(plans) == ["198.51.100.1", "rail 0"]


@pytest.mark.parametrize(
    ("node", "head", "said"),
    [
        (HEAD, True, []),
        (WORKER, False, []),
        (
            {**HEAD, "nfs": {"server": False}},
            True,
            [
                "has no NFS server: apt install nfs-kernel-server (kernel module nfsd), "
                "or worker_weights: copy"
            ],
        ),
        (
            {**WORKER, "nfs": None},
            False,
            ["cannot mount NFS: apt install nfs-common (kernel module nfsv4), or worker_weights: copy"],
        ),
    ],
)
def test_what_nfs_needs_is_named(node: dict[str, Any], head: bool, said: list[str]) -> None:
    assert shared_weights.faults(node, {}, head) == said


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/var/lib/twinserve/weights", True),
        ("/var/lib/twinserve/weights/../weights/kernels", True),
        ("/var/lib/twinserve/weights-2", False),
        ("/home/bob/.cache/x", False),
    ],
)
def test_c16_compiled_kernels_stay_on_the_local_disk(path: str, refused: bool) -> None:
    node = {**WORKER, "kernel_cache": path}
    assert shared_weights.faults(node, {}, False) == (
        ["kernel_cache is inside the NFS weights mount"] * refused
    )
    env = {"engine_env": {"TRITON_CACHE_DIR": path}}
    assert shared_weights.faults(WORKER, env, False) == (
        ["engine_env TRITON_CACHE_DIR is inside the NFS weights mount"] * refused
    )


def test_m19_what_can_be_listed_and_not_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("model-00001.safetensors", "model-00002.safetensors"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "model-00001.safetensors").chmod(0o400)
    assert shared_weights.unreadable(tmp_path, ["model-00001.safetensors"]) == []
    real = Path.open

    def squashed(path: Path, *args: Any, **more: Any) -> Any:
        """Root is nobody there."""
        if not path.stat().st_mode & 0o004:
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **more)

    monkeypatch.setattr(Path, "open", squashed)
    assert shared_weights.unreadable(tmp_path, ["model-00001.safetensors", "model-00002.safetensors"]) == [
        "worker cannot read model-00001.safetensors over NFS (mode 0400, root_squash): relax the mode or set "
        "all_squash to the owner"
    ]


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
systemd-1 /var/lib/twinserve/weights/hub autofs rw 0 0
198.51.100.1:/my\\040models /var/lib/twinserve/weights/hub nfs4 ro,vers=4.2 0 0
"""


def test_the_mount_is_told_and_not_what_waits_to_mount_it() -> None:
    assert nfs_probe.mounted(MOUNTS, shared_weights.MOUNT) == "198.51.100.1:/my models"
    waiting = "".join(line for line in MOUNTS.splitlines(keepends=True) if "nfs4" not in line)
    assert nfs_probe.mounted(waiting, shared_weights.MOUNT) is None


@pytest.mark.parametrize(
    ("filesystems", "modules", "programs", "server", "client"),
    [
        ("nodev\tnfsd\nnodev\tnfs4\n", "", ["exportfs", "mount.nfs"], True, True),
        ("\text4\n", "kernel/fs/nfsd/nfsd.ko.zst: x\nkernel/fs/nfs/nfsv4.ko: y\n", ["exportfs"], True, False),
        ("\text4\n", "", ["exportfs", "mount.nfs"], False, False),
        ("nodev\tnfs4\n", "", ["mount.nfs"], False, True),
    ],
)
def test_nfs_needs_programs_and_a_kernel_that_knows_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    filesystems: str,
    modules: str,
    programs: list[str],
    server: bool,
    client: bool,
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/filesystems").write_text(filesystems)
    (tmp_path / "proc/self/mounts").write_text(MOUNTS)
    listed = tmp_path / "lib/modules" / platform.release() / "modules.dep"
    listed.parent.mkdir(parents=True)
    listed.write_text(modules)
    (tmp_path / "bin").mkdir()
    for name in programs:
        (tmp_path / "bin" / name).write_text("")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setattr(nfs_probe, "_SBIN", str(tmp_path / "bin"))
    found = nfs_probe.read_nfs(tmp_path)
    assert (found["server"], found["client"], found["exports"]) == (server, client, None)
    assert (found["source"], found["at_boot"], found["waits"]) == ("198.51.100.1:/my models", None, True)
    (tmp_path / "etc/exports.d").mkdir(parents=True)
    (tmp_path / "etc/exports.d/twinserve.exports").write_text("x\n")
    (tmp_path / "etc/exports").write_text("# none\n\n/srv *(ro)\n")
    (tmp_path / "etc/fstab").write_text(
        f"# disks\n\n#old:/a {shared_weights.MOUNT} nfs ro 0 0\nhead:/a\t{shared_weights.MOUNT} nfs ro 0 0\n"
    )
    found = nfs_probe.read_nfs(tmp_path)
    assert (found["exports"], found["at_boot"]) == ("x\n", "head:/a")
    assert found["others"] == [{"file": "/etc/exports", "line": "/srv *(ro)"}]
