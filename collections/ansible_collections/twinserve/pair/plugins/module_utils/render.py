"""What each rank is told: its plan (`rank.json`), and the pair's for the supervisor (`pair.json`).

Both ranks are rendered from one source: they differ in rank, name/host/port, addresses and devices only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any

from . import image_source
from .api_promise import promised
from .conditions import Facts, amount, choose, holds
from .container_limits import completed
from .low_memory import needed_gib
from .settings_spec import value_text

SCHEMA = 1
# What a running container was made from: a difference here means a restart. How long it gets to stop
# is none of it: that is read when it is stopped.
DIGESTED = (
    "container",
    "content",
    "docker",
    "before",
    "after",
    "mounts",
    "command",
    "env",
    "link_env",
    "link",
)
# What the user says about the link: it decides at each start which rails the ranks get.
_LINK = ("rails", "nccl_ib_hca", "fabric_netdev", "fabric_peer")


def digest(value: Any) -> str:
    """sha256 over the canonical JSON of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def snapshot_path(repository: str, revision: str) -> str:
    """Where a pinned snapshot lies below a Hugging Face cache."""
    return f"hub/models--{repository.replace('/', '--')}/snapshots/{revision}"


def rank_plans(
    settings_by_rank: Sequence[Mapping[str, Any]],
    release: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
    pair: str,
) -> list[dict[str, Any]]:
    """One plan a rank, in rank order.

    `nodes` says what each rank's host has: `hf_cache`, `kernel_cache` (absolute paths), `expected_link`, and
    the `image` there, if it is there yet.
    """
    count = len(settings_by_rank)
    return [
        _rank_plan(rank, count, settings, release, nodes[rank], pair)
        for rank, settings in enumerate(settings_by_rank)
    ]


def _rank_plan(
    rank: int,
    ranks: int,
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    node: Mapping[str, Any],
    pair: str,
) -> dict[str, Any]:
    image = node.get("image") or {"reference": image_source.names(settings, release)[0]}
    # The one GPU is found on the node.
    settings = {**settings, "gpu_uuid": node.get("gpu_uuid") or settings["gpu_uuid"]}
    words, facts = _words(rank, ranks, settings, release, node), Facts(settings)
    mounts, private = _mounts(release["mounts"], facts, words)
    plan: dict[str, Any] = {
        "schema": SCHEMA,
        "pair": pair,
        "rank": rank,
        "ranks": ranks,
        "engine": release["engine"],
        "release": release["release"],
        "container": settings["container_name"],
        "image": image["reference"],
        # What is digested: nodes may have one image by different names, and a name may get another content.
        "content": image.get("content") or image["reference"],
        "stop_timeout": settings["stop_timeout"],
        "log_keep": settings["log_keep"],
        "docker": completed(_argv(release["docker"], facts, words, rank)),
        "before": _commands(release.get("before", []), facts, words),
        "after": _commands(release.get("after", []), facts, words),
        "mounts": mounts,
        "folders": private,
        "command": _argv(release["command"], facts, words, rank) + list(settings["extra_args"]),
        "env": _environment(release, settings, facts, words),
        "link_env": dict(release["link_env"]),
        "link": {name: settings[name] for name in _LINK if settings.get(name)},
        "ports": listening_ports(rank, settings),
        "clock": _clock(settings),
        "gpu_process": _gpu_process(rank, settings, release, facts, words),
        "load_guard": settings["load_guard"],
        "needed_gib": needed_gib(settings, release),
        "expected_link": list(node.get("expected_link") or []),
        "dropped_rails": list(node.get("dropped_rails") or []),
    }
    plan["digest"] = digest({key: plan[key] for key in DIGESTED})
    return plan


