"""The catalogue: releases that extend one another, entries from elsewhere, what each shipped one says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import (
    CatalogueError,
    merged,
    release_data,
    release_names,
)
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product
from engine_data import PRODUCT, faults, plans, resolved, settings

REPOSITORY = "ghcr.io/miaai-lab/glm-5.3-flash-exl3-2x-dgx-sparks-tensorfold"
TR3 = "Mia-AiLab/GLM-5.3-Flash-EXL3-TR3-4bpw"
OWN = "Mia-AiLab/GLM-5.3-Flash-EXL3-4bpw-TensorFold"


@pytest.mark.parametrize(
    ("base", "over", "expected"),
    [
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": {"x": 1}}, {"a": {"x": 1}}),
    ],
)
def test_maps_are_merged_and_all_else_is_replaced(base: Any, over: Any, expected: Any) -> None:
    assert merged(base, over) == expected


def test_an_entry_stands_on_what_it_extends_and_on_its_engine() -> None:
    entries: dict[str, dict[str, Any]] = {
        "v1": {"engine": "e", "defaults": {"a": 1, "b": 1}},
        "mine": {"extends": "v1", "defaults": {"b": 2}},
    }
    data = release_data("mine", {"engine": "e", "defaults": {"a": 0, "c": 0}}, entries)
    assert data == {"engine": "e", "release": "mine", "defaults": {"a": 1, "b": 2, "c": 0}}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a": {"extends": "b"}, "b": {"extends": "a"}}, "release a extends itself: a -> b -> a"),
        ({"a": {"extends": "v9"}}, "release a extends v9, which does not exist"),
    ],
)
def test_an_entry_that_leads_nowhere_is_named(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=re.escape(message)):
        release_data("a", {}, entries)


@pytest.mark.parametrize("below", ["hub/models--o--n", "hub/${model_snapshot}", "hub"])
def test_m14_less_than_the_whole_cache_may_not_be_mounted(below: str) -> None:
    entries = {"mine": {"mounts": [{"source": f"${{hf_cache}}/{below}", "target": "/model"}]}}
    said = f"mount ${{hf_cache}}/{below} does not contain hub/blobs, which the snapshot links to"
    with pytest.raises(CatalogueError, match=re.escape(said)):
        release_data("mine", {}, entries)
    whole = {"mine": {"mounts": [{"source": "${hf_cache}", "target": "/model"}]}}
    assert release_data("mine", {}, whole)["mounts"] == whole["mine"]["mounts"]


def test_releases_are_in_the_order_in_which_people_count() -> None:
    entries = {name: {"engine": "e"} for name in ("v1.10", "v1.9", "v1.9.1", "v1.2")} | {
        "x": {"engine": "other"}
    }
    assert release_names("e", entries) == ["v1.2", "v1.9", "v1.9.1", "v1.10"]


def folder(path: Path, **files: str) -> Path:
    path.mkdir(exist_ok=True)
    for name, text in files.items():
        (path / f"{name}.yml").write_text(text, encoding="utf-8")
    return path


def test_a_site_adds_its_own_releases(tmp_path: Path) -> None:
    site = folder(
        tmp_path / "site", mirrored="extends: v1.1\ndefaults: {image: registry.example:5000/engine}\n"
    )
    product = load_product("tensorfold", [str(site)])
    assert product.releases() == ["mirrored", *PRODUCT.releases()]
    data = product.release("mirrored")
    assert data["defaults"]["image"] == "registry.example:5000/engine"
    assert data["defaults"]["image_digest"] == PRODUCT.release("v1.1")["defaults"]["image_digest"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"v1": "extends: [\n"}, "is not valid YAML"),
        ({"v1": "- a\n"}, "holds no map"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(CatalogueError, match=f"v1.yml.*{message}"):
        load_product("tensorfold", [str(folder(tmp_path / "site", **files))])


def test_a_release_cannot_be_there_twice(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "v1.1.yml").write_text("extends: v1.2\n", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"there is a release v1.1 already"):
        load_product("tensorfold", [str(site)])


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(CatalogueError, match="catalogue_path: /nowhere is no folder"):
        load_product("tensorfold", ["/nowhere"])


# release: engine, image label, first digits of the digest, model, pool, reply budget, most requests
SHIPPED = [
    ("v1.1", "0.5.0", "cb7c56f7f921", "6ee3c6e0", TR3, 11, None, 4),
    ("v1.2", "0.5.0", "cb7c56f7f921", "6ee3c6e0", TR3, 12.5, None, 4),
    ("v1.3", "0.6.0", "ae8d1c789b47", "22789f0c", TR3, 12.5, 32768, 4),
    ("v1.3.1", "0.6.0", "ae8d1c789b47", "22789f0c", TR3, 12.5, 32768, 4),
    ("v1.3.2", "0.6.0", "ae8d1c789b47", "22789f0c", TR3, 12.5, 32768, 4),
    ("v1.3.3", "0.6.0", "ae8d1c789b47", "22789f0c", OWN, 12.5, 32768, 4),
    ("v1.4", "0.6.0", "5e01f1bb74d8", "14f15591", OWN, 12.5, 32768, 4),
    ("v1.5", "0.6.0", "9f73cca659a1", "ef83797d", OWN, 12.5, 32768, 8),
    ("v1.6", "0.6.0", "c4cab25d2d36", "b47c19d6", OWN, 12.5, 32768, 8),
    ("v1.7", "0.6.0", "c4cab25d2d36", "b47c19d6", OWN, 12.5, 32768, 8),
    ("v1.7.1", "0.6.0", "1692d2df78d2", "a8067cd7", OWN, 12.5, 32768, 8),
    ("v1.8", "0.6.0", "31557ed1cef6", "cbb4b3c6", OWN, 12.5, 32768, 8),
    ("v1.9", "0.6.0", "bd91ecd14811", "43a8e61c", OWN, 12.5, 32768, 8),
    ("v1.9.1", "0.6.0", "ff5dffc865d3", "20275b2b", OWN, 12.5, 32768, 8),
    ("v1.10", "0.6.0", "a1897d591f70", "bc34d7d6", OWN, 12.5, 32768, 8),
]


def test_every_shipped_release_is_in_the_table() -> None:
    assert PRODUCT.releases() == [row[0] for row in SHIPPED]


@pytest.mark.parametrize(("name", "engine", "label", "digest", "model", "pool", "budget", "most"), SHIPPED)
def test_what_a_shipped_release_pins(
    name: str, engine: str, label: str, digest: str, model: str, pool: float, budget: int | None, most: int
) -> None:
    data, facts = PRODUCT.release(name), settings(name)
    assert (data["engine_version"], data["image_label"]) == (engine, label)
    assert (facts["image"], facts["image_digest"][:15]) == (REPOSITORY, f"sha256:{digest}")
    assert (facts["model_id"], facts["kv_pool_gib"], facts["max_tokens"]) == (model, pool, budget)
    assert len(facts["model_revision"]) == 40
    assert faults(name, parallel=most) == []
    assert faults(name, parallel=most + 1) == [
        f"parallel is {most + 1}: it takes a whole number from 1 to {most} (release {name})"
    ]


def environment(release: str, **raw: Any) -> dict[str, str]:
    env: dict[str, str] = plans(release, **raw)[0]["env"]
    return env


# The first release in which a variable has a value, and what it had before.
CHANGES = [
    ("TF_GLM_MTP", "v1.3", "auto", None),
    ("TF_GLM_MULTI_LONE", "v1.3.1", "0", "1"),
    ("TF_GLM_CACHE_ENTRIES", "v1.3.2", "32", None),
    ("TF_GLM_STREAM_SMOOTH", "v1.4", "1", None),
    ("TF_GLM_FILL_BUDGET_MS", "v1.4", "200", None),
    ("TF_GLM_MULTI_WINDOW", "v1.5", "32", None),
    ("TF_ROCE_WAIT_S", "v1.3", "300", None),
    ("TF_GLM_MULTI_WATCHDOG_EXIT", "v1.4", "1", None),
    ("TENSORFOLD_NUCLEUS_UNION", "v1.9", "1", None),
]


@pytest.mark.parametrize(("variable", "since", "value", "before"), CHANGES)
def test_o14_o15_a_variable_belongs_to_the_releases_that_know_it(
    variable: str, since: str, value: str, before: str | None
) -> None:
    names = PRODUCT.releases()
    first = names.index(since)
    seen = [environment(name).get(variable) for name in names]
    assert seen == [before] * first + [value] * (len(names) - first)


@pytest.mark.parametrize(("parallel", "reserve", "window", "kib"), [
    (4, "14.5", "32", "512"), (5, "16.7", "64", "1024"), (8, "19.6", "64", "1024"),
])  # fmt: skip
def test_k05_k06_reserve_and_transport_grow_with_the_requests(
    parallel: int, reserve: str, window: str, kib: str
) -> None:
    env = environment("v1.10", parallel=parallel)
    assert env["TENSORFOLD_MEMORY_RESERVE_GIB"] == reserve
    assert (env["TF_GLM_MULTI_WINDOW"], env["TF_ROCE_MAX_KB"]) == (window, kib)


def test_k06_an_explicit_transport_size_is_kept() -> None:
    assert environment("v1.10", parallel=8, engine_env={"TF_ROCE_MAX_KB": 512})["TF_ROCE_MAX_KB"] == "512"


def test_k05_a_reserve_below_the_derived_one_is_warned_of() -> None:
    assert resolved("v1.10", parallel=8, memory_reserve_gib=14.5).warnings == [
        "memory_reserve_gib 14.5 is below 19.6 for parallel 8: the node may freeze"
    ]


@pytest.mark.parametrize(("release", "model", "known"), [
    ("v1.1", OWN, False), ("v1.3.3", TR3, True), ("v1.5", TR3, False), ("v1.6", f"{OWN}-Ablit", False),
    ("v1.7", f"{OWN}-Ablit", True),
])  # fmt: skip
def test_a_release_pins_the_models_that_it_knows(release: str, model: str, known: bool) -> None:
    expected = [] if known else [
        f"model_id {model} needs its own model_revision: the release pins none for it"
    ]  # fmt: skip
    assert faults(release, model_id=model) == expected


def test_the_abliterated_weights_do_not_think_by_default() -> None:
    assert settings("v1.10", model_id=f"{OWN}-Ablit")["thinking"] is False


def test_a_plain_pin_holds_for_its_own_model_only(tmp_path: Path) -> None:
    text = f"extends: v1.1\ndefaults: {{model_id: site/model, model_revision: '{'b' * 40}'}}\n"
    product = load_product("tensorfold", [str(folder(tmp_path / "site", mine=text))])
    for raw, expected in (({}, "b" * 40), ({"model_id": "me/other"}, None)):
        result = resolve(product.specs, product.rules, product.release("mine"), {"drafter": "mtp", **raw})
        assert result.values["model_revision"] == expected
