"""What the API promises, one named test each: `pytest tests/acceptance -k tool_call --hosts=...`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.suite import NAMES
from live_pair import Outcome


@pytest.mark.parametrize("name", NAMES)
def test_api(check: Callable[[str], Outcome], name: str) -> None:
    outcome = check(name)
    if outcome["result"] == "skipped":
        pytest.skip(outcome["text"])
    assert outcome["result"] == "passed", outcome["text"]
