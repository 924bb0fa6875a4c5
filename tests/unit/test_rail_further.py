"""Further addresses of a port on the node: the profile has them, and the port is ready once all are there."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import nm_profiles, rails_apply
from ansible_collections.twinserve.pair.plugins.module_utils.confirming import ApplyError
from probes import link

PORT: dict[str, Any] = {"netdev": "a0", "address": "10.9.1.1/24", "mtu": 9000}
MORE = PORT | {"more": ["10.5.5.1/24", "10.6.6.1/24"]}


def test_f14_a_profile_holds_the_rails_address_first() -> None:
    assert nm_profiles.wanted(MORE)["ipv4.addresses"] == "10.9.1.1/24, 10.5.5.1/24, 10.6.6.1/24"
    assert nm_profiles.wanted(PORT)["ipv4.addresses"] == "10.9.1.1/24"


@pytest.mark.parametrize(
    ("port", "there", "ready", "rest"),
    [
        (PORT, ("10.9.1.1/24",), True, ""),
        (PORT, ("10.9.1.1/24", "10.5.5.1/24"), True, "10.5.5.1/24"),
        (MORE, ("10.9.1.1/24", "10.5.5.1/24"), False, ""),
        (MORE, ("10.9.1.1/24", "10.5.5.1/24", "10.6.6.1/24"), True, ""),
        (MORE, ("10.9.1.1/24", "10.5.5.1/24", "10.6.6.1/24", "10.7.7.1/24"), True, "10.7.7.1/24"),
    ],
)
def test_f14_a_port_may_have_just_what_it_is_given(
    monkeypatch: pytest.MonkeyPatch, port: dict[str, Any], there: tuple[str, ...], ready: bool, rest: str
) -> None:
    monkeypatch.setattr(rails_apply, "read_links", lambda: {"a0": link(*there)})
    assert rails_apply.is_set(port) is ready
    check = rails_apply._checks(rails_apply.Wish(profiles=[port]), {"ports": {}})
    if not rest:
        check()
        return
    with pytest.raises(ApplyError, match=f"^a0 still has {rest} from outside NetworkManager$"):
        check()
