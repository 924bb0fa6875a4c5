"""The simulated engine's image: a base layer that seldom changes and one with the simulator, in seconds."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
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
    layers = (base_layer(work, "base", distribution(), PACKAGES), simulator_layer(work))
    return Image(layers=layers, config=image_config(patches))


def base_layer(work: Path, name: str, system: Distribution, packages: Sequence[str]) -> Layer:
    """A small system with these packages and the model hub's client; needs root."""
    requirements = FILES / "hub-requirements.txt"
    recipe = json.dumps([system.release, packages, UNUSED, RECIPE, requirements.read_text(), architecture()])

    def lay_out(tree: Path) -> None:
        build_rootfs(tree, system, packages, requirements)

    return made_layer(work, name, recipe.encode(), lay_out)


def made_layer(work: Path, name: str, recipe: bytes, lay_out: Callable[[Path], None]) -> Layer:
    """The layer that `lay_out` fills for this recipe; from `work` if it is there.  Older ones go."""
    path = work / f"{name}-{hashlib.sha256(recipe).hexdigest()[:12]}.tar.gz"
    layer = read_layer(path)
    if layer is None:
        tree = _empty(work / f"{name}.new")
        lay_out(tree)
        layer = make_layer(tree, path)
        shutil.rmtree(tree)
    for old in work.glob(f"{name}-*"):
        if old.name.partition(".")[0] != path.name.partition(".")[0]:
            old.unlink()
    return layer


def simulator_layer(work: Path) -> Layer:
    """The upper layer: the simulator as it is in the sources now."""
    sources = sorted(path for path in (ENGINE / "tensorfold").rglob("*.py"))
    recipe = b"".join(
        f"{path.relative_to(ENGINE)}\0".encode() + path.read_bytes() + b"\0"
        for path in [*sources, *(FILES / name for name in ("entrypoint.sh", "tensorfold", "hf"))]
    )
    return made_layer(work, "simulator", recipe, lambda tree: _lay_out(tree, sources))


def _lay_out(tree: Path, sources: Iterable[Path]) -> None:
    for path in sources:
        install(path, tree / "usr/lib/python3/dist-packages" / path.relative_to(ENGINE), 0o644)
    install(FILES / "entrypoint.sh", tree / ENTRYPOINT.lstrip("/"), 0o755)
    for name in ("tensorfold", "hf"):
        install(FILES / name, tree / "usr/local/bin" / name, 0o755)


def install(source: Path, target: Path, mode: int) -> None:
    """Put a file into a layer's tree."""
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
