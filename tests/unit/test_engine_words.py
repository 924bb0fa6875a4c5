"""What engine data may say beyond plain words: parts for some ranks, lists that follow, borrowed defaults."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import merged
from ansible_collections.twinserve.pair.plugins.module_utils.conditions import Facts, amount
from ansible_collections.twinserve.pair.plugins.module_utils.render import rank_plans
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve, same_as
from engine_data import LICENCE, NODES, PRODUCT, settings


def commands(own: dict[str, Any], **given: Any) -> list[list[str]]:
    """The command of each rank of an engine that has `own` data too."""
    release = merged(PRODUCT.release("v1.1"), own)
    return [plan["command"] for plan in rank_plans([settings(**given)] * 2, release, NODES, "pair1")]


@pytest.mark.parametrize(
    ("where", "ranks"), [("all", [0, 1]), ("head", [0]), ("workers", [1]), (None, [0, 1])]
)
def test_a_part_of_a_command_is_for_all_ranks_the_head_or_the_workers(
    where: str | None, ranks: list[int]
) -> None:
    part = {"words": ["--mine"], **({"on": where} if where else {})}
    found = commands({"command": [part]})
    assert [rank for rank, command in enumerate(found) if command == ["--mine"]] == ranks


@pytest.mark.parametrize(
    ("step", "most", "said"),
    [
        (5, 16, "5,10,20,40,80"),
        (5, 6, "5,10,20,30"),
        (1, 1, "1"),
        (3, 2, "3,6"),
        ("parallel", 2, "4,8"),
        ("parallel + 1", "copy_max", "5,10,20,40,75"),
    ],
)
def test_a_series_doubles_up_to_its_end(step: Any, most: Any, said: str) -> None:
    own = {"series": {"sizes": {"step": step, "most": most}}, "command": [{"words": ["[${sizes}]"]}]}
    assert commands(own, parallel=4, copy_max=15) == [[f"[{said}]"]] * 2


@pytest.mark.parametrize(
    ("operand", "value"),
    [(7, 7), ("parallel", 4), ("parallel + 30", 34), ("fp8", "fp8"), ("none + 1", "none + 1"), (None, None)],
)
def test_an_amount_is_a_number_or_a_settings(operand: Any, value: Any) -> None:
    assert amount(operand, Facts({"parallel": 4})) == value


@pytest.mark.parametrize(
    ("default", "setting"),
    [("${parallel}", "parallel"), ("a ${parallel}", None), ("parallel", None), (4, None), (None, None)],
)
def test_a_default_that_is_a_settings_name_alone_borrows_its_value(default: Any, setting: str | None) -> None:
    assert same_as(default) == setting


@pytest.mark.parametrize(("given", "value"), [({}, 15), ({"copy_max": 3}, 3), ({"master_port": 4000}, 4000)])
def test_a_borrowed_default_is_the_others_value_until_somebody_sets_it(
    given: dict[str, int], value: int
) -> None:
    cases = [{"when": {"copy_max": {"set": True}}, "value": "${copy_max}"}]
    release = merged(PRODUCT.release("v1.1"), {"defaults": {"master_port": cases}})
    found = resolve(PRODUCT.specs, [], release, {**LICENCE, **given})
    assert found.values["master_port"] == value
    assert found.values["nccl_channels"] == 4
