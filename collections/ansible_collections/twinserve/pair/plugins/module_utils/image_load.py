"""The image from a bundle: loaded on the head, and kept only when it is the one that is pinned.

A tar has no digest of a registry. What tells that it holds the pinned image is the release's label; for an
image without one it is the digest, where the store keeps it, or what `docker image inspect` said of the
pulled image on the machine that saved it.

`python3 -m twinserve.image_load EXPECTED` does it on the node.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .image_source import is_own, wanted
from .shell import CommandError, run

_PROGRAM = ("/usr/bin/python3", "-P", "-m", "twinserve.image_load")
_LOADED = re.compile(r"^Loaded image(?: ID)?: (.+)$", re.MULTILINE)
_LOAD_LIMIT = 6 * 3600.0  # seconds, for a slow disk


class Refused(RuntimeError):
    """What was loaded is not what is pinned."""


@dataclass(frozen=True)
class Expected:
    """The bundle's folder, the name to give, what the image must be; `patches` is empty without a label."""

    bundle: str
    name: str
    architecture: str
    label: str
    patches: str
    digest: str

    @property
    def tar(self) -> Path:
        """What `docker save` wrote."""
        return Path(self.bundle, "image.tar")

    @property
    def beside(self) -> Path:
        """`{{json .RepoDigests}} {{json .RootFS.Layers}}` of the image that was pulled by its digest."""
        return Path(self.bundle, "image.txt")


def load_argv(node: Mapping[str, Any], settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[str]:
    """Load the bundle's image and give it our name, if it is the one that is pinned."""
    names = wanted(settings, release)
    label = str(names["patches_label"] or "")
    expected = Expected(
        bundle=str(settings["bundle"]),
        name=str(names["streamed"]),
        architecture=node["architecture"],
        label=label,
        patches=str(release.get("image_label") or "") if label and is_own(settings, release) else "",
        digest=str(settings["image_digest"]),
    )
    return [*_PROGRAM, json.dumps(asdict(expected))]


def load(expected: Expected) -> None:
    """Load, judge and name it. Raises Refused, after what was refused is gone again, or CommandError."""
    before = run(["docker", "images", "--quiet", "--no-trunc"]).split()
    said = run(["docker", "load", "--input", str(expected.tar)], timeout=_LOAD_LIMIT)
    names = _LOADED.findall(said)
    if not names:
        raise Refused(f"{expected.tar} brings no image: {said.strip()}")
    try:
        _judge(expected, names)
    except Refused:
        _remove(names, before)
        raise
    run(["docker", "tag", names[0], expected.name])


def _judge(expected: Expected, names: Sequence[str]) -> None:
    ids = _asked("{{.Id}}", names)
    if len(ids) != 1:
        raise Refused(f"{expected.tar} brings more than one image: {' '.join(names)}")
    found = _asked("{{.Architecture}}", names)[0]
    if found != expected.architecture:
        raise Refused(f"{expected.tar} is an image for {found}, this machine is {expected.architecture}")
    if expected.patches:
        found = _asked(f'{{{{index .Config.Labels "{expected.label}"}}}}', names)[0]
        if found != expected.patches:
            has = f"{expected.tar} has {expected.label} {found}"
            raise Refused(f"{has}, the release has {expected.patches}")
    elif ids[0] != expected.digest:
        _judge_by_what_lies_beside(expected, names)


def _judge_by_what_lies_beside(expected: Expected, names: Sequence[str]) -> None:
    tar, beside, digest = expected.tar, expected.beside, expected.digest
    if not beside.exists():
        raise Refused(f"{beside} is missing, which tells that {tar} holds {digest} (docs/operations.md)")
    digests, _, layers = beside.read_text(encoding="utf-8").strip().partition(" ")
    if not digests:
        raise Refused(f"{beside} is empty")
    if f'@{digest}"' not in digests:
        raise Refused(f"{beside} is of another image than {digest}: {digests}")
    if _asked("{{json .RootFS.Layers}}", names) != [layers]:
        raise Refused(f"{tar} has other layers than {beside} says")


def _asked(what: str, names: Sequence[str]) -> list[str]:
    """What Docker says of these names, each answer once."""
    said = run(["docker", "image", "inspect", "--format", what, *names])
    return sorted(set(said.splitlines())) or [""]


def _remove(names: Sequence[str], before: Sequence[str]) -> None:
    """Only what came just now: an image that was here before is not ours to remove."""
    for name in names:
        if _asked("{{.Id}}", [name])[0] not in before:
            run(["docker", "rmi", name])


def main(argv: Sequence[str]) -> int:
    """Exit code 0 when the image has our name; else the last line says why not."""
    try:
        load(Expected(**json.loads(argv[1])))
    except (Refused, CommandError) as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
