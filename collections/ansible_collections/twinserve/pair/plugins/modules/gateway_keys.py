from __future__ import annotations

DOCUMENTATION = r"""
module: gateway_keys
short_description: Give the gateway its API keys
description:
  - Runs on the head. Writes which keys the gateway takes, readable by root alone.
  - Without any key one is made, once, and kept in C(/etc/twinserve/gateway/api-key).
author: [The Twinserve developers]
options:
  keys:
    description: Keys by name.
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Only compares.}
  diff_mode: {support: none, description: Keys are shown nowhere.}
"""

EXAMPLES = r"""
- name: Let two clients in
  twinserve.pair.gateway_keys:
    keys: "{{ api_keys }}"
"""

RETURN = r"""
names:
  description: Names of the keys that the gateway takes.
  type: list
  elements: str
  returned: success
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.atomic_file import replace
from ..module_utils.gateway.keys import KEYS, OWN_KEY, OWN_NAME, keys_conf, new_key

ARGUMENTS: dict[str, Any] = {"keys": {"type": "dict", "default": {}, "no_log": True}}
_MODE = 0o600


def main() -> None:
    """Compare, then write."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    keys: dict[str, str] = module.params["keys"]
    makes = not keys and not OWN_KEY.is_file()
    if not keys:
        keys = {OWN_NAME: new_key() if makes else OWN_KEY.read_text().strip()}
    wanted = keys_conf(keys)
    changed = (
        makes or not KEYS.is_file() or KEYS.read_text() != wanted or KEYS.stat().st_mode & 0o777 != _MODE
    )
    if changed and not module.check_mode:
        if makes:
            replace(OWN_KEY, f"{keys[OWN_NAME]}\n".encode(), _MODE)
        replace(KEYS, wanted.encode(), _MODE)
    module.exit_json(changed=changed, names=sorted(keys))


if __name__ == "__main__":
    main()
