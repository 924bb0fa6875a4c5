"""Lookup `twinserve.pair.runtime_version`: which runtime the module `runtime` brings."""

from __future__ import annotations

DOCUMENTATION = r"""
name: runtime_version
short_description: Tell the version of Twinserve's runtime
description: It is derived from the content of C(module_utils) of this collection.
author: [The Twinserve developers]
"""

EXAMPLES = r"""
- name: Show the runtime's version
  ansible.builtin.debug:
    msg: "{{ lookup('twinserve.pair.runtime_version') }}"
"""

RETURN = r"""
_raw:
  description: The version, 12 hexadecimal digits.
  type: list
  elements: str
"""

from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import version_of
from ansible_collections.twinserve.pair.plugins.plugin_utils.runtime_source import runtime_files


class LookupModule(LookupBase):  # type: ignore[misc]
    """Read the files that the modules import."""

    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """Return the one version; it takes no terms."""
        return [version_of(runtime_files())]
