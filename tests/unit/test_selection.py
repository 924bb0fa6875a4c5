"""Which devices the settings allow: NCCL's selector, and the configured port."""

from __future__ import annotations

import fake_pair as pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.selection import (
    SelectionError,
    matching,
    select_devices,
    unmatched,
)

SPARK = ("rocep1s0f0", "rocep1s0f1", "roceP2p1s0f1")
STATION = ("mlx5_0", "mlx5_1", "mlx5_10")


@pytest.mark.parametrize(
    ("selector", "present", "taken"),
    [
        ("mlx5_1", STATION, ["mlx5_1"]),  # to NCCL it is a prefix, and takes mlx5_10 too
        ("mlx5_1", ("mlx5_0", "mlx5_10"), ["mlx5_10"]),
        ("=mlx5_1", ("mlx5_0", "mlx5_10"), []),
        ("=mlx5_1", STATION, ["mlx5_1"]),
        ("mlx5", STATION, list(STATION)),
        ("mlx5_1:1", STATION, ["mlx5_1"]),
        ("^mlx5_1", STATION, ["mlx5_0", "mlx5_10"]),
        ("^=mlx5_1", STATION, ["mlx5_0", "mlx5_10"]),
        ("=rocep1s0f1,roceP2p1s0f1", SPARK, ["rocep1s0f1", "roceP2p1s0f1"]),
        ("^rocep1s0f0", SPARK, ["rocep1s0f1", "roceP2p1s0f1"]),
        (" roceP2p1s0f1:1 , rocep1s0f1 ", SPARK, ["rocep1s0f1", "roceP2p1s0f1"]),
    ],
)
def test_f16_selector(selector: str, present: tuple[str, ...], taken: list[str]) -> None:
    assert matching(selector, present) == taken


def test_f16_selector_that_selects_nothing() -> None:
    with pytest.raises(
        SelectionError, match="nccl_ib_hca =foo matches no RoCE device; present: rocep1s0f1, "
    ):
        select_devices(pair.head(), "=foo", None, "head")


def test_f15_listed_device_that_faces_nothing_is_named() -> None:
    foreign = pair.device("rocep1s0f0", "enp1s0f0np0", "0000:01:00.0", "192.0.2.140/30")
    head = [foreign, *pair.head()[:2]]
    every = "rocep1s0f0,rocep1s0f1,roceP2p1s0f1"
    problem = "rank 0: rocep1s0f0 (192.0.2.140/30) shares no subnet with the worker"
    assert unmatched([head, pair.worker()], [every, None]) == [problem]
    assert unmatched([head, pair.worker()], [None, None]) == []
    assert unmatched([head, pair.worker()], ["^mlx5_0", None]) == []
    assert unmatched([pair.head()[:2], pair.worker()], ["=rocep1s0f1,roceP2p1s0f1", None]) == []


def test_f24_configured_port_leaves_the_others_for_the_second_rail() -> None:
    assert select_devices(pair.head(), None, "enp1s0f1np1", "head") == pair.head()


@pytest.mark.parametrize(
    ("netdev", "message"),
    [
        ("enp1s0f0np0", "enp1s0f0np0 is down on the head; up RoCE ports: enp1s0f1np1, enP2p1s0f1np1"),
        ("enP7s7", "enP7s7 is no RoCE port on the head; up RoCE ports: enp1s0f1np1, enP2p1s0f1np1"),
    ],
)
def test_f24_configured_port_that_is_down_or_none(netdev: str, message: str) -> None:
    with pytest.raises(SelectionError, match=f"^{message}$"):
        select_devices(pair.head(), None, netdev, "head")
