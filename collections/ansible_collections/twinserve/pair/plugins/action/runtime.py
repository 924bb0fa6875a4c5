"""Action `twinserve.pair.runtime`: pack the runtime; the module of the same name puts it on the node."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import pack, version_of
from ansible_collections.twinserve.pair.plugins.plugin_utils.runtime_source import runtime_files


class ActionModule(ActionBase):  # type: ignore[misc]
    """Packed here, by the one task that needs it: others ask for the version alone, which is much quicker."""

    _supports_check_mode = True
    _VALID_ARGS = frozenset({"path", "activate"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module says."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        files = runtime_files()
        package = {"version": version_of(files), "archive": pack(files)}
        done = self._execute_module(module_args={**self._task.args, **package}, task_vars=task_vars)
        return {**result, **done}
