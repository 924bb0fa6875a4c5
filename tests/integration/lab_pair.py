"""The simulated pair as the tests see it: verbs, playbooks, containers and the API."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ansible_runner
import testinfra
import yaml

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Play:
    """What a run of ansible-playbook said: its output, exit code, and the recap by host."""

    output: str
    code: int
    recap: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """Changed steps over all hosts."""
        return sum(counts["changed"] for counts in self.recap.values())

    def succeeded(self) -> Play:
        """This run, or a test failure that shows its output."""
        assert self.code == 0, self.output
        return self

    def refused(self) -> Play:
        """This run, which must have failed."""
        assert self.code != 0, self.output
        return self


@dataclass(frozen=True)
class Lab:
    """The simulated pair and how to reach it."""

    name: str
    folder: Path

    @property
    def hosts(self) -> tuple[str, str]:
        """Head and worker."""
        return f"{self.name}-a", f"{self.name}-b"

    @property
    def inventory(self) -> Path:
        """The generated inventory."""
        return self.folder / "inventory"

    def address(self, host: str) -> str:
        """The host's on the management network."""
        groups = yaml.safe_load((self.inventory / "hosts.yml").read_text())
        (pair,) = next(iter(groups.values()))["children"].values()
        return str(pair["hosts"][host]["ansible_host"])

    def verb(self, *words: str, check: bool = True) -> str:
        """Run `lab VERB --name NAME ...` and return what it prints."""
        argv = [str(ROOT / "lab/lab"), words[0], "--name", self.name, *words[1:]]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, f"{' '.join(argv)}: {done.stdout}{done.stderr}"
        return done.stdout

    def root(self, host: str, *argv: str) -> str:
        """Run a program as root on a host."""
        return self.verb("exec", host, *argv)

    def play(self, *words: str) -> Play:
        """Run ansible-playbook against the pair, as a user would."""
        out, err, code = ansible_runner.run_command(
            executable_cmd=str(ROOT / ".venv/bin/ansible-playbook"),
            cmdline_args=["-i", str(self.inventory), *words],
            host_cwd=str(ROOT),
            quiet=True,
            envvars={"ANSIBLE_NOCOLOR": "1"},
        )
        text = f"{out}\n{err}"
        return Play(text, code, parse_recap(text))

    def node(self, host: str) -> Any:
        """A testinfra host, with sudo, through the lab's own ssh configuration."""
        return testinfra.get_host(f"ssh://{host}", ssh_config=str(self.folder / "ssh_config"), sudo=True)

    def containers(self) -> dict[str, str]:
        """Id of the rank's container on each host; empty when there is none."""
        return {host: self.root(host, "docker", "ps", "--quiet", "--no-trunc").strip() for host in self.hosts}

    def inspect(self, host: str) -> dict[str, Any]:
        """The running rank's container as docker sees it."""
        (one,) = json.loads(self.root(host, "docker", "inspect", "glm53-flash-tf"))
        return dict(one)

    def get(self, path: str) -> dict[str, Any]:
        """GET from the API, on the head."""
        answer: dict[str, Any] = json.loads(
            self.root(self.hosts[0], "curl", "-sS", f"http://127.0.0.1:18888{path}")
        )
        return answer

    def chat(self, text: str) -> str:
        """One chat request, on the head."""
        body = json.dumps({"model": "GLM-5.3-Flash-EXL3", "messages": [{"role": "user", "content": text}]})
        url = "http://127.0.0.1:18888/v1/chat/completions"
        header = "Content-Type: application/json"
        answer = json.loads(
            self.root(self.hosts[0], "curl", "-sS", "-m", "60", "-H", header, "-d", body, url)
        )
        return str(answer["choices"][0]["message"]["content"])


def parse_recap(text: str) -> dict[str, dict[str, int]]:
    """Counts by host from the PLAY RECAP of a run."""
    lines = re.findall(r"^(\S+)\s+: (ok=.+)$", text, re.MULTILINE)
    return {
        host: {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", counts)}
        for host, counts in lines
    }
