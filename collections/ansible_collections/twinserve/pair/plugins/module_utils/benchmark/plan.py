"""What is to be measured, decided on the controller: concurrencies, dataset, load, from where. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..acceptance.client import netloc
from .speed_bench import ROWS

SCHEMA = 1
HOME = "/var/lib/twinserve/benchmark"
SYNTHETIC = "synthetic coding tasks"
SPEED_BENCH = "SPEED-Bench coding"
# What AIPerf may take: twice what we expect of its dozen processes with four workers (no Spark was measured),
# and less than half of the 14.5 GiB that the rank leaves there of what GPU and processors share.
MEMORY_GIB = 6
# Of a reply, in tokens. Those of the reference have about 5,500; SPEED-Bench's have to come to their end.
_MOST_TOKENS = {SYNTHETIC: 512, SPEED_BENCH: 8192}
_LOOPBACK = ("127.0.0.1", "::1")


class NotPossible(ValueError):
    """The pair cannot be measured so; the text says what to do."""


def concurrencies(given: Sequence[int] | None, parallel: int) -> list[int]:
    """How many requests at once, rising: those given, else 1, 2, 4, ... up to what is decoded at once."""
    if given:
        return sorted(set(given))
    doubled = [1 << power for power in range(parallel.bit_length()) if 1 << power < parallel]
    return [*doubled, parallel]


def address(config: Mapping[str, Any] | None, here: bool, given: str | None, management: str) -> str:
    """Where the API is for who sends the requests, the head itself (`here`) or another machine.

    `management` is the head's address for others. Raises NotPossible.
    """
    if not config:
        raise NotPossible("nothing is deployed on this head yet: run site.yml")
    if given:
        return given.rstrip("/").removesuffix("/v1")
    api = config["api"]
    if here:
        return f"http://{netloc(api['host'], api['port'])}"
    if api["bind"] in _LOOPBACK:
        raise NotPossible(
            "the API listens on the head's loopback only: leave bench_host unset to measure on the head, or "
            "set bench_url to where bench_host reaches it (a tunnel, a gateway), or serve with expose: direct"
        )
    return f"http://{netloc(management, api['port'])}"


def make(
    config: Mapping[str, Any],
    settings: Mapping[str, Any],
    dataset: Mapping[str, Any] | None,
    url: str,
    host: str,
    version: str,
) -> dict[str, Any]:
    """The plan of one sweep; `dataset` is the prepared file that was checked, None for the synthetic set.

    What was measured under the same `id` is comparable: the same configuration of the pair, the same
    prompts, the same load, from the same machine, with the same AIPerf.
    """
    name = SPEED_BENCH if dataset else SYNTHETIC
    load = {
        "requests": settings["bench_requests"],
        "warmup": settings["bench_warmup"],
        "max_tokens": settings["bench_max_tokens"] or _MOST_TOKENS[name],
        "temperature": 0,
    }
    known = {
        "digest": config["digest"],
        "served_name": config["served_name"],
        "dataset": [name, (dataset or {}).get("sha256")],
        "load": load,
        "from": [host, url],
        "aiperf": version,
    }
    counts = concurrencies(settings["bench_concurrency"], int(config["promise"]["parallel"]))
    return {
        "schema": SCHEMA,
        "id": hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:12],
        "pair": config["pair"],
        "served_name": config["served_name"],
        "url": url,
        "host": host,
        "canary_interval": config["canary_interval"],
        "health_metrics": config.get("health_metrics", {}),
        "while_busy": settings["bench_while_busy"],
        "aiperf": version,
        "dataset": {"name": name, **(dataset or {})},
        "load": load,
        "levels": [level(count, load) for count in counts],
    }


def level(concurrency: int, load: Mapping[str, Any]) -> dict[str, int]:
    """One measurement. Warm-up is as long as it is wide, unless it is given."""
    warmup = concurrency if load["warmup"] is None else int(load["warmup"])
    return {"concurrency": concurrency, "requests": int(load["requests"]), "warmup": warmup}


def run_folder(plan: Mapping[str, Any]) -> str:
    """Where the sweep keeps what it has measured, on the machine that sends the requests."""
    return f"{HOME}/runs/{plan['pair']}-{plan['id']}"


def words(plan: Mapping[str, Any], kept: Sequence[int], again: bool) -> list[str]:
    """What will be measured, for people."""
    load, dataset = plan["load"], plan["dataset"]
    kind = "conversations" if dataset["name"] == SPEED_BENCH else "requests"
    counts = [one["concurrency"] for one in plan["levels"]]
    kept = [] if again else [one for one in kept if one in counts]
    lines = [
        f"{plan['served_name']} at {plan['url']}, asked from {plan['host']} with AIPerf {plan['aiperf']}",
        f"concurrency {_listed(counts)}: {load['requests']} {kind} each, "
        f"at most {load['max_tokens']} tokens a reply",
        f"prompts: {described(plan)}",
    ]
    if kept:
        lines.append(
            f"measured already, and not again: concurrency {_listed(kept)} (-e again=true measures all)"
        )
    return lines


def described(plan: Mapping[str, Any]) -> str:
    """The prompts in words; neither a synthetic set nor a part is taken for the real one."""
    dataset = plan["dataset"]
    if dataset["name"] == SPEED_BENCH:
        part = is_part(plan)
        count = f"{plan['load']['requests']} of its {ROWS}" if part else str(ROWS)
        told = f"{SPEED_BENCH}, {count} conversations (sha256 {dataset['sha256'][:12]})"
        return f"{told}: not comparable with numbers of all" if part else told
    return (
        f"{SYNTHETIC}, made here, each with a beginning of its own: not SPEED-Bench, not comparable with it"
    )


def is_part(plan: Mapping[str, Any]) -> bool:
    """Whether fewer conversations are measured than the data set has."""
    return bool(plan["dataset"]["name"] == SPEED_BENCH and plan["load"]["requests"] != ROWS)


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
