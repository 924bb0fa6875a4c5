"""How an image comes to a node: pulled from a registry, or streamed from the head over a rail. Pure.

The stream is one pipe, `docker save | ssh docker load`: we write nothing in between, a file of 25 GB fills
a small /tmp. Docker's own store does, at both ends, below its own folder. Either end's failure is the job's.
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
_ABSENT = (
    r"manifest unknown|name unknown|manifest for \S+ not found|failed to resolve reference .*: not found"
)
_UNREACHED = r"dial tcp|TLS handshake timeout|while awaiting headers|while waiting for connection"
_FULL = r"no space left on device"
_BROKE_OFF = r"closed by remote host|server \S+ not responding|send disconnect|Connection reset by"
# Said after the registry has begun to give out the image: by Docker's own store, by containerd's.
_HALF_WAY = r"/blobs/sha256:|download failed after attempts|failed to copy|unexpected EOF|short read"
_MAY_NOT = r"sudo: .*(password is required|not allowed)"
# The name travels with the image; the program in the middle notes how much went through.
_COUNT = "/usr/bin/python3 -P -m twinserve.piped {size}"
_PIPE = f'set -o pipefail; {{tag}}docker save {{platform}}{{name}} | {_COUNT} | {{ssh}}"$rail"'
# The first rail that lets the key in: one that broke has another beside it. Asked for a command, the key only
# says whether it may load.
_RAIL = (
    'for rail in {rails}; do said=$({ssh}"$rail" true 2>&1 </dev/null) && break; rail=; done; '
    'test "$rail" || {{ echo "no rail lets the image key in: ${{said##*$\'\\n\'}}"; exit 1; }}; '
)


def stream_argv(head: Mapping[str, Any], wanted: Mapping[str, Any], rails: Sequence[str]) -> list[str]:
    """The pipe from the head to the worker with these rails; what it runs there is its key's affair."""
    # In check mode the head may be about to build it.
    about_to_come = {"reference": wanted["names"][0], "architecture": head["architecture"], "size": 0}
    image = head["image"] or about_to_come
    name = travelling_name(image["reference"], wanted)
    tag = f"docker tag {shlex.quote(image['reference'])} {shlex.quote(name)} && "
    platform = f"--platform linux/{image['architecture']} " if head["docker"]["one_platform"] else ""
    # Without -T it would complain of no terminal, and that would be the last word of a job that was killed.
    ssh = ["ssh", "-T", *ssh_options(f"{KEYS}/image"), "-c", _CIPHER]
    ssh += ["-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=30"]
    to_worker = f"{shlex.join(ssh)} {CONTROL_USER}@"
    rail = _RAIL.format(rails=shlex.join(rails), ssh=to_worker)
    script = rail + _PIPE.format(
        tag=tag if name != image["reference"] else "",
        platform=platform,
        name=shlex.quote(name),
        size=image["size"],
        ssh=to_worker,
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
        rf"docker-export-\S*: {_FULL}": full.format("the head"),
        REFUSED.pattern: f"{not_trusted(CONTROL_USER, address)}; {CURE}",
        _MAY_NOT: f"{worker} does not let its image key load images; {CURE}",
        _FULL: full.format(worker),
        r"error during connect: Post \S+/images/load": went_away.format(worker),
        r"error during connect: Get \S+/images/get": went_away.format("the head"),
        _BROKE_OFF: f"the connection to {worker} at {address} broke off; run again",
        r"content digest \S+ not found|blobs/sha256/\w+: no such file": (
            f"docker load on {worker} failed (missing blob): {pull}"
        ),
    }


def pull_meanings(node: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> dict[str, str]:
    """What a pull that failed is known to mean."""
    full = {_FULL: f"the image store of {where} is full (no space left on device)"}
    return full | other_ways(node, wanted, where, is_head=False)


def other_ways(
    node: Mapping[str, Any], wanted: Mapping[str, Any], where: str, is_head: bool
) -> dict[str, str]:
    """Those of them after which the image comes from elsewhere: a worker gets the head's, the head builds.

    No build is what people want where the registry has the image, and refuses a stored login (C-06) or broke
    off; after anything else the next run had better try again.
    """
    image, _, digest = str(wanted["pinned"]).partition("@")
    registry = registry_of(image)
    logins = (node.get("docker") or {}).get("logins") or []
    denied = f"{registry} does not give out {image} without a login; run sudo docker login {registry} there"
    if any(registry in login for login in logins):
        denied = f'{registry} refused a stored login on {where}; run "sudo docker logout {registry}" there'
        denied += ", or set image_source: build" if wanted["recipe"] else ""
    is_there = {_DENIED: denied, _HALF_WAY: f"{registry} broke off in the middle; run again"}
    absent = {_ABSENT: f"{registry} has no {image} {digest}", _UNREACHED: f"{registry} cannot be reached"}
    return absent if is_head else is_there | absent


def registry_of(image: str) -> str:
    """The registry that an image's repository names; without one it is Docker's own."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    return first if named else "docker.io"
