"""Which devices the settings allow: NCCL's selector, and the configured port."""

from __future__ import annotations

import fake_pair as pair
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.selection import (
    SelectionError,
    matches,
    select_devices,
    unmatched,
)


@pytest.mark.parametrize(
    ("selector", "hca", "hit"),
    [
        ("mlx5_1", "mlx5_1", True),
        ("mlx5_1", "mlx5_10", True),
        ("=mlx5_1", "mlx5_10", False),
        ("=mlx5_1", "mlx5_1", True),
        ("=rocep1s0f1,roceP2p1s0f1", "roceP2p1s0f1", True),
        ("rocep1s0f1:1", "rocep1s0f1", True),
        ("^rocep1s0f0", "rocep1s0f0", False),
        ("^rocep1s0f0", "rocep1s0f1", True),
        ("^=mlx5_1", "mlx5_10", True),
        (" rocep1s0f1 , roceP2p1s0f1 ", "roceP2p1s0f1", True),
    ],
)
def test_f16_selector(selector: str, hca: str, hit: bool) -> None:
    assert matches(selector, hca) is hit


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


def test_f24_configured_port_brings_its_twin() -> None:
    chosen = select_devices(pair.head(), None, "enp1s0f1np1", "head")
    assert [device.hca for device in chosen] == ["rocep1s0f1", "roceP2p1s0f1"]


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