def _clock(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the agent reads back of the limit that `before` sets."""
    limit = settings["gpu_clock_max"]
    return {"max": limit, "gpu": settings["gpu_uuid"]} if limit else None


def _gpu_process(
    rank: int,
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    facts: Facts,
    words: Mapping[str, str],
) -> dict[str, Any] | None:
    """What the agent looks for on the GPU while the rank serves."""
    rule = release.get("gpu_process")
    if not rule:
        return None
    weights = release["memory"]["estimate_gib"]["worker" if rank else "head"]
    below = choose(rule["tolerance_gib"], facts)
    return {
        "name": _fill(rule["name"], words),
        "least_gib": None if below is None else weights - below,
        "gpu": settings["gpu_uuid"],
    }


def _mounts(
    parts: Sequence[Mapping[str, Any]], facts: Facts, words: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The container's mounts, and which of their folders are made for the login user alone."""
    chosen = [part for part in parts if holds(part.get("when"), facts)]
    mounts = [
        {"source": _fill(part["source"], words), "target": part["target"], "read_only": part["read_only"]}
        for part in chosen
    ]
    private = [mount["source"] for mount, part in zip(mounts, chosen, strict=True) if part.get("private")]
    return mounts, private


def listening_ports(rank: int, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Ports that this rank will listen on, by the setting that chose each: on the head only."""
    if rank > 0:
        return []
    host, port, setting = engine_listens(settings)
    effective = {**settings, **settings["effective"]}
    return [
        {"setting": setting, "host": host, "port": port},
        {"setting": "master_port", "host": "", "port": effective["master_port"]},
    ]


def engine_listens(settings: Mapping[str, Any]) -> tuple[str, int, str]:
    """Address and port of the engine's own API, and the setting of the port."""
    if settings["expose"] == "gateway":
        return "127.0.0.1", settings["engine_port"], "engine_port"
    return settings["api_host"], settings["api_port"], "api_port"


def _words(
    rank: int, ranks: int, settings: Mapping[str, Any], release: Mapping[str, Any], node: Mapping[str, Any]
) -> dict[str, str]:
    words = {name: value_text(value) for name, value in settings.items()}
    words |= {name: _series(part, settings) for name, part in release.get("series", {}).items()}
    label = image_source.kernel_label(settings, release, node.get("image"))
    host, port, _ = engine_listens(settings)
    words |= {"rank": str(rank), "ranks": str(ranks), "image_label": label}
    words |= {"engine_host": host, "engine_port": str(port)}
    words |= {"hf_cache": str(node["hf_cache"]), "kernel_cache": str(node["kernel_cache"])}
    for kind in ("model", "drafter"):
        if settings.get(f"{kind}_id"):
            words[f"{kind}_snapshot"] = snapshot_path(settings[f"{kind}_id"], settings[f"{kind}_revision"])
    return words


def _series(part: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Multiples of `step` up to `most` times it, doubled each time, with commas between."""
    step, most = (int(amount(part[key], Facts(settings))) for key in ("step", "most"))
    doubled = [step << power for power in range(most.bit_length()) if 1 << power < most]
    return ",".join(str(number) for number in [*doubled, step * most])


def _fill(text: str, words: Mapping[str, str]) -> str:
    return Template(text).substitute(words)


def _argv(parts: Sequence[Mapping[str, Any]], facts: Facts, words: Mapping[str, str], rank: int) -> list[str]:
    argv = []
    for part in parts:
        if holds(part.get("when"), facts) and part.get("on", "all") in ("all", "workers" if rank else "head"):
            argv += [_fill(str(word), words) for word in part["words"]]
    if "" in argv:
        raise ValueError(f"an argument would be empty: {argv}")
    return argv


def _commands(parts: Sequence[Mapping[str, Any]], facts: Facts, words: Mapping[str, str]) -> list[list[str]]:
    """Programs for the node itself, each a command line of its own."""
    return [_argv([part], facts, words, 0) for part in parts if holds(part.get("when"), facts)]


def _environment(
    release: Mapping[str, Any], settings: Mapping[str, Any], facts: Facts, words: Mapping[str, str]
) -> dict[str, str]:
    env = {name: _fill(str(choose(value, facts) or ""), words) for name, value in release["env"].items()}
    env |= {name: value_text(choose(value, facts)) for name, value in release.get("tuning", {}).items()}
    env |= settings["engine_env"]
    return {name: env[name] for name in sorted(env) if env[name] != ""}


def pair_config(
    plans: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    release: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The supervisor's configuration, from the plans and the head's settings."""
    effective = {**settings, **settings["effective"]}
    host, port, _ = engine_listens(settings)
    return {
        "schema": SCHEMA,
        "pair": plans[0]["pair"],
        "engine": release["engine"],
        "release": release["release"],
        "served_name": effective["served_name"],
        "ranks": [_rank_entry(plan["rank"], node) for plan, node in zip(plans, nodes, strict=True)],
        "rails": settings["rails"],
        "comm": settings.get("comm", "nccl"),
        "max_rails": release["max_rails"],
        "api": {
            "host": probe_host(host),
            "port": port,
            "bind": host,
            "gateway": settings["expose"] == "gateway",
        },
        "start_order": _start_order(len(plans), release["start_order"]),
        "stop_order": release["stop_order"],
        **{
            name: settings[name]
            for name in (
                "wait_timeout",
                "stop_timeout",
                "drain_timeout",
                "restart_limit",
                "canary_interval",
                "hang_limit",
            )
        },
        "restart_window": release["restart_window"],
        "patterns": _patterns(release, settings),
        "refit_append": release["refit"]["append"],
        "retry_env": _retry_env(release, plans[0]["env"]),
        "smoke": release["smoke"],
        "health_metrics": release.get("health_metrics", {}),
        "promise": promised(effective, release),
        "digest": digest([plan["digest"] for plan in plans]),
    }


def probe_host(bind: str) -> str:
    """Where the head itself reaches an API that is bound to `bind`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind, bind)


def _rank_entry(rank: int, node: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"rank": rank, "name": node["name"], "address": None}
    if rank > 0:
        entry |= {"address": node["address"], "user": node.get("user", "twinserve")}
    # What the user says about the link of a node limits what its start may choose.
    entry |= {key: node[key] for key in ("nccl_ib_hca", "fabric_netdev") if node.get(key)}
    return entry


def _start_order(count: int, order: str) -> list[int]:
    workers = list(range(1, count))
    return [*workers, 0] if order == "workers_first" else [0, *workers]


def _patterns(release: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "refit": release["refit"]["pattern"],
        "retry": release["retry"]["patterns"],
        "progress": release["progress"],
        "failures": release["failures"],
        "alarms": _rules(release.get("alarms", []), settings),
        "proofs": _rules(release.get("proofs", []), settings),
        "remarks": _rules(release.get("remarks", []), settings),
    }


def _rules(rules: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those that hold with these settings, without their conditions."""
    facts = Facts(settings)
    return [
        {name: value for name, value in rule.items() if name != "when"}
        for rule in rules
        if holds(rule.get("when"), facts)
    ]


def _retry_env(release: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a last try changes; none when the plan has these values already."""
    return {name: value for name, value in release["retry"]["env"].items() if env.get(name) != value}
