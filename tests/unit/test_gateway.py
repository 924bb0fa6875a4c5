"""The gateway's plan, keys and certificates, from what a look at the head found."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.gateway import certificate
from ansible_collections.twinserve.pair.plugins.module_utils.gateway.keys import (
    keys_conf,
    new_key,
    parse_keys,
)
from ansible_collections.twinserve.pair.plugins.module_utils.gateway.plan import plan
from ansible_collections.twinserve.pair.plugins.module_utils.gateway.upstream import upstream_conf
from ansible_collections.twinserve.pair.plugins.module_utils.managed_files import fingerprint

NOW = 1_800_000_000.0
DAY = 86400
NAMES = ["DNS:localhost", "DNS:spark-a", "IP:127.0.0.1", "IP:192.0.2.11"]
KEYS = {"me": "m" * 20}
CONF = {"path": "/etc/twinserve/gateway/nginx.conf", "content": "new\n", "mode": "0644"}
UNIT = {"path": "/etc/systemd/system/twinserve-gateway.service", "content": "unit\n", "mode": "0644"}
OPENSSL = """\
notBefore=Nov 13 08:00:00 2024 GMT
notAfter=Feb 15 08:00:00 2027 GMT
X509v3 Subject Alternative Name:
    DNS:localhost, DNS:spark-a, IP Address:127.0.0.1, IP Address:192.0.2.11, IP Address:2001:DB8:0:0:0:0:0:1
"""


def node(**changes: Any) -> dict[str, Any]:
    """A head on which the gateway stands as it is wanted."""
    good = {"names": NAMES, "ends": NOW + 200 * DAY}
    return {
        "tools": {"nginx": True, "openssl": True, "cryptography": True},
        "files": {
            CONF["path"]: fingerprint("new\n", "0644"),
            UNIT["path"]: fingerprint("unit\n", "0644"),
            "/etc/twinserve/gateway/keys.conf": fingerprint(keys_conf(KEYS), "0600"),
        },
        "gateway": {"own_key": False, "own_certificate": good},
        "services": {"twinserve-gateway.service": {"ActiveState": "active"}},
        **changes,
    }


def shows(names: list[str], days: int) -> dict[str, Any]:
    """A gateway whose certificate has these names for so many days."""
    return {"gateway": {"own_certificate": {"names": names, "ends": NOW + days * DAY}}}


def planned(found: dict[str, Any], keys: dict[str, str] = KEYS, tls: str = "own_ca") -> dict[str, Any]:
    """The steps for a head, without those that have nothing to do."""
    steps = plan(found, [CONF, UNIT], {"gateway_tls": tls}, NAMES, keys, NOW)
    return {name: step for name, step in steps.items() if step}


def test_a_gateway_that_stands_needs_nothing() -> None:
    assert planned(node()) == {}


def test_a_bare_head_needs_everything_and_nothing_of_it_waits() -> None:
    steps = planned({"tools": {}, "files": {}, "gateway": None, "services": {}})
    assert steps == {
        "needed": True,
        "soon": True,
        "packages": ["nginx", "openssl", "python3-cryptography"],
        "install": True,
        "write": [CONF, UNIT],
        "new_keys": True,
        "certificate": True,
        "start": True,
    }


@pytest.mark.parametrize(
    ("changes", "keys", "step"),
    [
        ({"services": {}}, KEYS, {"start": True}),
        ({}, {"me": "n" * 20}, {"new_keys": True}),
        ({}, {}, {"new_keys": True}),
        (shows(NAMES[1:], days=200), KEYS, {"certificate": True}),
        (shows(NAMES, days=89), KEYS, {"certificate": True}),
    ],
)
def test_what_differs_is_mended_and_nothing_else(
    changes: dict[str, Any], keys: dict[str, str], step: dict[str, Any]
) -> None:
    assert planned(node(**changes), keys) == {"needed": True, "soon": True, **step}


def test_a_changed_unit_waits() -> None:
    files = {**node()["files"], UNIT["path"]: fingerprint("older\n", "0644")}
    assert planned(node(files=files)) == {"needed": True, "units": [UNIT]}


def test_an_installation_that_was_interrupted_is_finished() -> None:
    note = "/etc/twinserve/gateway/bringing"
    steps = planned(node(files={**node()["files"], note: "0644 sha256:1"}))
    assert steps == {"needed": True, "soon": True, "install": True}


def test_what_looked_after_a_certificate_of_others_goes_with_it() -> None:
    timer = "/etc/systemd/system/twinserve-gateway-certificate.timer"
    steps = planned(node(files={**node()["files"], timer: "0644 sha256:1"}))
    assert steps == {"needed": True, "soon": True, "stale": [timer]}


def test_the_key_that_was_made_here_stays_until_others_are_given() -> None:
    own = {"own_key": True, "own_certificate": node()["gateway"]["own_certificate"]}
    assert planned(node(gateway=own), {}) == {}


@pytest.mark.parametrize(("tls", "packages"), [("files", None), ("acme", ["certbot"])])
def test_a_certificate_of_others_is_not_made_here(tls: str, packages: list[str] | None) -> None:
    found = planned(node(gateway=None), tls=tls)
    assert "certificate" not in found
    assert found.get("packages") == packages


def test_keys_are_read_as_they_were_written_and_compared_to_the_letter() -> None:
    keys = {"ci": new_key(), "Bob": "B-o_b" * 4}
    text = keys_conf(keys)
    assert parse_keys(text) == keys
    assert '"~^Bearer B-o_bB-o_bB-o_bB-o_b$" Bob;' in text
    assert new_key() != new_key()


def test_a_certificate_is_read_with_all_its_names() -> None:
    found = certificate.parse(OPENSSL)
    assert list(found.names) == [*NAMES, "IP:2001:db8::1"]
    assert (found.begins, found.ends) == (1731484800.0, 1802678400.0)
    with pytest.raises(ValueError, match="no notBefore in 'unable"):
        certificate.parse("unable to load certificate")


def test_names_and_addresses_are_told_apart() -> None:
    assert certificate.alternative_names(["Spark-A", "192.0.2.11", "192.0.2.11", ""]) == NAMES


@pytest.mark.parametrize(("host", "line"), [("127.0.0.1", "127.0.0.1:18888"), ("::1", "[::1]:18888")])
def test_the_engine_is_found_where_it_listens(host: str, line: str) -> None:
    assert upstream_conf({"host": host, "port": 18888}) == f"server {line};\n"
