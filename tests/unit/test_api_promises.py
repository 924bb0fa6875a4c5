"""What a pair promises of its API, and what of that its ranks are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import station_data
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.found import Wrong
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.promise import Promise, read_promise
from ansible_collections.twinserve.pair.plugins.module_utils.render import pair_config
from engine_data import NODES, PRODUCT, faults, plans, settings
from live_pair import catalogue_promise


def promise(release: str = "v1.1", /, **raw: Any) -> Promise:
    """What the head is told that this pair promises."""
    facts = settings(release, **raw)
    config = pair_config(plans(release, **raw), facts, PRODUCT.release(release), NODES)
    return read_promise(config["promise"])


def test_a_configuration_of_another_version_is_named_with_the_cure() -> None:
    given = dict(station_data.config()["promise"])
    del given["tool_choice"]

    with pytest.raises(Wrong, match=r"another version of Twinserve \(tool_choice\): run serve.yml"):
        read_promise(given)


def test_the_defaults_promise_what_the_engine_does_by_itself() -> None:
    assert promise() == Promise(
        served_name="GLM-5.3-Flash-EXL3",
        reasoning_effort=("none", "low", "high", "max"),
        effort_field="reasoning_effort",
        reasoning_field="reasoning_content",
        thought_tokens=0,
        likeliest={},
        same_answer=True,
        usage_in_streams={},
        guided_field="guided_{kind}",
        tool_use=True,
        tool_choice=("auto",),
        vision=True,
        vision_urls=False,
        parallel=4,
        prompts_kept=True,
        more_chat_routes=(),
        messages=False,
        responses_kept=True,
        tokenize_v1=True,
        tokenize_fields={},
        chunked_bodies=False,
        body_limit_mib=96,
        window_error={"code": "context_length_exceeded"},
        budget_is_cut=False,
        health_pool=True,
        health_metrics={},
        running_metric=None,
        cached_metric=None,
        full_status=503,
        max_queued=None,
        image_tokens=2048,
        max_images=50,
        max_videos=4,
        request_image_tokens=16384,
    )


@pytest.mark.parametrize(
    ("release", "raw", "name", "value"),
    [
        ("v1.8", {}, "messages", False),
        ("v1.9", {}, "messages", True),
        ("v1.8", {}, "chunked_bodies", False),
        ("v1.10", {}, "chunked_bodies", True),
        ("v1.8", {}, "full_status", 429),
        ("v1.7.1", {}, "full_status", 503),
        ("v1.7.1", {"engine_env": {"TF_GLM_MAX_QUEUED": 0}}, "max_queued", None),
        ("v1.8", {"engine_env": {"TF_GLM_MAX_QUEUED": 0}}, "max_queued", 0),
        ("v1.10", {"engine_env": {"TF_GLM_MAX_QUEUED": 0}}, "max_queued", 0),
        ("v1.10", {"engine_env": {"TF_GLM_MAX_QUEUED": ""}}, "max_queued", None),
        ("v1.1", {"vision": False}, "vision", False),
        ("v1.1", {"max_images": 0}, "max_images", 0),
        ("v1.1", {"parallel": 2}, "parallel", 2),
        ("v1.1", {"parallel": 1}, "prompts_kept", False),
        ("v1.1", {"served_name": "mine"}, "served_name", "mine"),
        ("v1.1", {"extra_args": "--name mine"}, "served_name", "mine"),
        ("v1.1", {"extra_args": "--vision-urls"}, "vision_urls", True),
    ],
)
def test_release_and_settings_change_the_promise(
    release: str, raw: dict[str, Any], name: str, value: object
) -> None:
    assert getattr(promise(release, **raw), name) == value


def test_vllm_promises_what_its_engine_and_release_say_and_counts_where_it_counts() -> None:
    found = read_promise(station_data.config()["promise"])
    assert (found.served_name, found.parallel) == ("nvidia/GLM-5.3-NVFP4", 16)
    assert (found.reasoning_effort, found.reasoning_field) == (("low", "high", "max"), "reasoning")
    assert (found.body_limit_mib, found.max_queued, found.vision) == (None, None, False)
    assert found.health_metrics["prompt_tokens_total"] == ("vllm:prompt_tokens_total",)
    assert found.prompts_kept
    assert not read_promise(station_data.config(prefix_caching=False)["promise"]).prompts_kept


OWN_RELEASE = """---
extends: glm-5.3-nvfp4
defaults: {served_name: mine, max_model_len: 2048}
api: {reasoning_effort: []}
"""


def test_the_release_says_which_engine_it_is_of_also_one_of_the_users_own(tmp_path: Path) -> None:
    assert catalogue_promise("v1.9", [])["guided_field"] == "guided_{kind}"
    assert catalogue_promise("glm-5.3-nvfp4", [])["guided_field"] == "structured_outputs.{kind}"
    assert catalogue_promise(None, [], "vllm")["served_name"] == "nvidia/GLM-5.3-NVFP4"
    assert catalogue_promise(None, [])["served_name"] == "GLM-5.3-Flash-EXL3"
    (tmp_path / "mine.yml").write_text(OWN_RELEASE)
    own = catalogue_promise("mine", ["parallel=4"], catalogue=[str(tmp_path)])
    assert (own["served_name"], own["parallel"], own["reasoning_effort"]) == ("mine", 4, [])
    for engine, engines in ((None, "sglang or tensorfold or vllm"), ("tensorfold", "tensorfold")):
        with pytest.raises(ValueError, match=f"no release glm-6 of {engines}:"):
            catalogue_promise("glm-6", [], engine)


def test_a02_a_queue_limit_of_zero_reaches_both_ranks_and_an_empty_one_neither() -> None:
    for plan in plans("v1.10", engine_env={"TF_GLM_MAX_QUEUED": 0}):
        assert plan["env"]["TF_GLM_MAX_QUEUED"] == "0"
    for plan in plans("v1.10", engine_env={"TF_GLM_MAX_QUEUED": ""}):
        assert "TF_GLM_MAX_QUEUED" not in plan["env"]


@pytest.mark.parametrize(
    ("release", "raw", "budget"),
    [
        ("v1.1", {}, None),
        ("v1.3", {}, "32768"),
        ("v1.10", {}, "32768"),
        ("v1.1", {"max_tokens": 8192}, "8192"),
    ],
)
def test_a05_both_ranks_get_the_releases_budget(
    release: str, raw: dict[str, Any], budget: str | None
) -> None:
    for plan in plans(release, **raw):
        words = plan["command"]
        assert (words[words.index("--max-tokens") + 1] if "--max-tokens" in words else None) == budget


def test_a05_a_budget_above_the_window_is_refused() -> None:
    assert faults("v1.3", max_tokens=2000000) == ["max_tokens 2000000 is larger than context 1048576"]


@pytest.mark.parametrize("vision", [True, False])
def test_a06_both_ranks_are_told_alike_whether_pictures_are_seen(vision: bool) -> None:
    assert [("--vision" in plan["command"]) for plan in plans(vision=vision)] == [vision, vision]
