"""Which hosts are a pair, which names look misspelt, and what one host is told."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.conditions import Facts, choose, holds
from ansible_collections.twinserve.pair.plugins.module_utils.pair_finding import NoPair, Pair, find_pair
from ansible_collections.twinserve.pair.plugins.module_utils.settings_names import (
    ignored_environment,
    misspelled,
)
from ansible_collections.twinserve.pair.plugins.module_utils.settings_spec import parse_settings
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import check_host, setting_names
from engine_data import LICENCE, PRODUCT

TWO = {"a": 0, "b": 1}
FOUR = {"a": 0, "b": 1, "c": "0", "d": "1"}

FOUND: list[tuple[str, dict[str, list[str]], dict[str, Any], Pair]] = [
    ("b", {"all": ["a", "b"], "sparks": ["a", "b"], "pair1": ["a", "b"]}, TWO, Pair("pair1", ("a", "b"))),
    ("a", {"all": ["b", "a"], "sparks": ["b", "a"]}, TWO, Pair("sparks", ("a", "b"))),
    (
        "c",
        {"all": list("abcd"), "sparks": list("abcd"), "p1": ["a", "b"], "p2": ["d", "c"]},
        FOUR,
        Pair("p2", ("c", "d")),
    ),
    (  # a group of one, and a group across pairs, are no pairs
        "a",
        {"all": list("abcd"), "sparks": list("abcd"), "p1": ["a", "b"], "heads": ["a", "c"], "only": ["a"]},
        FOUR,
        Pair("p1", ("a", "b")),
    ),
    ("a", {"all": ["a", "b"], "stations": ["a", "b"]}, TWO, Pair("stations", ("a", "b"))),
    (
        "c",
        {"sparks": list("abc"), "ring": list("cba")},
        {"a": 0, "b": 1, "c": 2},
        Pair("ring", ("a", "b", "c")),
    ),
]


@pytest.mark.parametrize(("host", "groups", "ranks", "pair"), FOUND)
def test_a_pair_is_the_group_with_all_ranks(
    host: str, groups: dict[str, list[str]], ranks: dict[str, Any], pair: Pair
) -> None:
    assert find_pair(host, groups, ranks) == pair


NOT_FOUND: list[tuple[dict[str, list[str]], dict[str, Any], str]] = [
    (
        {"all": ["a"]},
        TWO,
        "a is in no group below sparks or stations: put its pair's group under one of them",
    ),
    (
        {"sparks": ["a", "b"], "p": ["a", "b"]},
        {"a": 0},
        "a: the hosts of group p are no pair (a rank 0, b no rank): "
        "write rank: 0 on the head and rank: 1 on the worker, one group a pair",
    ),
    (
        {"sparks": ["a", "b"]},
        {"a": 0, "b": 0},
        "a: the hosts of group sparks are no pair (a rank 0, b rank 0): "
        "write rank: 0 on the head and rank: 1 on the worker, one group a pair",
    ),
    (
        {"sparks": list("abc"), "p": ["a", "b"], "q": ["a", "c"]},
        {"a": 0, "b": 1, "c": 1},
        "a is in several groups that could be its pair: p, q",
    ),
]


@pytest.mark.parametrize(("groups", "ranks", "message"), NOT_FOUND)
def test_no_pair_says_what_to_write(
    groups: dict[str, list[str]], ranks: dict[str, Any], message: str
) -> None:
    with pytest.raises(NoPair) as refusal:
        find_pair("a", groups, ranks)
    assert str(refusal.value) == message


NAMES: list[tuple[str, str | None]] = [
    ("paralel", "parallel"),
    ("paralell", "parallel"),
    ("PARALLEL", "parallel"),
    ("contxt", "context"),
    ("kv_pool_gb", "kv_pool_gib"),
    ("model_revison", "model_revision"),
    ("parallel", None),
    ("common", None),
    ("image_digset", "image_digest"),
    ("serve_container_name", None),  # people's own names around a setting's
    ("parallel_wish", None),
    ("_paralel", None),
    ("user", None),
    ("max_model_len", None),
    ("image_label", None),
]


@pytest.mark.parametrize(("name", "meant"), NAMES)
def test_a_misspelt_setting_is_found_and_nothing_else(name: str, meant: str | None) -> None:
    expected = [f"{name} is not a setting: did you mean {meant}?"] if meant else []
    assert misspelled([name], set(PRODUCT.specs)) == expected


def test_k11_what_the_controller_exports_has_no_effect_and_is_named() -> None:
    patterns = PRODUCT.engine["ignored_environment"]
    names = ["TF_GLM_KV", "PORT", "HOME", "HF_TOKEN", "PATH", "NCCL_DEBUG"]
    assert ignored_environment(names, patterns) == ["NCCL_DEBUG", "PORT", "TF_GLM_KV"]


PAIR = Pair("pair1", ("a", "b"))


def outcome(
    host: str, a: dict[str, Any], b: dict[str, Any], names: dict[str, list[str]] | None = None
) -> tuple[list[str], list[str]]:
    """Faults of the pair and of the host alone; `names` are variables beside the settings."""
    raw = {"a": {**LICENCE, **a}, "b": {**LICENCE, **b}}
    found = check_host(host, PAIR, raw, {one: [*raw[one], *(names or {}).get(one, [])] for one in raw})
    return [f.text for f in found.faults if not f.node], [f.text for f in found.faults if f.node]


def test_a_host_is_told_what_is_its_own_and_what_is_the_pairs() -> None:
    bad = {"kv": "int8", "hf_cache": "here"}
    assert outcome("b", bad, bad) == (
        ["kv is 'int8': it takes fp8 or bf16"],
        ["hf_cache must be absolute, not 'here'"],
    )


@pytest.mark.parametrize("path", ["cache/hf", "./hf", "hf", "$HOME/hf"])
def test_m13_a_relative_cache_is_refused(path: str) -> None:
    assert outcome("b", {}, {"hf_cache": path}) == ([], [f"hf_cache must be absolute, not '{path}'"])
    assert outcome("b", {}, {"hf_cache": "~/hf"}) == ([], [])


def test_a_misspelling_that_the_head_has_too_is_the_pairs() -> None:
    message = ["paralel is not a setting: did you mean parallel?"]
    assert outcome("b", {}, {}, {"a": ["paralel"], "b": ["paralel"]}) == (message, [])
    assert outcome("b", {}, {}, {"b": ["paralel"]}) == ([], message)


def test_an_unknown_release_is_told_with_all_other_faults() -> None:
    pair, _node = outcome("a", {"release": "v9", "kv": "int8"}, {"release": "v9", "kv": "int8"})
    assert pair[0].startswith("release is 'v9': it takes v1.1, v1.2, v1.3,")
    assert pair[1:] == ["kv is 'int8': it takes fp8 or bf16"]


@pytest.mark.parametrize("release", [1.1, "1.1"])
def test_a_release_is_a_name_not_a_number(release: Any) -> None:
    pair, _node = outcome("a", {"release": release}, {"release": release})
    assert len(pair) == 1
    assert pair[0].startswith(f"release is {release!r}: it takes v1.1, ")


def test_an_unknown_engine_is_refused() -> None:
    pair, _node = outcome("a", {"engine": "vlm"}, {"engine": "vlm"})
    assert pair == ["engine is 'vlm': it takes sglang, tensorfold or vllm"]


def test_a_release_says_how_many_hosts_it_serves_on() -> None:
    three = Pair("ring", ("a", "b", "c"))
    found = check_host("a", three, dict.fromkeys("abc", LICENCE), dict.fromkeys("abc", ()))
    assert [fault.text for fault in found.faults] == ["ring has 3 hosts: tensorfold v1.1 serves on 2"]


def test_a_right_host_gets_its_settings_and_release() -> None:
    found = check_host("b", PAIR, {"a": LICENCE, "b": LICENCE}, {"a": [], "b": []})
    assert (found.settings["parallel"], found.release["release"]) == (4, "v1.1")


def test_every_setting_of_every_engine_is_read() -> None:
    specs = [load_product(name).specs for name in engine_names()]
    assert {name for own in specs for name in own} == setting_names()


CONDITIONS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"kv": "bf16"}, True),
    ({"kv": ["fp8", "bf16"]}, True),
    ({"kv": "fp8"}, False),
    ({"kv": "bf16", "context": 0}, False),
    ({"unknown": 1}, False),
    ({"unknown": {"not": 1}}, False),
    ({"context": {"above": 99}}, True),
    ({"context": {"above": 100}}, False),
    ({"context": {"below": "larger"}}, True),
    ({"context": {"below": "default"}}, True),
    ({"kv": {"not": "default"}}, True),
    ({"kv": {"not": ["bf16"]}}, False),
    ({"kv": {"given": True}}, True),
    ({"context": {"given": True}}, False),
    ({"nothing": {"set": False}}, True),
    ({"off": {"set": True}}, True),  # false is a value
    ({"off": 0}, False),  # but not the number 0
    ({"nothing": {"above": 0}}, False),
]


@pytest.mark.parametrize(("when", "expected"), CONDITIONS)
def test_conditions(when: dict[str, Any], expected: bool) -> None:
    values = {"kv": "bf16", "context": 100, "larger": 200, "nothing": None, "off": False}
    facts = Facts(values, {"kv": "fp8", "context": 150}, frozenset({"kv"}))
    assert holds(when, facts) is expected


def test_the_first_case_that_holds_is_chosen() -> None:
    cases = [{"when": {"a": 1}, "value": "one"}, {"when": {"a": 2}, "value": "two"}, {"value": "else"}]
    assert [choose(cases, Facts({"a": a})) for a in (1, 2, 3)] == ["one", "two", "else"]
    assert choose(cases[:1], Facts({"a": 3})) is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"type": "int", "says": "x", "group": "g", "mini": 1}, r"setting s: unknown keys \['mini'\]"),
        ({"type": "integer", "says": "x", "group": "g"}, "setting s: unknown type 'integer'"),
    ],
)
def test_a_slip_in_the_specification_is_an_error(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_settings({"s": entry})
