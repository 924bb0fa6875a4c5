"""Checks against a live pair, for its owner's CI. They change nothing. Three ways to say where it is:

    pytest tests/acceptance --ansible-inventory=inventory              all pairs of an inventory
    pytest tests/acceptance --sudo --hosts=ssh://spark-a,ssh://spark-b one pair, its head and worker
    TWINSERVE_API_KEY=... pytest tests/acceptance --api-url=https://spark-a:8888 --release=v1.1

The first two ask on the head, which knows what is promised; the last needs no login: it is told by options.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
import testinfra
from live_pair import Outcome, Pair, catalogue_promise, check_from_here, check_on_head
from testinfra.utils.ansible_runner import AnsibleRunner

URL = "--api-url"


def pytest_addoption(parser: pytest.Parser) -> None:
    """What is needed without a login."""
    group = parser.getgroup("twinserve")
    group.addoption("--api-url", help="base URL of the API without /v1; the key is in TWINSERVE_API_KEY")
    group.addoption("--api-ca", default="", help="file with the certificate to trust for an https URL")
    group.addoption(
        "--release", default=None, help="the release that is served there; the default is the engine's"
    )
    group.addoption("--engine", default=None, help="its engine; the release says it, where one is given")
    group.addoption(
        "--catalogue",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder with releases of your own",
    )
    group.addoption(
        "--promise",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="a setting that is not the default",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs once for each pair; by URL there is one, and nothing to see but its API."""
    config = metafunc.config
    by_url = config.getoption("api_url", default=None)
    if "check" in metafunc.fixturenames:
        places = [URL] if by_url else _heads(config)
        metafunc.parametrize("check", places, indirect=True, ids=["api"] if by_url else None, scope="session")
    if "pair" in metafunc.fixturenames:
        without = pytest.param(
            URL, marks=pytest.mark.skip(reason="needs a login: --hosts or --ansible-inventory")
        )
        metafunc.parametrize("pair", [without] if by_url else _heads(config), indirect=True, scope="session")


def _heads(config: pytest.Config) -> list[str]:
    """One word for each pair: --hosts for the one of that option, else the heads of the inventory."""
    if config.getoption("hosts"):
        return ["--hosts"]
    inventory = config.getoption("ansible_inventory")
    if not inventory:
        raise pytest.UsageError("say where the pair is: --hosts, --ansible-inventory or --api-url")
    runner = AnsibleRunner(inventory)
    return [name for name in runner.get_hosts() if str(runner.get_variables(name).get("rank")) == "0"]


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest) -> Pair:
    """The pair that this test is for."""
    return _opened(request.config, request.param)


@pytest.fixture(scope="session")
def check(request: pytest.FixtureRequest) -> Callable[[str], Outcome]:
    """Run one check of the API by its name."""
    config = request.config
    if request.param != URL:
        opened = _opened(config, request.param)
        return lambda name: check_on_head(opened, name)
    promise = catalogue_promise(
        *(config.getoption(name) for name in ("release", "promise", "engine", "catalogue"))
    )
    key, ca_file = os.environ.get("TWINSERVE_API_KEY", ""), config.getoption("api_ca")
    return lambda name: check_from_here(config.getoption("api_url"), key, ca_file, promise, name)


def _opened(config: pytest.Config, place: str) -> Pair:
    if place == "--hosts":
        names = config.getoption("hosts").split(",")
        options = (
            "connection",
            "ssh_config",
            "ssh_identity_file",
            "ansible_inventory",
            "force_ansible",
            "sudo",
        )
        given = {name: config.getoption(name) for name in options}
        hosts = sorted(testinfra.get_hosts(names, **given), key=_rank)
    else:
        inventory = config.getoption("ansible_inventory")
        open_host: Callable[[str], Any] = lambda name: testinfra.get_host(  # noqa: E731
            f"ansible://{name}?ansible_inventory={inventory}", sudo=True
        )
        head = open_host(place)
        config_file = json.loads(head.file("/etc/twinserve/pair.json").content_string)
        hosts = [head, *(open_host(member["name"]) for member in config_file["ranks"][1:])]
    return Pair(tuple(hosts), json.loads(hosts[0].file("/etc/twinserve/pair.json").content_string))


def _rank(host: Any) -> int:
    return int(json.loads(host.file("/etc/twinserve/rank.json").content_string)["rank"])
