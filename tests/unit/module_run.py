"""Run a module's main() in this process, as Ansible's own helper for tests does."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args


def run_module(
    module: ModuleType, capsys: pytest.CaptureFixture[str], check: bool = False, **args: Any
) -> dict[str, Any]:
    """The module's answer; `failed` is always there."""
    capsys.readouterr()
    given = {**args, "_ansible_check_mode": check, "_ansible_diff": True}
    with patch_module_args(given), pytest.raises(SystemExit):
        module.main()
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {"failed": False, **answer}
