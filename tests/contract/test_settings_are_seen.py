"""A setting that is written into the manual's file is seen by root playbooks and by those in playbooks/.

Ansible looks beside the file that holds the play, so the second stands on the link in playbooks/ alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product

ROOT = Path(__file__).resolve().parents[2]
SPECS = load_product("tensorfold").specs
NAMES = "query('ansible.builtin.varnames', '^(' ~ names | join('|') ~ ')$')"
PLAY: list[dict[str, Any]] = [
    {
        "name": "Settings are seen",
        "hosts": "spark-a",
        "gather_facts": False,
        "tasks": [
            {
                "name": "Say what is seen",
                "ansible.builtin.copy": {
                    "dest": "{{ seen_file }}",
                    "content": f"{{{{ {NAMES} | to_json }}}}",
                    "mode": "0644",
                },
            }
        ],
    }
]
HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "rank": 0}
INVENTORY = {"sparks": {"children": {"pair1": {"hosts": {"spark-a": HERE}}}}}


def uncommented(manual: str) -> str:
    """The manual with every example switched on."""
    names = "|".join(map(re.escape, SPECS))
    return re.sub(rf"^# ((?:{names}):(?: .*)?)$", r"\1", manual, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's folders for variables as they are, with links, around a play of one task."""
    root = tmp_path_factory.mktemp("project")
    for name in ("group_vars", "playbooks"):
        shutil.copytree(ROOT / name, root / name, symlinks=True)
    manual = root / "group_vars/all/settings.yml"
    manual.write_text(uncommented(manual.read_text()))
    for place in ("site.yml", "playbooks/probe.yml"):
        (root / place).write_text(yaml.safe_dump(PLAY, width=1000))
    (root / "elsewhere").mkdir()
    (root / "elsewhere/hosts.yml").write_text(yaml.safe_dump(INVENTORY))
    return root


def seen(project: Path, playbook: str, folder: Path) -> set[str]:
    """Names of the settings that a play sees, run from `folder` with an inventory that is not beside it."""
    target = folder / "seen.json"
    given = json.dumps({"seen_file": str(target), "names": sorted(SPECS)})
    program = Path(sys.executable).with_name("ansible-playbook")
    argv = [str(program), "-i", str(project / "elsewhere/hosts.yml"), "-e", given, str(project / playbook)]
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return set(json.loads(target.read_text()))


@pytest.mark.parametrize("playbook", ["site.yml", "playbooks/probe.yml"])
def test_every_setting_is_seen(project: Path, playbook: str, tmp_path: Path) -> None:
    assert seen(project, playbook, tmp_path) == set(SPECS)


def test_the_link_is_a_link_to_the_root() -> None:
    assert (ROOT / "playbooks/group_vars").readlink() == Path("../group_vars")


@pytest.mark.parametrize("name", ["site.yml", "serve.yml"])
def test_root_playbooks_only_name_roles_and_set_no_variables(name: str) -> None:
    for play in yaml.safe_load((ROOT / name).read_text()):
        assert set(play) == {"name", "hosts", "gather_facts", "roles"}
        assert all(set(role) == {"role"} for role in play["roles"])


def test_the_sample_inventory_has_no_settings() -> None:
    text = (ROOT / "inventory/hosts.yml").read_text()
    assert [name for name in SPECS if re.search(rf"^\s*{name}:", text, re.MULTILINE)] == []
