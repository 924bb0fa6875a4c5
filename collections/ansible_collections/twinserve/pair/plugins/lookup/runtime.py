"""Lookup `twinserve.pair.runtime`: the package that nodes get, from the very files that the modules import."""

from __future__ import annotations

DOCUMENTATION = r"""
name: runtime
short_description: Pack Twinserve's runtime
description: Packs C(module_utils) of this collection; the version is derived from the content.
author: [The Twinserve developers]
"""

EXAMPLES = r"""
- name: Show the runtime's version
  ansible.builtin.debug:
    msg: "{{ lookup('twinserve.pair.runtime').version }}"
"""

RETURN = r"""
_raw:
  description: One dictionary with C(version) and C(archive).
  type: list
  elements: dict
"""

from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import pack


class LookupModule(LookupBase):  # type: ignore[misc]
    """Pack the folder beside this one."""

    def run(
        self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, str]]:
        """Return the one package; it takes no terms."""
        version, archive = pack(Path(__file__).resolve().parent.parent / "module_utils")
        return [{"version": version, "archive": archive}]
