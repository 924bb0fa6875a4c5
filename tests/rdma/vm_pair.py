"""The two virtual machines as the tests see them: programs on them, and the real playbook against them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "build/vm/inventory"
USER = "nvidia"
HEAD, WORKER = "roce-a", "roce-b"
RAILS = {"enp1s0f0np0": "rocep1s0f0", "enP2p1s0f0np0": "roceP2p1s0f0"}


@dataclass(frozen=True)
class Play:
    """Output of a run that went well, and how many steps changed something."""

    output: str
    changed: int


@contextlib.contextmanager
def machines() -> Iterator[None]:
    """Two fresh machines. With KEEP_VMS=1 those that run are used, and left running."""
    keep = os.environ.get("KEEP_VMS") == "1"
    if not keep:
        verb("down")
    verb("up")
    yield
    if not keep:
        verb("down")


def verb(*words: str) -> str:
    """Run `lab/rdma VERB ...` and return what it prints."""
    return _run(str(ROOT / "lab/rdma"), *words)


def on(host: str, command: str) -> str:
    """Run a shell command on a machine, as the user who may sudo."""
    return verb("ssh", host, command)


def play(*words: str, playbook: str = "fabric") -> Play:
    """Run a playbook as a user would."""
    output = _run(*_playbook(playbook), *words)
    return Play(output, sum(int(count) for count in re.findall(r"\bchanged=(\d+)", output)))


def refused(*words: str, playbook: str) -> str:
    """What a playbook says that must fail, in one line."""
    done = _attempt(*_playbook(playbook), *words)
    assert done.returncode != 0, done.stdout
    return " ".join(done.stdout.split())


def module(host: str, name: str, arguments: dict[str, Any]) -> str:
    """What one of the product's modules, as root, says on a machine, whether it does its work or not."""
    program = str(ROOT / ".venv/bin/ansible")
    words = ["-o", "--become", "-m", f"twinserve.pair.{name}", "-a", json.dumps(arguments)]
    return _attempt(program, "-i", str(INVENTORY), host, *words).stdout


def fails(host: str, command: str) -> str:
    """What a shell command says that must fail on a machine."""
    done = _attempt(str(ROOT / "lab/rdma"), "ssh", host, command)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def _playbook(name: str) -> list[str]:
    return [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(INVENTORY), f"playbooks/{name}.yml"]


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
    done = _attempt(*argv)
    assert done.returncode == 0, f"{' '.join(argv)}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _attempt(*argv: str) -> subprocess.CompletedProcess[str]:
    # An emulated processor takes its time.
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "180"}
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
