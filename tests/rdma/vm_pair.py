"""The two virtual machines as the tests see them: programs on them, and the real playbook against them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "build/vm/inventory"
HEAD, WORKER = "roce-a", "roce-b"
RAILS = {"enp1s0f0np0": "rocep1s0f0", "enP2p1s0f0np0": "roceP2p1s0f0"}


@dataclass(frozen=True)
class Play:
    """Output of a run that went well, and how many steps changed something."""

    output: str
    changed: int


def verb(*words: str) -> str:
    """Run `lab/rdma VERB ...` and return what it prints."""
    return _run(str(ROOT / "lab/rdma"), *words)


def on(host: str, command: str) -> str:
    """Run a shell command on a machine, as the user who may sudo."""
    return verb("ssh", host, command)


def play(*words: str) -> Play:
    """Run fabric.yml as a user would."""
    program = str(ROOT / ".venv/bin/ansible-playbook")
    output = _run(program, "-i", str(INVENTORY), "playbooks/fabric.yml", *words)
    return Play(output, sum(int(count) for count in re.findall(r"\bchanged=(\d+)", output)))


def rdma_info(host: str) -> dict[str, dict[str, Any]]:
    """What the product's own look at the fabric says of each RoCE device of a machine."""
    program = str(ROOT / ".venv/bin/ansible")
    output = _run(program, "-i", str(INVENTORY), host, "-o", "-m", "twinserve.pair.rdma_info")
    found = json.loads(output.partition("=>")[2])["rdma"]
    return {device["hca"]: device for device in found["devices"]}


def addresses(host: str) -> dict[str, list[str]]:
    """IPv4 addresses of each rail's port, as `ip` says."""
    said = json.loads(on(host, "ip -j -4 addr"))
    found = {link["ifname"]: link["addr_info"] for link in said if link}
    return {port: [f"{info['local']}/{info['prefixlen']}" for info in found.get(port, [])] for port in RAILS}


def gid_table(host: str, hca: str) -> dict[int, str]:
    """The filled entries by the kernel's files themselves: index, and GID with type."""
    folder = f"/sys/class/infiniband/{hca}/ports/1"
    said = on(host, f"cd {folder}; grep -Hv '^[0:]*$' gids/*; grep -H . gid_attrs/types/* 2>/dev/null; true")
    gids = dict(re.findall(r"^gids/(\d+):(\S+)$", said, re.MULTILINE))
    types = dict(re.findall(r"^gid_attrs/types/(\d+):(.+)$", said, re.MULTILINE))
    return {int(index): f"{gid} {types[index]}" for index, gid in gids.items()}


def _run(*argv: str) -> str:
    # An emulated processor takes its time.
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "180"}
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{' '.join(argv)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
