"""Action `twinserve.pair.settings`: read, check and complete a host's settings, on the controller alone."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import filter_loader
from ansible.utils.vars import load_extra_vars
from ansible_collections.twinserve.pair.plugins.filter import (  # noqa: F401
    bench,
    doctor,
    gateway,
    hosts,
    nodes,
    pairs,
    plans,
)
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import CatalogueError
from ansible_collections.twinserve.pair.plugins.module_utils.pair_finding import NoPair, Pair, find_pair
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import Fault
from ansible_collections.twinserve.pair.plugins.module_utils.settings_names import PLAY_SWITCHES
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import ENGINES
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import (
    DEFAULT_ENGINE,
    Outcome,
    check_host,
    foreign_faults,
    foreign_names,
    setting_names,
    switch_faults,
    word_faults,
)

# Variables that Ansible itself provides, and ours.
MAGIC = re.compile(
    r"ansible_.*|twinserve_.*|inventory_.*|playbook_.*|role_.*|group.*|hostvars|omit|vars|environment|play_.*|rank"
)

# Ansible's own filters, and by the import above ours: workers are forked, one for each task and host, from
# the process that loads this. One that finds them loaded is quicker by a tenth of a second.
list(filter_loader.all())


class ActionModule(ActionBase):  # type: ignore[misc]
    """Never connects; the same input gives the same facts on every run."""

    _requires_connection = False
    _supports_check_mode = True
    _VALID_ARGS = frozenset({"engines_path"})

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the facts twinserve_{settings,pair,release}, or fail with every fault."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        engines = Path(self._task.args.get("engines_path") or ENGINES)
        host = variables["inventory_hostname"]
        try:
            pair = find_pair(host, _plain(variables["groups"]), self._ranks(variables))
            outcome = self._check(host, pair, variables, engines)
        except (NoPair, CatalogueError) as error:
            return {**result, "failed": True, "msg": str(error)}
        # The head speaks for the pair, unless the run leaves it out.
        speaks = host == pair.hosts[0] or pair.hosts[0] not in variables.get("ansible_play_hosts_all", [])
        if outcome.faults:
            return {**result, "failed": True, "msg": _message(pair, outcome.faults, speaks)}
        if speaks and outcome.warnings:
            result["warnings"] = outcome.warnings
        facts = {
            "twinserve_settings": outcome.settings,
            "twinserve_pair": pair.facts(host),
            "twinserve_release": outcome.release,
        }
        return {**result, "changed": False, "ansible_facts": facts}

    def _check(self, host: str, pair: Pair, variables: Mapping[str, Any], engines: Path) -> Outcome:
        names = sorted(setting_names(engines))
        hostvars = variables["hostvars"]
        unreadable: list[Fault] = []
        raw = {one: self._read(names, hostvars[one], unreadable if one == host else []) for one in pair.hosts}
        # A play's own variables are seen by the task only, not through hostvars.
        raw[host].update(self._read([name for name in names if name in variables], variables, unreadable))
        named = {one: _own_names(hostvars[one]) for one in pair.hosts} | {host: _own_names(variables)}
        outcome = check_host(host, pair, raw, named, os.environ, engines)
        switches = self._read(sorted(PLAY_SWITCHES), variables, unreadable)
        extra = load_extra_vars(self._loader)
        words = [*word_faults(extra), *self._foreign(extra, variables, engines)]
        outcome.faults = [*dict.fromkeys(unreadable), *switch_faults(switches), *words, *outcome.faults]
        return outcome

    def _foreign(self, extra: Mapping[str, Any], variables: Mapping[str, Any], engines: Path) -> list[Fault]:
        """What `-e` gives to nobody; what another pair of the run can use is ignored here, with a note."""
        found = foreign_names(extra, engines)
        if not found:
            return []
        hostvars, names = variables["hostvars"], variables.get("ansible_play_hosts_all", [])
        told = [hostvars[name].get("engine") or DEFAULT_ENGINE for name in names]
        return foreign_faults(found, {str(self._templar.template(engine)) for engine in told})

    def _read(self, names: list[str], variables: Mapping[str, Any], faults: list[Fault]) -> dict[str, Any]:
        """The settings among `variables`, templated; one that cannot be is a fault of this host."""
        values = {}
        for name in names:
            if name not in variables:
                continue
            try:
                values[name] = _plain(self._templar.template(variables[name]))
            except AnsibleError as error:
                faults.append(Fault(f"{name} cannot be read: {error}", node=True))
        return values

    def _ranks(self, variables: Mapping[str, Any]) -> dict[str, Any]:
        hostvars = variables["hostvars"]
        return {
            name: _plain(hostvars[name]["rank"])
            for name in variables["groups"]["all"]
            if "rank" in hostvars[name]
        }


def _own_names(variables: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in variables if not MAGIC.fullmatch(name))


def _message(pair: Pair, faults: list[Fault], speaks: bool) -> str:
    """One line a fault; what concerns the pair is told once, by its head."""
    told = faults if speaks else [fault for fault in faults if fault.node]
    lines = [fault.text for fault in told]
    if len(told) < len(faults):
        lines.append(f"{pair.hosts[0]} says what is wrong with the settings of {pair.name}")
    return lines[0] if len(lines) == 1 else "\n- ".join([f"settings are refused ({pair.name}):", *lines])


def _plain(value: Any) -> Any:
    """The value in plain types, without what Ansible attaches to it."""
    return json.loads(json.dumps(value, default=str))
