"""Fills what the lab serves: the engine's image, the models, and a release of the product that names both."""

from __future__ import annotations

from . import inventory
from .layout import Lab
from .ownership import waiting_for
from .progress import Progress
from .services import image, models, push, rootfs

REPOSITORY = "tensorfold"
TAG = "lab"


def publish(lab: Lab, progress: Progress) -> None:
    """Build and serve what is missing or has changed; the services must run."""
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
