"""One look at a node: each reader on its own, so that one's failure does not hide what the others see."""

from __future__ import annotations

import json
import os
import platform
import pwd
import shutil
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import (
    gpus,
    hf_cache,
    images,
    kernel_files,
    key_files,
    listeners,
    login_user,
    managed_files,
    meminfo,
    network_owner,
    services,
    sysfs,
)
from .shell import CommandError

_KEYS = Path("/etc/twinserve/keys")
_TOOLS = ("rsync", "netplan", "nmcli", "ip", "ping", "sudo", "docker", "ib_write_bw")


@dataclass(frozen=True)
class Wanted:
    """What to look for beside the machine itself."""

    hf_cache: str | None = None
    kernel_cache: str | None = None
    image: str | None = None
    snapshots: tuple[tuple[str, str], ...] = ()


def probe(wanted: Wanted, pool: Executor) -> dict[str, Any]:
    """Run all readers side by side; a reader that fails leaves None and its reason under `errors`."""
    user = login_user.login_user()
    readers: dict[str, Callable[[], Any]] = {
        "hf": lambda: _hf(user, wanted),
        "memory": lambda: asdict(meminfo.read_memory()),
        "devices": lambda: [device.as_dict() for device in sysfs.read_devices()],
        "infiniband": rdma_files,
        "network": network_owner.read_network,
        "docker": lambda: asdict(images.read_docker()),
        "image": lambda: _image(wanted.image or _planned_image()),
        "gpu": lambda: asdict(gpus.read_gpus()),
        "files": managed_files.read_fingerprints,
        "services": services.read_services,
        "listeners": lambda: [asdict(one) for one in listeners.read_listeners()],
        "state": lambda: _json(Path("/run/twinserve/state.json")),
        "rank_plan": lambda: _json(Path(managed_files.ETC, "rank.json")),
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
    found["disk"] = _disk(found, wanted)
    found["errors"] = errors
    return found


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
        | {"twinserve_user": _has_user("twinserve")},
        "host_key": _first_words(Path("/etc/ssh/ssh_host_ed25519_key.pub")),
        "public_keys": {name: _first_words(_KEYS / f"{name}.pub") for name in ("control", "copy")},
        "authorized": {
            "control": _our_keys(Path("/var/lib/twinserve/.ssh/authorized_keys")),
            "copy": _our_keys(Path(user.home, ".ssh/authorized_keys")),
        },
        "runtime": _runtime_version(),
    }


def _hf(user: login_user.LoginUser, wanted: Wanted) -> dict[str, Any]:
    home = login_user.hf_home(user, wanted.hf_cache)
    states = {
        f"{repo}@{revision}": asdict(hf_cache.snapshot_state(home, repo, revision))
        for repo, revision in wanted.snapshots
    }
    strange = hf_cache.not_owned(home, [repo for repo, _ in wanted.snapshots], user.uid)
    return {"home": home, "program": login_user.find_hf(user), "snapshots": states, "strange": strange}


def _planned_image() -> str | None:
    """What the rank on this node is started from, for a look that asks for nothing else."""
    plan = _json(Path(managed_files.ETC, "rank.json"))
    return str(plan["image"]) if plan else None


def _image(reference: str | None) -> dict[str, Any] | None:
    image = images.read_image(reference) if reference else None
    return image.as_dict() if image else None


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


def rdma_files(folder: Path = Path("/dev/infiniband")) -> list[str]:
    """Names of the device files by which programs reach the RDMA devices; none without the modules."""
    return [name for name in kernel_files.names(folder) if (folder / name).is_char_device()]


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _json(path: Path) -> Any:
    return json.loads(path.read_text()) if path.is_file() else None


def _first_words(path: Path) -> str | None:
    """Type and key of a public key file, without its comment."""
    return " ".join(path.read_text().split()[:2]) if path.is_file() else None


def _our_keys(path: Path) -> list[str]:
    """The lines of ours; others in the login user's file are none of our business."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return [line for line in lines if line.endswith((" twinserve-control", " twinserve-copy"))]


def _runtime_version() -> str | None:
    current = Path(managed_files.RUNTIME, "current")
    return os.readlink(current) if current.is_symlink() else None  # noqa: PTH115
