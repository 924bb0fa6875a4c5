"""Which model files come in, and how they travel from the hub to the head. Pure.

The download runs as the user who owns the cache, by his own `hf` program or by the one in the engine image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from .conditions import Facts, holds
from .hf_cache import folder_name

LISTS = "/run/twinserve/copy"
_PROGRAM = ("/usr/bin/python3", "-P", "-m", "twinserve.weights")
# What the client says when the hub does not answer, or not to the end.
HUB_AWAY = (
    r"Errno (-2|-3|1(01|04|10|11|13))\b|timed out|Name or service not known|Temporary failure in name"
    r"|peer closed connection|Server disconnected"
)
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def list_file(repo: str, revision: str, host: str) -> str:
    """Where the head notes which files `host` shall get."""
    return f"{LISTS}/{host}--{folder_name(repo)}@{revision}"


def secret_file(snapshot: Mapping[str, str], kind: str) -> str:
    """Where a download finds its `kind` of secret, a file of its own: the job removes it when it ends."""
    return f"/run/twinserve.{folder_name(snapshot['repo'])}.{kind}"


def wanted(settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[dict[str, str]]:
    """The pinned snapshots that the engine loads with these settings, as `repo` and `revision`."""
    return [{key: one[key] for key in ("repo", "revision")} for one in selected(settings, release)]


def selected(settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[dict[str, str]]:
    """The same with all that the catalogue says of each, filled in; `disk_gib` is the room it takes."""
    facts = Facts(settings)
    return [
        {
            key: Template(str(value)).substitute(settings)
            for key, value in entry.items()
            if key not in ("when", "checks")
        }
        for entry in release.get("snapshots", [])
        if holds(entry.get("when"), facts)
    ]


def checks(settings: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What each selected snapshot (`repo@revision`) must be beside whole, where the catalogue says it."""
    facts, found = Facts(settings), {}
    for entry in release.get("snapshots", []):
        if entry.get("checks") and holds(entry.get("when"), facts):
            name = Template(f"{entry['repo']}@{entry['revision']}").substitute(settings)
            found[name] = entry["checks"]
    return found


def lacking_words(
    node: Mapping[str, Any], name: str, lacking: Sequence[Mapping[str, str]], is_head: bool
) -> str:
    """What a node that may not be prepared lacks, and what it has instead (M-12)."""
    sentences = []
    for one in lacking:
        wanted_one = f"{one['repo']}@{one['revision']}"
        others = ", ".join((node["hf"]["snapshots"].get(wanted_one) or {}).get("others") or [])
        if not others:
            sentences.append(f"{name} lacks {wanted_one}")
        elif is_head:
            sentences.append(f"{name} has {others} of {one['repo']}, and not {one['revision']}")
        else:
            sentences.append(f"{name} has {others}, head serves {one['revision']} of {one['repo']}")
    return "; ".join(sentences) + "; run with -e prepare=auto"


def missing(
    wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]], prepare: str
) -> list[Mapping[str, Any]]:
    """Snapshots to bring in: those that are not whole; all of them when `prepare` is `always`."""
    if prepare == "always":
        return list(wanted)
    return [one for one in wanted if not found.get(f"{one['repo']}@{one['revision']}", {}).get("complete")]


def download_argv(
    node: Mapping[str, Any],
    snapshot: Mapping[str, str],
    image: str,
    token_file: str = "",
    proxy_file: str = "",
) -> list[str]:
    """`hf download` of one pinned snapshot: the user's own program, else the one in the engine image.

    `token_file` has the hub's token, `proxy_file` lines of `name=value`, if they are given. The container
    reads both itself: what it is given as environment, anybody who may ask docker can read.
    """
    words = ["download", snapshot["repo"], "--revision", snapshot["revision"]]
    program = node["hf"]["program"]
    if program:
        return [program, *words]
    home, user = node["hf"]["home"], node["user"]
    # By its name it can be ended: docker's client does not take the container with it. Without an init, the
    # client in it would not hear a request to end.
    options = ["--rm", "--init", "--name", container_name(snapshot), "--network", "host"]
    options += ["--user", f"{user['uid']}:{user['gid']}", "-v", f"{home}:{home}"]
    for secret in filter(None, (token_file, proxy_file)):
        # With -v, docker would make a folder of a file that is not there.
        options += ["--mount", f"type=bind,source={secret},target={secret},readonly"]
    for name in ("HF_HOME", "HF_ENDPOINT", "HF_TOKEN_PATH", "HOME", *_QUIET):
        options += ["-e", name]  # without a value: docker takes it from the job's own environment
    if not proxy_file:
        return ["docker", "run", *options, "--entrypoint", "hf", image, *words]
    script = f'set -a; . {proxy_file}; exec hf "$@"'
    return ["docker", "run", *options, "--entrypoint", "sh", image, "-c", script, "hf", *words]


