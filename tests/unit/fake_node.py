"""A node for the agent: a folder with sysfs and plan, and programs on PATH that answer from files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import fake_sysfs as fake
import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import sysfs
from ansible_collections.twinserve.pair.plugins.module_utils.agent import paths, verbs

PLAN: dict[str, Any] = {
    "schema": 1,
    "pair": "pair1",
    "rank": 0,
    "ranks": 2,
    "container": "glm53",
    "image": "repo@sha256:1",
    "stop_timeout": 30,
    "docker": ["--network", "host"],
    "mounts": [],
    "command": ["tensorfold", "serve", "--master", "{head_address}"],
    "env": {},
    "link_env": {"NCCL_IB_GID_INDEX": "{gid_index}"},
    "digest": "sha256:plan",
}
RAIL = {"netdev": "enp1s0f1np1", "hca": "rocep1s0f1", "address": "198.51.100.1", "gid_index": 3}
LINK: dict[str, Any] = {"master": "198.51.100.1", "rails": [RAIL], "append": [], "env": {}}

# A call is answered by the file <program>_<words>, the longest that exists; its exit code is in <file>.rc.
SCRIPT = """#!/bin/sh
echo "${0##*/} $*" >> "$NODE/calls"
key="${0##*/}"; best="$key"
for word in "$@"; do
  case "$word" in */*) break;; esac
  key="${key}_$word"
  [ -e "$NODE/answers/$key" ] && best="$key"
done
[ -e "$NODE/answers/$best.do" ] && . "$NODE/answers/$best.do"
if [ -e "$NODE/answers/$best.rc" ]; then
  cat "$NODE/answers/$best" >&2
  exit "$(cat "$NODE/answers/$best.rc")"
fi
[ -e "$NODE/answers/$best" ] && cat "$NODE/answers/$best"
exit 0
"""


class FakeNode:
    """Answers of docker, systemd and nvidia-smi, and what was asked of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for part in ("bin", "answers", "root"):
            (folder / part).mkdir()
        for program in ("docker", "systemctl", "systemd-run", "journalctl", "nvidia-smi", "ss"):
            path = folder / "bin" / program
            path.write_text(SCRIPT)
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("NODE", str(folder))
        monkeypatch.setattr(paths, "PLAN", folder / "rank.json")
        monkeypatch.setattr(paths, "LINK", folder / "run/link.json")
        monkeypatch.setattr(paths, "VM", folder / "vm")
        (folder / "vm").mkdir()
        addresses = {"enp1s0f1np1": ["198.51.100.1/24"]}
        readers = partial(sysfs.read_devices, folder / "root", addresses)
        monkeypatch.setattr(verbs, "read_devices", lambda _root=None: readers())
        self.plan(PLAN)
        self.hardware()
        self.unit("inactive")
        self.answer(f"systemctl_show_{paths.GUARD}", "ActiveState=inactive\n")
        self.container(None)

    def hardware(self, index: int = 3) -> None:
        """One cabled port."""
        fake.add_port(self.folder / "root", "enp1s0f1np1")
        table = fake.table_of("198.51.100.1", index)
        fake.add_device(self.folder / "root", "rocep1s0f1", "enp1s0f1np1", "0000:01:00.1", table)
        fake.put(
            self.folder / "root/proc/meminfo",
            "MemTotal: 125829120 kB\nMemFree: 1 kB\nMemAvailable: 115343360 kB",
        )
        fake.put(self.folder / "root/proc/sys/kernel/random/boot_id", "4d5f")

    def plan(self, plan: Mapping[str, Any]) -> None:
        """Write the rank's plan."""
        (self.folder / "rank.json").write_text(json.dumps(plan))

    def link(self, link: Mapping[str, Any]) -> None:
        """Write what the rank was told at its start."""
        (self.folder / "run").mkdir(exist_ok=True)
        (self.folder / "run/link.json").write_text(json.dumps(link))

    def answer(self, call: str, text: str, code: int | None = None, do: str | None = None) -> None:
        """Answer a call (its words joined by `_`); `do` is a line of shell run at that call."""
        path = self.folder / "answers" / call
        path.write_text(text)
        for suffix, value in ((".rc", None if code is None else str(code)), (".do", do)):
            extra = path.with_name(path.name + suffix)
            if value is None:
                extra.unlink(missing_ok=True)
            else:
                extra.write_text(value)

    def unit(self, active: str, code: str = "0", status: int = 0) -> None:
        """Set what systemd says of the rank's unit."""
        self.answer("systemctl_show", self.shown(active, code, status))

    @staticmethod
    def shown(active: str, code: str = "0", status: int = 0) -> str:
        """What systemd prints for the unit."""
        return f"ActiveState={active}\nExecMainCode={code}\nExecMainStatus={status}\nInvocationID=abc\n"

    def container(self, running: bool | None, digest: str = "sha256:plan") -> None:
        """Set what docker says of the rank's container; None for no container."""
        if running is None:
            self.answer("docker_container_inspect", "Error response from daemon: No such container: glm53", 1)
            return
        self.answer("docker_container_inspect", self.inspected(running, digest))

    @staticmethod
    def inspected(running: bool, digest: str = "sha256:plan") -> str:
        """What docker prints for the container."""
        state = {"Running": running, "Pid": 4242, "StartedAt": "2026-11-29T10:00:00Z"}
        return json.dumps([{"Id": "c1", "State": state, "Config": {"Labels": {"twinserve.digest": digest}}}])

    @property
    def calls(self) -> list[str]:
        """What was asked, in order."""
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []
