"""The runtime that the nodes get: this folder of Python files, packed so that one call brings it over."""

from __future__ import annotations

import base64
import compileall
import hashlib
import io
import shutil
import tempfile
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path

_EPOCH = (1980, 1, 1, 0, 0, 0)


Files = Sequence[tuple[str, bytes]]


def read(folder: Path) -> Files:
    """Name and content of the package `twinserve` that the Python files of a folder make."""
    return [
        (f"twinserve/{path.relative_to(folder)}", path.read_bytes()) for path in sorted(folder.rglob("*.py"))
    ]


def version_of(files: Files) -> str:
    """12 hex digits of the content: the same files give the same."""
    content = hashlib.sha256()
    for name, data in files:
        # Not of the archive: another zlib packs the same files into other bytes.
        content.update(b"%b\0%d\0%b" % (name.encode(), len(data), data))
    return content.hexdigest()[:12]


def pack(files: Files) -> str:
    """Base64 of a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return base64.b64encode(buffer.getvalue()).decode()


def install(archive: str, version: str, root: Path, activate: bool = True) -> None:
    """Unpack beside the versions that are there, then point `current` at it in one step, if wished."""
    target = root / version
    if not target.is_dir():
        if not root.is_dir():
            root.mkdir(parents=True)
            root.chmod(0o755)
        staged = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(archive))) as packed:
            packed.extractall(staged)
        # The control user cannot write compiled files; without them each verb costs a tenth of a second more.
        compileall.compile_dir(staged, quiet=1)
        # Whatever root's umask is: the control user imports this.
        for path in (staged, *staged.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        _put(staged, target)
    if activate:
        point_to(version, root)


def point_to(version: str, root: Path) -> None:
    """Make an installed version the current one, in one step."""
    with tempfile.TemporaryDirectory(prefix=".new-", dir=root) as folder:
        link = Path(folder, "current")
        link.symlink_to(version)
        link.replace(root / "current")


def _put(staged: Path, target: Path) -> None:
    try:
        staged.rename(target)
    except OSError:
        # Another run at the same time may have been quicker, with the same content.
        shutil.rmtree(staged)
        if not target.is_dir():
            raise


def prune(root: Path, keep: int = 3, needed: Collection[str] = ()) -> list[str]:
    """Remove the oldest versions beyond `keep`, never the current one, nor those that are `needed`."""
    spared = {(root / "current").resolve().name, *needed}
    folders = [
        path for path in root.iterdir() if path.is_dir() and not path.is_symlink() and path.name not in spared
    ]
    old = sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)[keep - 1 :]
    for path in old:
        shutil.rmtree(path)
    return [path.name for path in old]