def container_name(snapshot: Mapping[str, str]) -> str:
    """What the download's container is called, so that there is one a repository."""
    return f"twinserve-download-{snapshot['repo'].replace('/', '-')}"


def fetch_argv(
    node: Mapping[str, Any],
    snapshot: Mapping[str, str],
    client: Sequence[str],
    settings: Mapping[str, Any],
    silent: Sequence[str] = (),
    secrets: Sequence[str] = (),
) -> list[str]:
    """The watched download: our program, which runs the client's command line as the cache's owner.

    `silent` are snapshots (`repo@revision`) for which the hub does not answer, `secrets` files to be removed.
    """
    place = [*_place(node, snapshot), *(word for one in filter(None, secrets) for word in ("--secret", one))]
    if settings.get("bundle"):
        return [*_PROGRAM, "take", *place, "--bundle", settings["bundle"], "--user", node["user"]["name"]]
    words = [*_PROGRAM, "fetch", *place]
    words += ["--stall", str(settings["download_stall_s"])]
    if node["hf"]["program"]:
        words += ["--user", node["user"]["name"]]
    if f"{snapshot['repo']}@{snapshot['revision']}" in silent:
        words.append("--offline")
    if settings.get("prepare") == "always":
        words.append("--again")
    return [*words, "--", *client]


def verify_argv(node: Mapping[str, Any], snapshot: Mapping[str, str], host: str) -> list[str]:
    """Our program that reads every byte; `host` is what the node is called in messages."""
    return [*_PROGRAM, "verify", *_place(node, snapshot), "--host", host]


def _place(node: Mapping[str, Any], snapshot: Mapping[str, str]) -> list[str]:
    return ["--home", node["hf"]["home"], "--repo", snapshot["repo"], "--revision", snapshot["revision"]]


def source_words(node: Mapping[str, Any], image: str, bundle: str | None) -> str:
    """Where weights come from and which program brings them, in words (M-16)."""
    user, program, home = node["user"]["name"], node["hf"]["program"], node["hf"]["home"]
    if bundle:
        return f"takes weights from {bundle} into {home}"
    return f"downloads with {program or f'the hf program of {image}'} as {user} into {home}"


def download_meanings(node: Mapping[str, Any], snapshot: Mapping[str, str]) -> dict[str, str]:
    """What it means when the client prints this at last: what it got over is no reason."""
    again, home, repo = "run this again: what has arrived is kept", node["hf"]["home"], snapshot["repo"]
    meanings = {
        r"Errno 28|[Nn]o space left": f"the disk of {home} is full: make room there, and {again}",
        r"Access denied|GatedRepo": (
            f"the token's account has not accepted the terms of {repo} (or lacks gated read access)"
        ),
        HUB_AWAY: f"Hugging Face does not answer any more: {again}",
    }
    return {rf"({pattern})[^\n]*\Z": text for pattern, text in meanings.items()}


def download_env(node: Mapping[str, Any], settings: Mapping[str, Any], token_file: str) -> dict[str, str]:
    """Environment of the download. The token goes by file, since a unit's environment is readable by all."""
    env = {"HF_HOME": node["hf"]["home"], "HOME": node["user"]["home"], **_QUIET}
    if settings.get("hf_endpoint"):
        env["HF_ENDPOINT"] = settings["hf_endpoint"]
    if settings.get("hf_token_given"):
        env["HF_TOKEN_PATH"] = token_file
    return env
