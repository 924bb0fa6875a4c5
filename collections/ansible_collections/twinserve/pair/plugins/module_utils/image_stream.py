"""How an image comes to a node: pulled from a registry, or streamed from the head over a rail. Pure.

The stream is one pipe, `docker save | ssh docker load`: nothing is written in between, since a file of 25 GB
fills a small /tmp. Either end's failure is the job's.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from .image_source import travelling_name
from .ssh_client import CURE, KEYS, REFUSED, not_trusted, ssh_options
from .ssh_wire import CONTROL_USER

# AES-GCM: on CPUs with AES instructions it moves about half as much again as ssh's default cipher.
_CIPHER = "aes128-gcm@openssh.com"
# A registry's, not that of a file.
_DENIED = r"(?<![Pp]ermission )denied|unauthorized|authentication required|403 Forbidden"
_BROKE_OFF = r"closed by remote host|server \S+ not responding|send disconnect|Connection reset by"
# Said after the registry has begun to give out the image: by Docker's own store, by containerd's. Before one
# that did not answer at all they say what was asked.
_HALF_WAY = (
    r"(?:\A|\n)dial tcp |/blobs/sha256:|download failed after|failed to copy|unexpected EOF|short read"
)
_MAY_NOT = r"sudo: .*(password is required|not allowed)"
# The name travels with the image; the program in the middle notes how much went through.
_COUNT = "/usr/bin/python3 -P -m twinserve.piped {size}"
_PIPE = f"set -o pipefail; {{tag}}docker save {{platform}}{{name}} | {_COUNT} | {{ssh}}"


def stream_argv(head: Mapping[str, Any], wanted: Mapping[str, Any], address: str) -> list[str]:
    """The pipe from the head to the worker at `address`; what it runs there is its key's affair."""
    # In check mode the head may be about to build it.
    about_to_come = {"reference": wanted["names"][0], "architecture": head["architecture"], "size": 0}
    image = head["image"] or about_to_come
    name = travelling_name(image["reference"], wanted)
    tag = f"docker tag {shlex.quote(image['reference'])} {shlex.quote(name)} && "
    platform = f"--platform linux/{image['architecture']} " if head["docker"]["one_platform"] else ""
    # Without -T it would complain of no terminal, and that would be the last word of a job that was killed.
    ssh = ["ssh", "-T", *ssh_options(f"{KEYS}/image"), "-c", _CIPHER, "-o", "ServerAliveInterval=30"]
    script = _PIPE.format(
        tag=tag if name != image["reference"] else "",
        platform=platform,
        name=shlex.quote(name),
        size=image["size"],
        ssh=shlex.join([*ssh, f"{CONTROL_USER}@{address}"]),
    )
    return ["bash", "-c", script]


def room_faults(nodes: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Whether head and worker (`nodes`) have room for what Docker writes while an image goes from one to the
    other: its own store saves into a folder first, and every store unpacks a copy of what it is given.
    """
    (head, worker), size = nodes, (nodes[0]["image"] or {"size": 0})["size"]
    saves = 0 if head["docker"]["store"] == "containerd" else size
    faults = [
        _room_fault(head, names[0], saves, "docker save writes it there first"),
        _room_fault(worker, names[1], 2 * size, "docker load keeps what came beside what it makes of it"),
    ]
    return [fault for fault in faults if fault]


def _room_fault(node: Mapping[str, Any], name: str, need: int, why: str) -> str | None:
    store = node["disk"].get("images")
    if not store or need <= store["free_gb"] * 1e9:
        return None
    has, needs = f"{store['free_gb']:.1f} GB free", f"{need / 1e9:.1f} GB needed"
    purpose = "to bring the head's image to the worker"
    return f"{name}: image store {store['path']} has {has}, {needs} {purpose} ({why})"


def stream_meanings(worker: str, address: str, reference: str) -> dict[str, str]:
    """What a stream that failed is known to mean, by what it said."""
    pull = f"pull {reference} there, or export a single-platform image"
    went_away = "docker of {} went away meanwhile (systemctl status docker); run again"
    full = "the image store of {} is full (no space left on device)"
    return {
        r"docker-export-\S*: no space left on device": full.format("the head"),
        REFUSED.pattern: f"{not_trusted(CONTROL_USER, address)}; {CURE}",
        _MAY_NOT: f"{worker} does not let its image key load images; {CURE}",
        r"no space left on device": full.format(worker),
        r"error during connect: Post \S+/images/load": went_away.format(worker),
        r"error during connect: Get \S+/images/get": went_away.format("the head"),
        _BROKE_OFF: f"the connection to {worker} at {address} broke off; run again",
        r"content digest \S+ not found|blobs/sha256/\w+: no such file": (
            f"docker load on {worker} failed (missing blob): {pull}"
        ),
    }


def pull_meanings(node: Mapping[str, Any], image: str, where: str) -> dict[str, str]:
    """What a failed pull means where a build would not be what people want: the registry has the image.

    With a login stored, it refuses that, not the image (C-06).
    """
    registry = registry_of(image)
    logins = (node.get("docker") or {}).get("logins") or []
    text = f"{registry} does not give out {image} without a login; run docker login {registry} there as root"
    if any(registry in login for login in logins):
        text = (
            f'{registry} refused a stored login on {where}; run "docker logout {registry}" there, '
            "or set image_source: build"
        )
    return {_DENIED: text, _HALF_WAY: f"{registry} broke off in the middle; run again"}


def registry_of(image: str) -> str:
    """The registry that an image's repository names; without one it is Docker's own."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return first if named else "docker.io"
