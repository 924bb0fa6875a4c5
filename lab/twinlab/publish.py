"""Fills what the lab serves: the engine's image, the models, and a release of the product that names both."""

from __future__ import annotations

import json

from . import inventory
from .apt_sources import distribution
from .layout import Lab
from .ownership import waiting_for
from .progress import Progress
from .services import image, models, push, rootfs, vllm

REPOSITORY = "tensorfold"
TAG = "lab"


def publish(lab: Lab, progress: Progress) -> None:
    """Build and serve what is missing or has changed; the services must run."""
    if lab.engine == "vllm":
        _publish_vllm(lab, progress)
    else:
        _publish_simulated(lab, progress)


def _publish_simulated(lab: Lab, progress: Progress) -> None:
    work = lab.root / "image"
    if not work.is_dir():
        progress.say("building the simulated engine's image (half a minute)")
    with waiting_for("the image"):
        digest = push.push(image.build_image(work), lab.registry, REPOSITORY, TAG)
    marker = lab.hub / ".complete"
    if not marker.exists():
        models.make_models(lab.hub)
        marker.touch()
    name = f"{lab.registry}/{REPOSITORY}"
    inventory.write_release(lab, inventory.release_yml(name, digest, image.PATCHES, rootfs.architecture()))
    progress.say(f"engine image {REPOSITORY}@{digest[:19]}, models at {lab.hub_url}")


def _publish_vllm(lab: Lab, progress: Progress) -> None:
    with waiting_for("the image"):
        digest = push.push(vllm.image(lab.vllm, distribution()), lab.registry, "vllm", TAG)
    folder = lab.hub / vllm.MODEL.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.unlink(missing_ok=True)
    folder.symlink_to(vllm.model(lab.vllm))
    described = {"sha": vllm.MODEL.revision, "gated": False, "faults": {}}
    (lab.hub / f"{vllm.MODEL.name}.json").write_text(json.dumps(described, indent=2) + "\n")
    inventory.write_settings(lab, "image", inventory.vllm_image_yml(f"{lab.registry}/vllm", digest))
    inventory.write_release(lab, inventory.vllm_release_yml())
    progress.say(f"engine image vllm@{digest[:19]}, {vllm.MODEL.name} at {lab.hub_url}")
