"""The base of the engine's image: a small system with Python, a shell and the model hub's client."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..apt_sources import Distribution
from ..command import run

PACKAGES = ("base-files", "bash", "busybox-static", "ca-certificates", "libc-bin", "python3")
UNUSED = (
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/zoneinfo",
    "usr/lib/python3.*/test",
    "usr/lib/python3.*/**/__pycache__",
    "var/cache/*",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/log/*",
)
HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
PASSWD = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def build_rootfs(tree: Path, distribution: Distribution, packages: Sequence[str], requirements: Path) -> None:
    """Build the base in an empty directory. Needs root (mmdebstrap, chroot), apt's archives and pip's index.

    LabError or OSError say what could not be had.
    """
    sources = "".join(source.line() for source in distribution.sources)
    include = f"--include={','.join(packages)}"
    base = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--hook-dir={HOOKS}", include]
    run([*base, distribution.release, str(tree), "-"], stdin=sources)
    _finish(tree)
    _install_hub_client(tree, requirements)
    _trim(tree)
    _compile(tree)


def _compile(tree: Path) -> None:
    """Bytecode that needs no look at file times, which are of 1970 in the image; `hf` starts at once."""
    compiling = ["/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
    folders = [f"/{path.relative_to(tree)}" for path in (tree / "usr/lib").glob("python3*")]
    run(["chroot", str(tree), *compiling, *folders, "/opt/hub-client"])


def _finish(tree: Path) -> None:
    """What the packages' scripts would have done: users, and one link for each tool of busybox."""
    (tree / "etc/passwd").write_text(PASSWD)
    (tree / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    for folder in ("workspace", "cache"):
        (tree / folder).mkdir(exist_ok=True)
    tools = subprocess.run([tree / "usr/bin/busybox", "--list"], capture_output=True, text=True, check=True)
    for tool in tools.stdout.split():
        link = tree / "usr/bin" / tool
        if not os.path.lexists(link) and not os.path.lexists(tree / "usr/sbin" / tool):
            link.symlink_to("busybox")


def _install_hub_client(tree: Path, requirements: Path) -> None:
    """Wheels for the Python of the tree, whatever Python runs here; they need not run here."""
    (found,) = (path.name.removeprefix("python") for path in (tree / "usr/bin").glob("python3.[0-9]*"))
    machine = platform.machine()
    tags = [f"--platform={tag}_{machine}" for tag in ("manylinux2014", "manylinux_2_17", "manylinux_2_28")]
    target = tree / "opt/hub-client"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    tags.append("--only-binary=:all:")
    run([*pip, f"--python-version={found}", *tags, f"--target={target}", f"--requirement={requirements}"])
    shutil.rmtree(target / "bin", ignore_errors=True)  # scripts for the Python that runs here
    (tree / "usr/lib/python3/dist-packages/hub-client.pth").write_text("/opt/hub-client\n")


def _trim(tree: Path) -> None:
    for pattern in UNUSED:
        for path in sorted(tree.glob(pattern)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def architecture() -> str:
    """This machine's architecture as Docker calls it."""
    machine = platform.machine()
    return MACHINES.get(machine, machine)
