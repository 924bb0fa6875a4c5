"""Who listens where, as `ss` prints it, and which of a rank's ports are taken by that."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.listeners import (
    Listener,
    parse_listeners,
    taken,
)

SS = """\
LISTEN 0      4096       127.0.0.1:8888  0.0.0.0:*  users:(("llama-server",pid=4711,fd=5),("x",pid=2,fd=5))
LISTEN 0      4096   127.0.0.53%lo:53         0.0.0.0:*
LISTEN 0      128             [::]:22            [::]:*    users:(("sshd",pid=1,fd=4))
LISTEN 0      128 [::ffff:10.0.0.1]:80              *:*
LISTEN 0      100                *:9000             *:*    users:(("docker-proxy",pid=9,fd=4))
"""


def test_what_ss_prints() -> None:
    assert parse_listeners(SS) == [
        Listener("127.0.0.1", 8888, "llama-server", 4711),
        Listener("127.0.0.53", 53),
        Listener("::", 22, "sshd", 1),
        Listener("10.0.0.1", 80),
        Listener("*", 9000, "docker-proxy", 9),
    ]
    assert parse_listeners("") == []


@pytest.mark.parametrize(
    ("host", "address", "conflict"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "*", True),
        ("127.0.0.1", "::", True),
        ("127.0.0.1", "192.0.2.11", False),
        ("127.0.0.1", "::1", False),
        ("0.0.0.0", "192.0.2.11", True),
        ("0.0.0.0", "::1", False),
        ("::1", "0.0.0.0", False),
        ("::", "127.0.0.1", True),
        ("", "192.0.2.11", True),
    ],
)
def test_a_listener_is_in_the_way_where_addresses_meet(host: str, address: str, conflict: bool) -> None:
    wanted: list[dict[str, Any]] = [{"setting": "api_port", "host": host, "port": 8888}]
    assert bool(taken(wanted, [Listener(address, 8888)])) == conflict
    assert taken(wanted, [Listener(address, 8889)]) == []


def test_who_has_the_port_is_named() -> None:
    ports = [{"setting": "api_port", "host": "127.0.0.1", "port": 8888},
             {"setting": "master_port", "host": "", "port": 22},
             {"setting": "other", "host": "127.0.0.53", "port": 53}]  # fmt: skip
    assert taken(ports, parse_listeners(SS)) == [
        "port 8888 is taken by llama-server (pid 4711): stop it, or set another api_port",
        "port 22 is taken by sshd (pid 1): stop it, or set another master_port",
        "port 53 is taken by another program: stop it, or set another other",
    ]
