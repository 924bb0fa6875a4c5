"""What a run will bring to a node, told before it begins."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.model_need import words

SETTINGS = {"model_min_free_gib": 180}
MODEL = "o/model@1"
RELEASE = {"snapshots": [{"repo": "o/model", "revision": "1", "disk_gib": "${model_min_free_gib}"}]}
GB = 10**9


COMES = {"gib": 35.0, "why": "", "comes": True}
SENDS = {"gib": 25.0, "why": "", "comes": False}


def node(state: dict[str, Any]) -> dict[str, Any]:
    whole = {"complete": False, "here": 0, "missing": None, "blobs": {}} | state
    return {
        "hf": {"home": "/home/bob/hf", "snapshots": {MODEL: whole}},
        "disk": {
            "images": {"path": "/var/lib/docker", "free_gb": 500.0},
            "hf_cache": {"path": "/home", "free_gb": 700.5},
        },
    }


@pytest.mark.parametrize(
    ("image", "state", "lists", "said"),
    [
        (None, {"complete": True}, {}, ""),
        (
            None,
            {"blobs": {"a": 60 * GB}},
            {MODEL: {"a": 60 * GB, "b": 116 * GB}},
            "spark-b needs: weights 116.0 GB into /home/bob/hf (700.5 GB free in /home)",
        ),
        # A new revision of the same payloads.
        (None, {"blobs": {"a": 60 * GB}}, {MODEL: {"a": 60 * GB}}, ""),
        (
            COMES,
            {},
            {},
            "spark-b needs: image up to 38 GB; weights up to 193.3 GB into /home/bob/hf "
            "(500.0 GB free in /var/lib/docker, 700.5 GB free in /home)",
        ),
        (
            COMES,
            {"complete": True},
            {},
            "spark-b needs: image up to 38 GB (500.0 GB free in /var/lib/docker)",
        ),
        (
            SENDS,
            {"complete": True},
            {},
            "spark-b needs: room to send the image, up to 27 GB (500.0 GB free in /var/lib/docker)",
        ),
    ],
)
def test_what_has_to_come_is_told(image: Any, state: dict[str, Any], lists: Any, said: str) -> None:
    assert words(node(state), "spark-b", SETTINGS, RELEASE, lists, image) == said
