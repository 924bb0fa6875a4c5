"""One look at a node: each reader on its own, so that one's failure does not hide what the others see."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import (
    accounts,
    authorized_file,
    clock_sync,
    displays,
    firewall_loaded,
    good,
    gpu_holders,
    gpu_process,
    gpus,
    hf_cache,
    host_names,
    images,
    key_files,
    listeners,
    login_user,
    lost_device,
    managed_files,
    meminfo,
    network_owner,
    nfs_probe,
    private_folders,
    rdma,
    run_lock,
    services,
)
from .gateway import probe as gateway_probe
from .shared_weights import HOME
from .shell import CommandError

_TOOLS = (
    *("rsync", "netplan", "nmcli", "ip", "ping", "sudo", "docker", "git", "ib_write_bw"),
    *("nginx", "openssl", "certbot"),
    *("prometheus", "prometheus-alertmanager", "prometheus-node-exporter"),
)
_CONTROL_LINES = Path("/var/lib/twinserve/.ssh/authorized_keys")


@dataclass(frozen=True)
class Wanted:
    """What to look for beside the machine itself."""

    hf_cache: str | None = None
    kernel_cache: str | None = None
    images: tuple[str, ...] = ()
    snapshots: tuple[tuple[str, str], ...] = ()
    copied: bool = False
    names: tuple[str, ...] = ()
    private: dict[str, str] = field(default_factory=dict)


def probe(wanted: Wanted, pool: Executor) -> dict[str, Any]:
    """Run all readers side by side; a reader that fails leaves None and its reason under `errors`."""
    user = login_user.login_user()
    readers: dict[str, Callable[[], Any]] = {
        "hf": lambda: _hf(user, wanted),
        "memory": lambda: asdict(meminfo.read_memory()),
        "devices": rdma.read_devices,
        "infiniband": rdma.device_files,
        "lost_devices": lost_device.read_lost,
        "network": network_owner.read_network,
        "resolved": lambda: host_names.resolve(wanted.names),
        "docker": lambda: asdict(images.read_docker()),
        "nfs": nfs_probe.read_nfs,
        "images": lambda: _images(wanted.images or _planned_image()),
        "gpu": lambda: asdict(gpus.read_gpus()),
        "gpu_process": lambda: gpu_process.problems((_rank_plan() or {}).get("gpu_process")),
        "clock": clock_sync.read,
        "containers": gpu_holders.read_containers,
        "displays": displays.read_outputs,
        "files": managed_files.read_fingerprints,
        "firewall": firewall_loaded.read,
        "services": services.read_services,
        "private": lambda: private_folders.read(wanted.private),
        "listeners": lambda: [asdict(one) for one in listeners.read_listeners()],
        "state": lambda: _json(Path("/run/twinserve/state.json")),
        "rank_plan": _rank_plan,
        "good": good.read_good,
        "gateway": gateway_probe.read,
        # Read with the rest: who changes the node later asks whether another run has done so since.
        "held": _last_run,
        "pair_config": lambda: _json(Path(managed_files.ETC, "pair.json")),
    }
    futures = {name: pool.submit(reader) for name, reader in readers.items()}
    found: dict[str, Any] = _identity(user, wanted)
    errors: dict[str, str] = {}
    for name, future in futures.items():
        try:
            found[name] = future.result()
        except (CommandError, OSError, ValueError, KeyError) as error:
            found[name], errors[name] = None, str(error)
    found["image"] = next(iter(found["images"] or []), None)
    processes = (found["gpu"] or {}).get("processes") or {}
    found["gpu_holders"] = gpu_holders.holders(processes, found.pop("containers") or [])
    found["disk"] = _disk(found, wanted)
    found["errors"] = errors
    return found


def _last_run() -> str:
    """The id of the run that held the node last, empty for none."""
    last = run_lock.read()
    return last.id if last else ""


def _identity(user: login_user.LoginUser, wanted: Wanted) -> dict[str, Any]:
    """What needs no program to be asked."""
    kernels = login_user.expand(wanted.kernel_cache or "~/.cache/twinserve", user)
    return {
        "hostname": platform.node(),
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "user": asdict(user),
        "kernel_cache": kernels,
        "kernel_cache_is_there": Path(kernels).is_dir(),
        "tools": {name: shutil.which(name) is not None for name in _TOOLS}
        | {"twinserve_user": _is_ready("twinserve", Path("/var/lib/twinserve"))}
        | {"cryptography": find_spec("cryptography") is not None},
        "host_key": _host_key(),
        "public_keys": key_files.read(),
        "authorized": {
            "control": _our_keys(_CONTROL_LINES, "twinserve-control"),
            "image": _our_keys(_CONTROL_LINES, "twinserve-image"),
            "copy": _our_keys(Path(user.home, ".ssh/authorized_keys"), "twinserve-copy"),
        },
        "runtime": _runtime_version(),
    }


def _hf(user: login_user.LoginUser, wanted: Wanted) -> dict[str, Any]:
    home = login_user.hf_home(user, wanted.hf_cache)
    if home == HOME:
        nfs_probe.reach()
    states = {
        f"{repo}@{revision}": asdict(hf_cache.snapshot_state(home, repo, revision, wanted.copied))
        for repo, revision in wanted.snapshots
    }
    strange = hf_cache.not_owned(home, [repo for repo, _ in wanted.snapshots], user.uid)
    # Only then it is needed.
    program = login_user.find_hf(user, ask=not all(state["complete"] for state in states.values()))
    hub = str(Path(home, "hub").resolve())
    return {"home": home, "hub": hub, "program": program, "snapshots": states, "strange": strange}


def _rank_plan() -> Any:
    return _json(Path(managed_files.ETC, "rank.json"))


def _planned_image() -> tuple[str, ...]:
    """What the rank on this node is started from, for a look that asks for nothing else."""
    plan = _rank_plan()
    return (str(plan["image"]),) if plan else ()


def _images(references: tuple[str, ...]) -> list[dict[str, Any]]:
    return [image.as_dict() for image in images.read_images(references)]


def _disk(found: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    """Free space where images and weights really go; the device tells whether they share one filesystem."""
    places = {
        "hf_cache": (found.get("hf") or {}).get("home"),
        "images": (found.get("docker") or {}).get("store_path"),
    }
    return {name: _free(Path(path)) for name, path in places.items() if path}


def _free(path: Path) -> dict[str, Any]:
    """Free space of the folder or the nearest existing one above it, in GB (10^9 bytes)."""
    while not path.exists():
        path = path.parent
    usage = shutil.disk_usage(path)
    return {"path": str(path), "device": os.stat(path).st_dev, "free_gb": round(usage.free / 1e9, 1)}  # noqa: PTH116


def _is_ready(user: str, home: Path) -> bool:
    """Whether there is such a user, with a home that is root's: what stands in it is believed by root."""
    return accounts.exists(user) and home.is_dir() and home.stat().st_uid == 0


def _json(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else None


def _host_key(folder: Path = Path("/etc/ssh")) -> str | None:
    """Type and key by which ssh recognises this node, without the comment: the best kind that it has."""
    kinds = (folder / f"ssh_host_{kind}_key.pub" for kind in ("ed25519", "ecdsa", "rsa"))
    found = next((path for path in kinds if path.is_file()), None)
    return " ".join(found.read_text().split()[:2]) if found else None


def _our_keys(path: Path, mark: str) -> list[str]:
    """The lines of ours; others in the login user's file are none of our business."""
    return authorized_file.our_lines(path.read_bytes(), mark) if path.is_file() else []


def _runtime_version() -> str | None:
    current = Path(managed_files.RUNTIME, "current")
    return os.readlink(current) if current.is_symlink() else None  # noqa: PTH115
