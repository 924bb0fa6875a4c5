"""Names of labs and of what belongs to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from twinlab import network
from twinlab.errors import LabError
from twinlab.layout import Lab, check_name
from twinlab.subnets import Network

_LONGEST_INTERFACE_NAME = 15


@pytest.mark.parametrize("name", ["spark", "a", "ci-12345x"])
def test_good_names_fit_into_interface_names(name: str) -> None:
    lab = Lab(check_name(name), Path("/x"), Network(0))
    assert len(lab.uplink) <= _LONGEST_INTERFACE_NAME


@pytest.mark.parametrize("name", ["", "Spark", "1st", "ten-letters", "a/b", "..", "base", "apt", "keys"])
def test_bad_names(name: str) -> None:
    with pytest.raises(LabError, match="--name"):
        check_name(name)


def test_two_labs_share_nothing_but_the_root() -> None:
    one, two = (Lab(name, Path("/x"), Network(block)) for block, name in enumerate(("one", "two")))
    for part in ("folder", "uplink", "cable_netns", "services_cgroup", "registry", "hub_url", "inventory"):
        assert getattr(one, part) != getattr(two, part)
    assert not set(network.namespaces(one)) & set(network.namespaces(two))


def test_a_host_is_found_by_name_and_by_letter() -> None:
    lab = Lab("spark", Path("/x"), Network(0))
    assert [host.name for host in lab.hosts] == ["spark-a", "spark-b"]
    assert lab.host("b") == lab.host("spark-b") == lab.hosts[1]
    with pytest.raises(LabError, match="no host spark-c: spark-a, spark-b"):
        lab.host("spark-c")
