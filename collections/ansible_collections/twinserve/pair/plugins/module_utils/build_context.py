"""The folder that an image is built from: sources at their pinned commits, patches, Dockerfile."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .image_recipe import RecipeError, patches_hash, source
from .shell import CommandError, last_line, run

# Under names of ours: git does not fetch into the branch that a new repository begins with.
_ALL = ("+refs/heads/*:refs/twinserve/heads/*", "+refs/tags/*:refs/twinserve/tags/*")
_PATIENCE = 1800.0  # seconds for one clone
_LEFT_OVER = 24 * 3600.0  # seconds after which no build needs its folder any more


def make(
    parent: Path,
    clones: Mapping[str, str],
    files: Mapping[str, str],
    patches: Mapping[str, Any] | None,
    proxies: Mapping[str, str] | None = None,
) -> tuple[Path, str | None]:
    """A new folder below `parent`, and the hash over its patches, None without any.

    Each run has one of its own: two that build at once do not meddle with each other. `proxies` are named as
    in the environment (`https_proxy`).
    Raises CommandError when a source cannot be had, RecipeError when it is not what the recipe pins.
    """
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        for name, pinned in clones.items():
            clone(folder / name, *source(pinned), proxies)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder, _patches(folder, clones["patches"], patches) if patches else None
    except BaseException:  # raised again: half a folder is not left behind, whatever ended it
        shutil.rmtree(folder)
        raise


def _sweep(parent: Path) -> None:
    """Remove what runs left that were broken off."""
    for folder in parent.iterdir():
        if time.time() - folder.stat().st_mtime > _LEFT_OVER:
            shutil.rmtree(folder)


def clone(folder: Path, url: str, commit: str, proxies: Mapping[str, str] | None = None) -> None:
    """That commit's files, without history. A server that gives no single commits is asked for everything."""
    git = ["git", "-C", str(folder)]
    folder.mkdir()
    _run([*git, "init", "--quiet"])
    try:
        _run([*git, "fetch", "--quiet", "--depth", "1", url, commit], proxies)
    except CommandError as refusal:
        try:
            _run([*git, "fetch", "--quiet", url, *_ALL], proxies)
        except CommandError:
            said = last_line(refusal.said)
            raise CommandError(f"{url} cannot be cloned at {commit[:12]}: {said}", refusal.said) from None
    try:
        _run([*git, "checkout", "--quiet", "--detach", commit])
    except CommandError as error:
        raise RecipeError(f"{url} has no commit {commit}") from error
    if (head := _run([*git, "rev-parse", "HEAD"]).strip()) != commit:
        raise RecipeError(f"{url}: HEAD is {head}, not the pinned commit {commit}")
    shutil.rmtree(folder / ".git")


def _patches(folder: Path, pinned: str, wanted: Mapping[str, Any]) -> str:
    """Keep only the patches of what was cloned, and say what hash they have with the extras."""
    cloned, kept = folder / "patches", folder / ".patches"
    # The shell's order in the C locale, which is that of the bytes.
    found = sorted((cloned / wanted["folder"]).glob("*.patch"), key=lambda path: os.fsencode(path.name))
    if not found:
        raise RecipeError(f"{pinned} has no patch in {wanted['folder']}")
    have = patches_hash((path.read_bytes() for path in found), wanted["extras"])
    if wanted.get("hash") and have != wanted["hash"]:
        raise RecipeError(
            f"the patches of {pinned} have the hash {have}, the release says {wanted['hash']}: not built"
        )
    kept.mkdir()
    for path in found:
        path.rename(kept / path.name)
    shutil.rmtree(cloned)
    kept.rename(cloned)
    return have


def _run(argv: list[str], proxies: Mapping[str, str] | None = None) -> str:
    # Nobody is there to be asked for a password. No user's settings take part; the machine's own
    # (/etc/gitconfig) do: they may name its way out.
    env = {
        **os.environ,
        **(proxies or {}),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C",
    }
    return run(argv, timeout=_PATIENCE, env=env)
