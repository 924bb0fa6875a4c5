"""What the supervisor knows, as numbers over time: a file for the node exporter, while monitoring is on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..exposition import FOLDER, Metric, single
from ..exposition import write as write_metrics
from .serving import unseen
from .state import Phase, State, recent_restarts
from .words import shown


def metrics(state: State, now: float, runtime: str) -> Iterator[Metric]:
    """Everything of the pair; what is not known yet is left out."""
    config, health, canary = state.config, state.api.health, state.canary
    # Who was stopped on purpose needs nobody's attention, who gave up does.
    word = "stopped" if state.phase is Phase.GONE else shown(state, now)
    lost = unseen(state, now)
    recent = recent_restarts(state, now)
    about = {
        "pair": config.pair,
        "served_name": config.served_name,
        "runtime": runtime,
        "digest": state.digest,
    }
    yield Metric("twinserve_pair_info", "What the pair is.", [({**about, "runtime": runtime}, 1)])
    yield Metric("twinserve_state", "What the pair does, as its state file says.", [({"state": word}, 1)])
    yield single("twinserve_serving", "Whether the pair serves.", word == "serving")
    yield single("twinserve_restarts", "Restarts within the window that restart_limit is for.", len(recent))
    yield single("twinserve_restart_limit", "Restarts after which it stays down.", config.restart_limit)
    yield single("twinserve_window_tokens", "Tokens that one request can have.", health.get("context_length"))
    yield single("twinserve_pool_tokens", "Tokens that the pool can hold.", health.get("pool_tokens"))
    yield single("twinserve_pool_free_tokens", "Of these, free ones.", health.get("pool_free_tokens"))
    yield single("twinserve_rails_used", "Rails that the ranks were started with.", len(state.link.rails))
    yield single("twinserve_rails_expected", "Rails that they were deployed for.", state.expected_rails)
    yield single("twinserve_requests_others", "Requests that run, without the canary.", state.api.others)
    yield single("twinserve_canary_interval_seconds", "Time between two canaries.", config.canary_interval)
    if canary.ended is not None:
        yield single("twinserve_canary_ok", "Whether the last canary had a good answer.", canary.ok)
        yield single("twinserve_canary_seconds", "How long that took.", canary.seconds)
        yield single("twinserve_canary_age_seconds", "How long ago that was.", now - canary.ended)
    ranks = [({"rank": view.rank, "name": view.name}, view) for view in state.ranks]
    yield Metric(
        "twinserve_rank_seen",
        "Whether the supervisor reaches the rank's node.",
        [(who, lost is None or lost[0] != view.rank) for who, view in ranks],
    )
    yield Metric(
        "twinserve_rank_running",
        "Whether the rank's container runs.",
        [(who, view.running) for who, view in ranks],
    )
    yield Metric(
        "twinserve_rank_gpu_gib",
        "The rank's memory on the GPU.",
        [(who, view.gpu_gib) for who, view in ranks],
    )


def write(state: State, runtime: str, now: float, folder: Path = FOLDER) -> None:
    """Write what is so now, if anybody wants it."""
    if folder.is_dir():
        write_metrics("pair", metrics(state, now, runtime), folder)
