"""The page that the gateway shows: what it tells of a pair, and that it asks nobody else for anything."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import State
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.status_page import (
    Versions,
    page,
    read_versions,
)
from fake_world import Start, World

VERSIONS = Versions("0123abcd", "sha256:4711", ("org/GLM at abcdef012345",))


def rows(text: str) -> dict[str, str]:
    """What the page says, by what it says it of."""
    return dict(re.findall(r"<dt>(.+?)</dt><dd>(.+?)</dd>", text))


def serving() -> World:
    """A pair that serves up to four requests at once, for two canaries by now."""
    world = World(promise={"parallel": 4})
    world.until("serving")
    world.run(90)
    return world


def shown(world: World, **changes: object) -> str:
    state: State = replace(world.loop.state, **changes)  # type: ignore[arg-type]
    return page(state, VERSIONS, world.now)


def test_it_tells_health_window_pool_streams_rails_and_versions() -> None:
    world = serving()
    text = shown(world)
    told = rows(text)

    assert '<header class="good">' in text
    assert "<title>pair1: serving</title>" in text
    assert re.fullmatch(r"[\d,]+ tokens", told["Window"])
    assert told["Pool"] == "2,684,928 tokens"
    assert told["Requests"] == "0 of 4 streams"
    assert re.fullmatch(r"answered in \d+\.\d s, \d+ s ago", told["Canary"])
    assert told["Restarts"] == "0 of 3 within 60 minutes"
    assert told["Rank 1"].startswith("spark-b: running")
    assert re.fullmatch(r"spark-a \S+ [\d.]+ ↔ spark-b \S+ [\d.]+", told["Rail 1"])
    assert (told["Model"], told["Release"], told["Image"]) == ("GLM", "v1.1", "sha256:4711")
    assert (told["Weights"], told["Twinserve"]) == ("org/GLM at abcdef012345", "0123abcd")


def test_an_engine_that_tells_what_is_free_of_its_pool_is_believed() -> None:
    world = serving()
    api = replace(world.loop.state.api, health={"pool_tokens": 65536, "pool_free_tokens": 0})
    assert rows(shown(world, api=api))["Pool"] == "65,536 tokens, 0 free"


def test_it_has_no_script_and_nothing_from_elsewhere() -> None:
    text = shown(serving())
    assert not re.search(r"<script|<img|<link|<iframe|\bon\w+=|https?:|url\(|@import", text)


def test_what_engines_and_nodes_say_is_text() -> None:
    text = shown(serving(), last_error="rank 1 said <script>alert('x')</script> & ended", notes=("<b>",))
    assert "<script>" not in text
    assert rows(text)["Last error"].startswith("rank 1 said &lt;script&gt;")
    assert rows(text)["Warning"] == "&lt;b&gt;"


def test_a_pair_whose_canary_fails_is_degraded() -> None:
    world = serving()
    canary = replace(world.loop.state.canary, ok=False, bad=1, detail="the reply is empty")
    text = shown(world, canary=canary)
    assert '<header class="busy">' in text
    assert '<span class="word">degraded</span>' in text
    assert rows(text)["Canary"].startswith("the reply is empty, ")


def test_a_pair_that_loads_says_how_far_it_is_and_no_window_yet() -> None:
    world = World()
    world.api.load_time = 200
    world.until("loading")
    text = shown(world)
    assert '<header class="busy">' in text
    assert '<span class="word">loading</span>' in text
    assert "Window" not in rows(text)


def test_a_pair_that_gave_up_is_red_and_says_why() -> None:
    world = World()
    world.ranks[0].script = [Start(dies=1, log=("boom",))] * 10
    world.until("down")
    text = shown(world)
    assert '<header class="bad">' in text
    assert "gave up after 3 restarts; last error: rank 0 exited (code 1)" in text


def test_versions_are_those_of_the_plan(tmp_path: Path) -> None:
    revision = "abcdef0123456789abcdef0123456789abcdef01"
    path = f"/cache/hub/models--org--GLM/snapshots/{revision}"
    plan = tmp_path / "rank.json"
    assert read_versions(plan).image == ""
    plan.write_text(json.dumps({"image": "sha256:4711", "command": ["serve", path]}))
    found = read_versions(plan)
    assert (found.image, found.models) == ("sha256:4711", ("org/GLM at abcdef012345",))
