"""The `docker run` command line of a rank: its plan, filled with what this start found out about the link.

The plan (`rank.json`) is the same from start to start; the addresses, devices and GID index (`link.json`) are
resolved anew each time, because GIDs move. Standard library only: the runtime on the nodes uses this too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DIGEST_LABEL = "twinserve.digest"


class LinkError(ValueError):
    """The link description lacks what the plan's placeholders need."""


def placeholders(link: Mapping[str, Any]) -> dict[str, str]:
    """What `{head_address}`, `{address}`, `{netdev}`, `{hcas}` and `{gid_index}` stand for on this rank.

    `{address}` is its own on the main rail, empty when that is not known. `{gid_index}` is empty when the
    rails have different indexes: one value cannot be right for both.
    Raises LinkError when there is no rail or no address of the head.
    """
    rails: Sequence[Mapping[str, Any]] = link.get("rails") or []
    if not rails:
        raise LinkError("the link names no rail for this rank")
    if not link.get("master"):
        raise LinkError("the link does not say the head's address (master)")
    indexes = {rail.get("gid_index") for rail in rails}
    index = indexes.pop() if len(indexes) == 1 else None
    return {
        "{head_address}": str(link["master"]),
        "{address}": str(rails[0].get("address") or ""),
        "{netdev}": str(rails[0]["netdev"]),
        "{hcas}": ",".join(str(rail["hca"]) for rail in rails),
        "{gid_index}": "" if index is None else str(index),
    }


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the known placeholders in `text`; other braces (JSON in an argument) stay as they are."""
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def environment(plan: Mapping[str, Any], link: Mapping[str, Any]) -> dict[str, str]:
    """The container's variables: the plan's, the link's, then the overrides of this start.

    A variable whose value is empty is left out: NCCL reads an empty index as 0, the link-local entry.
    Raises LinkError when the plan needs this rank's own address and the link lacks it.
    """
    values, link_env = placeholders(link), plan.get("link_env") or {}
    if not values["{address}"] and any("{address}" in text for text in link_env.values()):
        # Left out, the engine would take the address of another network, and wait there for ever.
        raise LinkError("the link does not say this rank's own address")
    merged = dict(plan.get("env") or {})
    merged.update({name: fill(text, values) for name, text in link_env.items()})
    merged.update(link.get("env") or {})
    return {name: str(merged[name]) for name in sorted(merged) if merged[name] not in (None, "")}


def docker_argv(plan: Mapping[str, Any], link: Mapping[str, Any]) -> list[str]:
    """The whole command, program first, for `exec`: attached, removed at its end, never restarted by docker.

    Raises LinkError when the link cannot fill the plan.
    """
    values = placeholders(link)
    # An image that is gone is told at once, instead of pulled for an hour by a start that nobody watches.
    argv = ["docker", "run", "--rm", "--pull", "never", "--name", str(plan["container"])]
    argv += ["--label", f"{DIGEST_LABEL}={plan['digest']}"]
    argv += [str(option) for option in plan["docker"]]
    for mount in plan["mounts"]:
        suffix = ":ro" if mount["read_only"] else ""
        argv += ["-v", f"{mount['source']}:{mount['target']}{suffix}"]
    for name, value in environment(plan, link).items():
        argv += ["-e", f"{name}={value}"]
    argv.append(str(plan["image"]))
    argv += [fill(str(word), values) for word in plan["command"]]
    return argv + [fill(str(word), values) for word in link.get("append") or []]
