"""The simulated engine's image: a base layer that seldom changes and one with the simulator, in seconds."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..apt_sources import Distribution, distribution
from .push import Image
from .rootfs import PACKAGES, UNUSED, architecture, build_rootfs
from .tarball import Layer, make_layer, read_layer

ENGINE = Path(__file__).resolve().parents[2] / "engine"
FILES = ENGINE / "image"
ENTRYPOINT = "/opt/nvidia/nvidia_entrypoint.sh"
PATCHES = "cb7c56f7f921"  # of recipe v1.1
RECIPE = 1  # raise it when the base is built differently
CREATED = "2026-10-01T00:00:00Z"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HF_HOME": "/root/.cache/huggingface",
    "TORCH_EXTENSIONS_DIR": "/cache/torch_extensions",
    "TRITON_CACHE_DIR": "/cache/triton",
}


def build_image(work: Path, patches: str = PATCHES) -> Image:
    """The image, from `work` as far as it is there. The base takes about half a minute, the rest a second.

    Needs root. `patches` is the value of the label tf.patches, which tells releases apart. LabError says what
    could not be had.
    """
    work.mkdir(parents=True, exist_ok=True)
    return Image(layers=(_base(work, distribution()), simulator_layer(work)), config=image_config(patches))


def _base(work: Path, system: Distribution) -> Layer:
    requirements = FILES / "hub-requirements.txt"
    recipe = json.dumps([system.release, PACKAGES, UNUSED, RECIPE, requirements.read_text(), architecture()])
    path = work / f"base-{_short(recipe.encode())}.tar.gz"
    layer = read_layer(path)
    if layer is None:
        tree = _empty(work / "base.new")
        build_rootfs(tree, system, requirements)
        layer = make_layer(tree, path)
        shutil.rmtree(tree)
    _forget(work, "base-", path)
    return layer


def simulator_layer(work: Path) -> Layer:
    """The upper layer: the simulator as it is in the sources now."""
    sources = sorted(path for path in (ENGINE / "tensorfold").rglob("*.py"))
    content = hashlib.sha256()
    for path in [*sources, *(FILES / name for name in ("entrypoint.sh", "tensorfold", "hf"))]:
        content.update(f"{path.relative_to(ENGINE)}\0".encode() + path.read_bytes() + b"\0")
    path = work / f"simulator-{content.hexdigest()[:12]}.tar.gz"
    layer = read_layer(path)
    if layer is None:
        tree = _empty(work / "simulator.new")
        _lay_out(tree, sources)
        layer = make_layer(tree, path)
        shutil.rmtree(tree)
    _forget(work, "simulator-", path)
    return layer


def _lay_out(tree: Path, sources: Iterable[Path]) -> None:
    for path in sources:
        _install(path, tree / "usr/lib/python3/dist-packages" / path.relative_to(ENGINE), 0o644)
    _install(FILES / "entrypoint.sh", tree / ENTRYPOINT.lstrip("/"), 0o755)
    for name in ("tensorfold", "hf"):
        _install(FILES / name, tree / "usr/local/bin" / name, 0o755)


def _install(source: Path, target: Path, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    target.chmod(mode)


def image_config(patches: str) -> dict[str, Any]:
    """The image's configuration: what `docker image inspect` shows."""
    return {
        "architecture": architecture(),
        "os": "linux",
        "created": CREATED,
        "config": {
            "Env": [f"{key}={value}" for key, value in ENVIRONMENT.items()],
            "Entrypoint": [ENTRYPOINT],
            "WorkingDir": "/workspace",
            "Labels": {"tf.patches": patches},
        },
    }


def _empty(tree: Path) -> Path:
    """A fresh directory: one left by a build that was broken off is removed."""
    if tree.exists():
        shutil.rmtree(tree)
    tree.mkdir()
    return tree


def _forget(work: Path, prefix: str, current: Path) -> None:
    for old in work.glob(f"{prefix}*"):
        if old.name.partition(".")[0] != current.name.partition(".")[0]:
            old.unlink()


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
