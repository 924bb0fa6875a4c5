"""Fills what the lab serves: the engine's image, the models, and a release of the product that names both."""

from __future__ import annotations

from . import inventory
from .layout import Lab
from .ownership import waiting_for
from .progress import Progress
from .services import image, models, push

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
    inventory.write_release(lab, f"{lab.registry}/{REPOSITORY}", digest)
    progress.say(f"engine image {REPOSITORY}@{digest[:19]}, models at {lab.hub_url}")
