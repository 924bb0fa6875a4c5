"""Lookup `twinserve.pair.pip`: pip as a zip that any Python runs, for machines that have none of their own."""

from __future__ import annotations

DOCUMENTATION = r"""
name: pip
short_description: Pack pip
description:
  - Packs the pip beside Ansible on the controller into one file, in Ansible's own temporary folder, and gives its path. Debian's
    Python comes without pip, and a package must not be installed where a rank runs.
author: [The Twinserve developers]
"""

EXAMPLES = r"""
- name: Bring pip
  ansible.builtin.copy:
    src: "{{ lookup('twinserve.pair.pip') }}"
    dest: /var/tmp/pip.zip
    mode: "0644"
"""

RETURN = r"""
_raw:
  description: The path on the controller.
  type: list
  elements: str
"""

import importlib.util
import os
import zipfile
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

_EPOCH = (1980, 1, 1, 0, 0, 0)


class LookupModule(LookupBase):  # type: ignore[misc]
    """Pack the package as it is installed."""

    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """Return the one path; it takes no terms."""
        found = importlib.util.find_spec("pip")
        if found is None or found.origin is None:
            raise AnsibleLookupError(
                "the Python of this Ansible has no pip: install it there (python3 -m ensurepip)"
            )
        folder = Path(found.origin).parent
        target = Path(constants.DEFAULT_LOCAL_TMP, "pip.zip")
        # Each pair's process packs it, while another one's is read.
        own = target.with_name(f"pip-{os.getpid()}.zip")
        with zipfile.ZipFile(own, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    name = f"pip/{path.relative_to(folder)}"
                    archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
        own.replace(target)
        return [str(target)]
