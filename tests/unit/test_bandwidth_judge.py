"""What is said of measured rates: nothing of good ones, one text of a slow rail."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.bandwidth_judge import report

NAMES = ["spark-a", "spark-b"]
NETDEVS = ("enp1s0f0np0", "enP2p1s0f0np0")
# PCIe in Gb/s before headers: four lanes of the fifth generation.
GEN5_X4 = 126.0


def run(rail: int, to: str, gbits: float | None, **more: Any) -> dict[str, Any]:
    """One run as the module returns it, on a Spark unless more says otherwise."""
    spark = {"netdev": NETDEVS[rail], "speed": 200.0, "pcie": GEN5_X4, "memory": "host", "together": False}
    problem = "" if gbits is not None else "198.51.100.2:18515 does not answer"
    return {**spark, "rail": rail, "to": to, "gbits": gbits, "problem": problem, **more}


def node(*runs: dict[str, Any], gpu_problem: str = "", rose: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"runs": list(runs), "gpu_problem": gpu_problem, "rose": list(rose)}


def both(forth: float | None, back: float | None, rail: int = 0, **more: Any) -> dict[str, list[str]]:
    """The report on one rail, measured from the head to the worker and back."""
    there, here = run(rail, "spark-b", forth, **more), run(rail, "spark-a", back, **more)
    return report([node(there), node(here)], NAMES)


@pytest.mark.parametrize(("forth", "back"), [(97.2, 97.2), (92.57, 97.28), (111.7, 92.6)])
def test_f17_what_a_spark_can_do_is_good(forth: float, back: float) -> None:
    said = both(forth, back)
    assert said["lines"] == [
        f"rail 0: spark-a -> spark-b {forth:.1f} Gb/s, spark-b -> spark-a {back:.1f} Gb/s"
    ]
    assert said["warnings"] == []


@pytest.mark.parametrize(("forth", "back", "told"), [(13.2, 13.23, "13.2"), (24.9, 8.1, "8.1")])
def test_f17_a_degraded_start_is_told_with_the_power_cycle(forth: float, back: float, told: str) -> None:
    assert both(forth, back)["warnings"] == [
        f"rail 0 moves {told} Gb/s on a 200 Gb/s link (degraded CX7 start): power-cycle both nodes"
    ]


@pytest.mark.parametrize("gbits", [7.9, 25.1, 60.0])
def test_f17_other_slow_rates_are_not_called_degraded(gbits: float) -> None:
    assert both(gbits, gbits)["warnings"] == [
        f"rail 0 moves {gbits} Gb/s, about 111 are expected: reseat the cable, then power-cycle both nodes"
    ]


def test_one_slow_direction_is_named_with_both_numbers() -> None:
    assert both(97.28, 41.06)["warnings"] == [
        "rail 0 moves 41.1 Gb/s from spark-b to spark-a, but 97.3 Gb/s from spark-a to spark-b: "
        "reseat the cable, then power-cycle both nodes"
    ]
    assert both(13.2, 97.2)["warnings"][0].startswith(
        "rail 0 moves 13.2 Gb/s from spark-a to spark-b, but 97.2 Gb/s from spark-b to spark-a"
    )


def test_a_narrow_pcie_link_is_not_a_degraded_start() -> None:
    assert both(24.0, 24.0, pcie=31.5)["warnings"] == [
        "rail 0 moves 24.0 Gb/s on a 200 Gb/s link: PCIe of enp1s0f0np0 on spark-a is up with 32 Gb/s only; "
        "power-cycle spark-a"
    ]


@pytest.mark.parametrize("unknown", [{"speed": None}, {"pcie": None}])
def test_what_a_rail_can_carry_is_not_guessed(unknown: dict[str, Any]) -> None:
    assert both(30.0, 30.0, **unknown)["warnings"] == []


def test_f17_a_degraded_start_needs_no_pcie_to_be_known() -> None:
    assert "degraded CX7 start" in both(13.2, 13.2, pcie=None)["warnings"][0]


def together(*forth: float, **more: Any) -> dict[str, list[str]]:
    """The report on two rails at once, from the head only."""
    runs = [run(rail, "spark-b", gbits, together=True, **more) for rail, gbits in enumerate(forth)]
    return report([node(*runs), node()], NAMES)


def test_both_twins_at_once_are_judged_by_their_one_cable() -> None:
    said = together(92.57, 97.28)
    assert said["lines"] == ["2 rails at once: spark-a -> spark-b 189.8 Gb/s"]
    assert said["warnings"] == []
    assert together(49.0, 49.2)["warnings"] == [
        "2 rails at once move 98.2 Gb/s from spark-a to spark-b, about 200 are expected"
    ]


def test_a_rail_that_is_slow_alone_is_told_once() -> None:
    alone = [run(rail, "spark-b", gbits) for rail, gbits in ((0, 13.2), (1, 97.2))]
    at_once = [run(rail, "spark-b", 13.2, together=True) for rail in (0, 1)]
    assert report([node(*alone, *at_once), node()], NAMES)["warnings"] == [
        "rail 0 moves 13.2 Gb/s on a 200 Gb/s link (degraded CX7 start): power-cycle both nodes"
    ]


STATION: dict[str, Any] = {"speed": 400.0, "pcie": 944.0, "netdev": "enP1p3s0f0np0"}


def test_host_memory_of_a_station_is_normal_at_220_to_230() -> None:
    said = both(228.8, 221.0, **STATION)
    assert said["warnings"] == []
    assert said["lines"][-1] == "220 to 230 Gb/s of 400 are normal for host memory and one queue pair"


def test_two_cables_of_stations_add_up() -> None:
    runs = [run(rail, "spark-b", 225.0, together=True, **STATION | {"netdev": f"enP{rail + 1}p3s0f0np0"})
            for rail in (0, 1)]  # fmt: skip
    assert report([node(*runs), node()], NAMES)["warnings"] == []
    slow = [{**one, "gbits": 110.0} for one in runs]
    assert report([node(*slow), node()], NAMES)["warnings"] == [
        "2 rails at once move 220.0 Gb/s from spark-a to spark-b, about 460 are expected"
    ]


def test_gpu_memory_is_judged_by_the_link_alone() -> None:
    said = both(392.1, 391.0, memory="gpu", **STATION)
    assert said["lines"] == [
        "rail 0, GPU memory: spark-a -> spark-b 392.1 Gb/s, spark-b -> spark-a 391.0 Gb/s"
    ]
    assert said["warnings"] == []
    slow = both(228.8, 228.8, memory="gpu", **STATION)["warnings"]
    assert slow == [
        "rail 0 moves 228.8 Gb/s, about 400 are expected: reseat the cable, then power-cycle both nodes"
    ]


def test_gpu_memory_that_a_node_cannot_measure_is_told_once() -> None:
    runs = [run(0, "spark-b", 228.8, **STATION), run(0, "spark-b", None, memory="gpu", **STATION)]
    said = report([node(*runs), node(gpu_problem="no --use_data_direct")], NAMES)
    assert said["lines"][0] == "rail 0: spark-a -> spark-b 228.8 Gb/s"
    assert said["warnings"] == ["spark-b: no --use_data_direct"]


def test_what_was_not_measured_is_told_with_its_reason_and_the_rest_is_judged() -> None:
    said = both(None, 13.2)
    assert said["lines"] == ["rail 0: spark-a -> spark-b not measured, spark-b -> spark-a 13.2 Gb/s"]
    assert said["warnings"][0] == (
        "rail 0 was not measured (spark-a -> spark-b): 198.51.100.2:18515 does not answer"
    )
    assert "degraded CX7 start" in said["warnings"][1]
    assert len(both(None, None)["warnings"]) == 2


def test_counters_that_rose_meanwhile_are_told_by_node() -> None:
    text = "rocep1s0f0: symbol_error rose by 3 (bits are damaged on the cable)"
    assert report([node(), node(rose=(text,))], NAMES)["warnings"] == [
        f"spark-b: while the rails were measured, {text}"
    ]
