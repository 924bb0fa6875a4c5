"""Which kept configuration a pair goes back to: pure, from the probes of its nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from .managed_files import ETC

Node = Mapping[str, Any]


def good_id(config: Mapping[str, Any]) -> str:
    """What a configuration of a pair is kept by; with another runtime it is no other to go back to."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:12]


def last_good(nodes: Mapping[str, Node], host: str) -> dict[str, Any]:
    """The newest that all nodes of the pair of `host` have: `id`, `digest` and more, or a `fault`."""
    return _choose(nodes, host, present_too=True)


def good_before(nodes: Mapping[str, Node], host: str) -> dict[str, Any]:
    """The newest that all nodes have and that is not what stands on them now, or a `fault`."""
    return _choose(nodes, host, present_too=False)


def stands(about: Mapping[str, Any], node: Node) -> bool:
    """Whether this configuration is what the node would start its rank from."""
    files = {path: known for path, known in about["files"].items() if path.startswith(ETC)}
    present = node.get("files") or {}
    return node.get("runtime") == about["runtime"] and all(
        present.get(path) == known for path, known in files.items()
    )


def in_words(about: Mapping[str, Any]) -> str:
    """Return what people know a configuration by."""
    return f"release {about['release']}, {about['image']}, kept {about['kept_at']} ({about['id']})"


def _choose(nodes: Mapping[str, Node], host: str, present_too: bool) -> dict[str, Any]:
    own = _kept(nodes[host])
    if not own:
        return {"fault": f"{host} keeps no configuration that passed verification"}
    # All nodes of a pair must choose alike: by what the head keeps.
    head = own[0]["nodes"][0]
    if head not in nodes:
        return {"fault": f"{head} cannot be looked at"}
    for about in _kept(nodes[head]):
        members = about["nodes"]
        if unseen := [name for name in members if name not in nodes]:
            return {"fault": f"{' and '.join(unseen)} cannot be looked at"}
        everywhere = all(about["id"] in [one["id"] for one in _kept(nodes[name])] for name in members)
        present = all(_stands_by_id(about["id"], nodes[name]) for name in members)
        if everywhere and (present_too or not present):
            return {"fault": "", "words": in_words(about), **about}
    other = "" if present_too else " other than the present one"
    return {"fault": f"no configuration{other} that passed verification is kept on all nodes of the pair"}


def _stands_by_id(which: str, node: Node) -> bool:
    return any(one["id"] == which and stands(one, node) for one in _kept(node))


def _kept(node: Node) -> Sequence[dict[str, Any]]:
    return node.get("good") or []
