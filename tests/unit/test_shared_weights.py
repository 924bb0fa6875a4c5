"""Weights over NFS: what is exported and mounted, what is refused, and that they can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import shared_weights

USER = {"name": "bob", "uid": 1000, "gid": 1001}
HEAD = {"hf": {"home": "/home/bob/.cache/huggingface"}, "user": USER, "nfs": {"server": True}}
WORKER: dict[str, Any] = {
    "hf": {"home": "/models"},
    "user": USER,
    "nfs": {"client": True},
    "kernel_cache": "/home/bob/.cache/x",
}


def test_the_head_exports_to_rail_addresses_only_read_only_and_as_the_owner() -> None:
    head, worker = shared_weights.plan([HEAD, WORKER], ["198.51.100.1", "198.51.100.2"])
    assert head["exports"].splitlines()[1:] == [
        "/home/bob/.cache/huggingface "
        "198.51.100.2(ro,sync,no_subtree_check,all_squash,anonuid=1000,anongid=1001)"
    ]
    assert head["mount"] is None
    assert worker["exports"] is None
    assert worker["mount"]["src"] == "198.51.100.1:/home/bob/.cache/huggingface"
    assert worker["mount"]["path"] == "/var/lib/twinserve/weights"
    options = worker["mount"]["opts"].split(",")
    assert {"ro", "nfsvers=4.2", "nconnect=8", "hard", "nofail", "_netdev"} <= set(options)


def test_a_blank_in_a_path_does_not_end_it() -> None:
    (head, _) = shared_weights.plan([{**HEAD, "hf": {"home": "/my models"}}, WORKER], ["a", "b"])
    assert head["exports"].splitlines()[1].startswith("/my\\040models b(")


@pytest.mark.parametrize(
    ("node", "head", "said"),
    [
        (HEAD, True, []),
        (WORKER, False, []),
        (
            {**HEAD, "nfs": {"server": False}},
            True,
            [
                "x: has no NFS server: apt install nfs-kernel-server (kernel module nfsd), "
                "or worker_weights: copy"
            ],
        ),
        (
            {**WORKER, "nfs": None},
            False,
            ["x: cannot mount NFS: apt install nfs-common (kernel module nfsv4), or worker_weights: copy"],
        ),
    ],
)
def test_what_nfs_needs_is_named(node: dict[str, Any], head: bool, said: list[str]) -> None:
    assert shared_weights.faults(node, "x", {}, head) == said


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
    assert shared_weights.faults(node, "spark-b", {}, False) == (
        ["spark-b: kernel_cache is inside the NFS weights mount"] * refused
    )
    env = {"engine_env": {"TRITON_CACHE_DIR": path}}
    assert shared_weights.faults(WORKER, "spark-b", env, False) == (
        ["spark-b: engine_env TRITON_CACHE_DIR is inside the NFS weights mount"] * refused
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
