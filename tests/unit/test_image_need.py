"""How much room an image takes on its way: only where one comes or goes, by what Docker keeps it in."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.image_need import needs

DIGEST = f"sha256:{'6' * 64}"
PINNED, BUILT = f"registry.example/engine@{DIGEST}", "localhost/twinserve/tensorfold:b"
SETTINGS: dict[str, Any] = {
    "image": "registry.example/engine",
    "image_digest": DIGEST,
    "image_source": "auto",
    "image_min_free_gib": 35,
    "prepare": "auto",
    "rebuild": False,
    "bundle": None,
}
RELEASE = {
    "engine": "tensorfold",
    "image_layers_gib": 25,
    "defaults": {"image_digest": DIGEST},
    "recipe": {"base": "x"},
}


def node(content: str | None, store: str = "overlay2") -> dict[str, Any]:
    image = {"reference": PINNED, "content": content} if content else None
    return {"image": image, "images": [image] if image else [], "docker": {"store": store}}


def needed(*nodes: dict[str, Any], **raw: Any) -> list[float]:
    return [one["gib"] for one in needs(nodes, SETTINGS | raw, RELEASE)]


@pytest.mark.parametrize(
    ("head", "worker", "raw", "gib"),
    [
        ("a", "a", {}, [0, 0]),
        (None, None, {}, [35, 35]),
        ("a", None, {}, [0, 35]),
        # Replaced: the tar on both, the layers on the worker.
        ("a", "b", {}, [25, 60]),
        ("a", "b", {"prepare": "never"}, [0, 0]),
        ("a", "a", {"image_source": "build", "rebuild": True}, [60, 60]),
        (None, None, {"image_source": "build"}, [60, 60]),
        (None, None, {"bundle": "/mnt"}, [60, 60]),
        ("a", None, {"bundle": "/mnt"}, [25, 60]),
    ],
)
def test_c03_c04_room_is_asked_for_where_an_image_comes_or_goes(
    head: str | None, worker: str | None, raw: dict[str, Any], gib: list[float]
) -> None:
    assert needed(node(head), node(worker), **raw) == gib


def test_c03_c04_containerds_store_keeps_an_image_twice_and_needs_no_tar() -> None:
    both = [node("a", "containerd"), node("b", "containerd")]
    assert needed(*both) == [0, 60]
    assert needed(node(None, "containerd"), node(None)) == [60, 35]
    assert needed(node("a", "containerd"), node("b")) == [0, 60]


def test_c04_the_need_says_what_it_is_for() -> None:
    pulled, twice = needs([node(None), node(None, "containerd")], SETTINGS, RELEASE)
    assert (pulled["why"], pulled["comes"]) == ("35 GiB needed (image_min_free_gib)", True)
    assert twice["why"] == "about 60 GiB needed (containerd store keeps packed and unpacked layers)"
    sent, got = needs([node("a"), node("b")], SETTINGS, RELEASE)
    tar = "docker save and docker load write the whole image beside the layers"
    assert (sent["why"], sent["comes"]) == (f"about 25 GiB needed ({tar})", False)
    assert (got["why"], got["comes"]) == (f"about 60 GiB needed ({tar})", True)
