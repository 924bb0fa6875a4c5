"""A rank that reads the head's weights does not start before they are mounted."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.agent import weights
from ansible_collections.twinserve.pair.plugins.module_utils.agent.errors import AgentError
from ansible_collections.twinserve.pair.plugins.module_utils.shared_weights import HOME, MOUNT

PLAN = {"mounts": [{"source": HOME}]}


def test_m19_a_rank_does_not_start_on_an_empty_folder(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"systemd-1 {MOUNT} autofs rw 0 0\n")
    with pytest.raises(AgentError, match="the head's weights are not mounted at .*: run playbooks/model.yml"):
        weights.mount(PLAN, mounts)
    weights.mount({"mounts": [{"source": "/home/bob/.cache/huggingface"}]}, mounts)
    with mounts.open("a") as file:
        file.write(f"198.51.100.1:/hub {MOUNT} nfs4 ro 0 0\n")
    weights.mount(PLAN, mounts)
