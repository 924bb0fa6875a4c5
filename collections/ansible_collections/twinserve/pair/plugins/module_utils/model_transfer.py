"""How model files travel: from the hub to the head, and from the head over the rails to each worker. Pure.

The download runs as the user who owns the cache, by his own `hf` program or by the one in the engine image;
the copy (see `transfer`) runs on the head with a key that can write below the worker's cache and no more.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from .conditions import Facts, holds
from .jobs import progress_file
from .managed_files import RUNTIME

LISTS = "/run/twinserve/copy"
_QUIET = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def folder_name(repo: str) -> str:
    """A repository's folder in the cache."""
    return "models--" + repo.replace("/", "--")


def list_file(repo: str, host: str) -> str:
    """Where the head notes which files `host` shall get."""
    return f"{LISTS}/{host}--{folder_name(repo)}"


def wanted(settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[dict[str, str]]:
    """The pinned snapshots that the engine loads with these settings, as `repo` and `revision`."""
    return [{key: one[key] for key in ("repo", "revision")} for one in selected(settings, release)]


def selected(settings: Mapping[str, Any], release: Mapping[str, Any]) -> list[dict[str, str]]:
    """The same with all that the catalogue says of each, filled in; `disk_gib` is the room it takes."""
    facts = Facts(settings)
    return [
        {key: Template(str(value)).substitute(settings) for key, value in entry.items() if key != "when"}
        for entry in release.get("snapshots", [])
        if holds(entry.get("when"), facts)
    ]


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
    options = ["--rm", "--network", "host", "--user", f"{user['uid']}:{user['gid']}", "-v", f"{home}:{home}"]
    for secret in filter(None, (token_file, proxy_file)):
        options += ["-v", f"{secret}:{secret}:ro"]
    for name in ("HF_HOME", "HF_ENDPOINT", "HF_TOKEN_PATH", "HOME", *_QUIET):
        options += ["-e", name]  # without a value: docker takes it from the job's own environment
    if not proxy_file:
        return ["docker", "run", *options, "--entrypoint", "hf", image, *words]
    script = f'set -a; . {proxy_file}; exec hf "$@"'
    return ["docker", "run", *options, "--entrypoint", "sh", image, "-c", script, "hf", *words]


def download_env(node: Mapping[str, Any], settings: Mapping[str, Any], token_file: str) -> dict[str, str]:
    """Environment of the download. The token goes by file, since a unit's environment is readable by all."""
    env = {"HF_HOME": node["hf"]["home"], "HOME": node["user"]["home"], **_QUIET}
    if settings.get("hf_endpoint"):
        env["HF_ENDPOINT"] = settings["hf_endpoint"]
    if settings.get("hf_token_given"):
        env["HF_TOKEN_PATH"] = token_file
    return env


def copy_job(
    snapshot: Mapping[str, str],
    nodes: Sequence[Mapping[str, Any]],
    name: str,
    ways: Mapping[str, Any],
    options: Sequence[str],
    runtime: str,
) -> dict[str, Any]:
    """The job on the head that copies one snapshot to the worker `name`, and the plan that it reads.

    `nodes` are the probes of head and worker; `ways` has the `rails` (see `rail_ways`) and the worker's
    address on the `lan`; `runtime` is the version that has the program.
    """
    head, worker = nodes
    job = f"copy {name} {snapshot['repo']} {snapshot['revision'][:12]}"
    listed = list_file(snapshot["repo"], name)
    plan = f"{listed}.json"
    return {
        "name": job,
        "title": f"copy of {snapshot['repo']}",
        "argv": ["/usr/bin/python3", "-P", "-m", "twinserve.transfer", plan],
        "env": {"PYTHONPATH": f"{RUNTIME}/{runtime}"},
        "plan_file": plan,
        "plan": {
            "worker": name,
            "user": worker["user"]["name"],
            "source": f"{head['hf']['home']}/hub",
            "target": "hub/",
            "files": listed,
            "progress": str(progress_file(job)),
            "rails": ways["rails"],
            "lan": {"address": ways["lan"]} if ways["lan"] else None,
            "options": list(options),
        },
    }


def rail_ways(head: Sequence[Mapping[str, Any]], worker: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """How each rail is reached, main first, from the fabric plan's ports of head and worker.

    A connection keeps to its rail by the head's address. Where a second rail shares the subnet of an earlier
    one, the kernel would send it through that one all the same, so it is bound to its port.
    """
    ways: list[dict[str, str]] = []
    seen = set()
    for own, peer in zip(head, worker, strict=True):
        if not own["address"] or not peer["address"]:
            continue  # in check mode a rail may have no address yet
        here = ipaddress.IPv4Interface(own["address"])
        ways.append(
            {
                "address": peer["address"].split("/")[0],
                "source": str(here.ip),
                "netdev": own["netdev"] if here.network in seen else "",
            }
        )
        seen.add(here.network)
    return ways
