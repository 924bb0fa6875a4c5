"""What the supervisor knows of its pair before it looks: `pair.json`, written by the playbook."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..managed_files import text_hash

_SCHEMA = 1
_CURE = "run the serve playbook"


class ConfigError(ValueError):
    """The configuration cannot be used; the text names file and field."""


@dataclass(frozen=True)
class Member:
    """One rank of the pair. `address` is None for the head, whose agent is called without ssh."""

    rank: int
    name: str
    address: str | None
    user: str
    nccl_ib_hca: str | None = None
    fabric_netdev: str | None = None


@dataclass(frozen=True)
class Failure:
    """A known log line, what helps, and whether trying again is useless."""

    pattern: re.Pattern[str]
    cure: str
    refusal: bool = False


@dataclass(frozen=True)
class Alarm:
    """A log line of a rank that would come up and serve badly; `says` has {rank} for its number."""

    pattern: re.Pattern[str]
    says: str
    cure: str


@dataclass(frozen=True)
class Proof:
    """What each rank must say before the pair serves, with {hca} once for each device that it was given.

    `says` tells that it did not ({rank} and {hca}); `seen` finds the lines to show beside that.
    """

    pattern: str
    says: str
    seen: re.Pattern[str]
    cure: str


@dataclass(frozen=True)
class Remark:
    """A log line of a rank that does not keep the pair from serving, and that people should know of."""

    pattern: re.Pattern[str]
    says: str


@dataclass(frozen=True)
class Config:
    """The pair's configuration. All times in seconds."""

    pair: str
    release: str
    served_name: str
    digest: str
    members: tuple[Member, ...]
    rails: str | int
    comm: str
    max_rails: int
    host: str
    port: int
    start_order: tuple[int, ...]
    stop_order: str
    wait_timeout: float
    stop_timeout: float
    drain_timeout: float
    restart_limit: int
    restart_window: float
    canary_interval: float
    hang_limit: float
    refit: re.Pattern[str] | None
    retry: tuple[re.Pattern[str], ...]
    progress: tuple[re.Pattern[str], ...]
    failures: tuple[Failure, ...]
    alarms: tuple[Alarm, ...]
    proofs: tuple[Proof, ...]
    remarks: tuple[Remark, ...]
    refit_append: tuple[str, ...]
    retry_env: tuple[tuple[str, str], ...]
    smoke: Mapping[str, Any]
    health_metrics: Mapping[str, tuple[str, ...]]
    # How many requests run at once, as far as the engine tells, and whether a gateway shows how it goes.
    streams: int | None = None
    gateway: bool = False
    # Of the text that this was read from.
    sha256: str = ""

    @property
    def listens(self) -> bool:
        """Whether what the ranks print while they start is fetched, beyond the last lines of each look."""
        return bool(self.alarms or self.proofs or self.remarks)


def read_config(path: Path) -> Config:
    """Read the file. Raises ConfigError when it is missing, broken or of another schema."""
    try:
        text = path.read_text(encoding="utf-8")
        return replace(parse_config(json.loads(text)), sha256=text_hash(text))
    except FileNotFoundError as error:
        raise ConfigError(f"{path} is missing: {_CURE}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: {error}: {_CURE}") from error
    except KeyError as error:
        raise ConfigError(f"{path} lacks {error}: {_CURE}") from error
    except re.error as error:
        raise ConfigError(f"{path} has a pattern that is none ({error.pattern!r}: {error})") from error


def parse_config(data: Mapping[str, Any]) -> Config:
    """Turn the file's content into types (KeyError, TypeError, ValueError, re.error: it does not fit)."""
    if data["schema"] != _SCHEMA:
        raise ConfigError(f"schema {data['schema']}, not {_SCHEMA}")
    patterns = data["patterns"]
    return Config(
        pair=data["pair"],
        release=data["release"],
        served_name=data["served_name"],
        digest=data["digest"],
        members=tuple(
            _member(entry) for entry in sorted(data["ranks"], key=lambda entry: int(entry["rank"]))
        ),
        rails=data["rails"] if data["rails"] == "auto" else int(data["rails"]),
        comm=data["comm"],
        max_rails=int(data["max_rails"]),
        host=data["api"]["host"],
        port=int(data["api"]["port"]),
        start_order=tuple(int(rank) for rank in data["start_order"]),
        stop_order=data["stop_order"],
        wait_timeout=float(data["wait_timeout"]),
        stop_timeout=float(data["stop_timeout"]),
        drain_timeout=float(data["drain_timeout"]),
        restart_limit=int(data["restart_limit"]),
        restart_window=float(data["restart_window"]),
        canary_interval=float(data["canary_interval"]),
        hang_limit=float(data["hang_limit"]),
        refit=re.compile(patterns["refit"]) if patterns.get("refit") else None,
        retry=tuple(re.compile(pattern) for pattern in patterns["retry"]),
        progress=tuple(re.compile(pattern) for pattern in patterns["progress"]),
        failures=tuple(
            Failure(re.compile(entry["pattern"]), entry["cure"], bool(entry.get("refusal")))
            for entry in patterns["failures"]
        ),
        alarms=tuple(
            Alarm(re.compile(entry["pattern"]), entry["says"], entry["cure"])
            for entry in patterns.get("alarms", ())
        ),
        proofs=tuple(_proof(entry) for entry in patterns.get("proofs", ())),
        remarks=tuple(
            Remark(re.compile(entry["pattern"]), entry["says"]) for entry in patterns.get("remarks", ())
        ),
        refit_append=tuple(data["refit_append"]),
        retry_env=tuple(sorted(data["retry_env"].items())),
        smoke=data["smoke"],
        health_metrics={name: tuple(parts) for name, parts in data.get("health_metrics", {}).items()},
        streams=data.get("promise", {}).get("parallel"),
        gateway=bool(data["api"].get("gateway")),
    )


def _proof(entry: Mapping[str, Any]) -> Proof:
    # It is one only with a device in it: what is wrong with it is to be told now.
    re.compile(entry["pattern"].replace("{hca}", "x"))
    return Proof(entry["pattern"], entry["says"], re.compile(entry["seen"]), entry["cure"])


def _member(entry: Mapping[str, Any]) -> Member:
    return Member(
        rank=int(entry["rank"]),
        name=entry["name"],
        address=entry["address"],
        user=entry.get("user") or "twinserve",
        nccl_ib_hca=entry.get("nccl_ib_hca"),
        fabric_netdev=entry.get("fabric_netdev"),
    )
