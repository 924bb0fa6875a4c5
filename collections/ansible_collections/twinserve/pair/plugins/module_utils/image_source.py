"""Where the engine's image comes from, and by which name a node has it. Pure.

An image that was pulled is `repository@digest`. One that was streamed from the head, or built, has no digest
of a registry behind it; it gets a name of ours. `localhost/` keeps Docker from ever asking a registry for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .image_recipe import fingerprint, resolved
from .images import matching


def pinned(settings: Mapping[str, Any]) -> str:
    """The image by its digest, as it is pulled."""
    return f"{settings['image']}@{settings['image_digest']}"


def own_name(engine: str, digest: str) -> str:
    """Our name for an image that no registry stands behind."""
    return f"localhost/twinserve/{engine}:{digest.removeprefix('sha256:')[:12]}"


def wanted(settings: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Any]:
    """What is looked for and made: `names` by which a node may have the image, the best first.

    `pinned` is pulled, `streamed` is its name after it came from the head; `built` is the name of what the
    recipe makes. None where `image_source` does not allow it: with `auto` the recipe stands in for the
    release's own image only, never for another that somebody pinned.
    """
    pulls = settings["image_source"] != "build"
    builds = settings["image_source"] == "build" or (
        settings["image_source"] == "auto" and is_own(settings, release)
    )
    recipe = resolved(settings, release) if builds else None
    found = {
        "pinned": pinned(settings) if pulls else None,
        "streamed": own_name(release["engine"], settings["image_digest"]) if pulls else None,
        "patches_label": release.get("patches_label"),
        "recipe": recipe,
        "fingerprint": fingerprint(recipe) if recipe else None,
        "built": own_name(release["engine"], fingerprint(recipe)) if recipe else None,
    }
    return {**found, "names": [found[key] for key in ("pinned", "streamed", "built") if found[key]]}


def names(settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[str]:
    """By which names a node may have the image."""
    return list(wanted(settings, release)["names"])


def travelling_name(reference: str, image: Mapping[str, Any]) -> str:
    """The name under which the head's image goes to a worker: `docker load` keeps a name, never a digest."""
    return str(image["streamed"] if reference == image["pinned"] else reference)


def kernel_label(
    settings: Mapping[str, Any], release: Mapping[str, Any], image: Mapping[str, Any] | None
) -> str:
    """The folder of compiled kernels: a built image's own, else its label, else its digest's beginning."""
    built = wanted(settings, release)["built"]
    if built and (_is(image, built) or settings["image_source"] == "build"):
        return str(built).rpartition(":")[2]
    if is_own(settings, release) and release.get("image_label"):
        return str(release["image_label"])
    return str(settings["image_digest"]).removeprefix("sha256:")[:12]


def steps(
    nodes: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    checking: bool = False,
    elsewhere: bool = False,
) -> list[dict[str, bool]]:
    """What to do on each node now, by rank: `load` and `build` (on the head), `pull`, `stream` (to a worker).

    Asked again after each step. `elsewhere`: its pull failed in a way that another source mends. In check
    mode (`checking`) nothing was done before, and pulls are taken to succeed.
    """
    if settings["prepare"] == "never":
        return [{"load": False, "pull": False, "build": False, "stream": False} for _ in nodes]
    source, head, built = settings["image_source"], nodes[0].get("image"), wanted(settings, release)["built"]
    # What comes from a bundle comes without network: to the head from the tar, to workers from the head.
    bundle = source != "build" and bool(settings.get("bundle"))
    load = bundle and not head
    build = source == "build" and bool(settings["rebuild"] or not head)
    build = build or (source == "auto" and bool(built) and not head and elsewhere)
    planned = []
    for rank, (node, same) in enumerate(zip(nodes, matching(nodes), strict=True)):
        bare = not node.get("image")
        # What the head built is in no registry.
        pull = source != "build" and not bundle and bare and not (rank > 0 and _is(head, built))
        foreseen = checking and (build or (load and bare))
        stream = rank > 0 and (foreseen or (bool(head) and not same)) and not (checking and pull)
        first = rank == 0
        planned.append({"load": load and first, "pull": pull, "build": build and first, "stream": stream})
    return planned


def is_own(settings: Mapping[str, Any], release: Mapping[str, Any]) -> bool:
    """Whether it is the release's image, from wherever: its digest says so."""
    return bool(settings["image_digest"] == release["defaults"]["image_digest"])


def _is(image: Mapping[str, Any] | None, name: str | None) -> bool:
    return image is not None and image["reference"] == name
