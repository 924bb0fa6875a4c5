"""The pair that is measured: two simulated hosts with limited rails, and programs run on the head."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RAILS = ("enp1s0f0np0", "enP2p1s0f0np0")
USER = "nvidia"


@dataclass(frozen=True)
class Pair:
    """A lab of its own, by name."""

    name: str

    @property
    def folder(self) -> Path:
        """Its state."""
        return Path(os.environ.get("TWINSERVE_LAB", ROOT / ".lab")) / self.name

    @property
    def hosts(self) -> tuple[str, str]:
        """Head and worker."""
        return f"{self.name}-a", f"{self.name}-b"

    def verb(self, *words: str, stdin: bytes | None = None) -> str:
        """Run `lab VERB --name NAME ...`; ends the program with what it said when it fails."""
        argv = [str(ROOT / "lab/lab"), words[0], "--name", self.name, *words[1:]]
        done = subprocess.run(argv, input=stdin, capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"bench: {' '.join(words[:3])}: {(done.stdout + done.stderr).decode(errors='replace')}")
        return done.stdout.decode()

    def root(self, host: str, script: str) -> str:
        """Run a shell script as root on a host."""
        return self.verb("exec", host, "sh", "-ec", script)

    def play(self, *words: str) -> None:
        """Run a playbook against the pair."""
        argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(self.folder / "inventory"), *words]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"bench: {words[0]} failed:\n{done.stdout[-3000:]}{done.stderr}")

    def limit_rails(self, mbit: int) -> None:
        """Let each rail carry so many Mbit/s, at both ends: then they are the bottleneck, not the CPU."""
        limit = f"tbf rate {mbit}mbit burst 256k latency 50ms"
        for host in self.hosts:
            self.root(host, "\n".join(f"tc qdisc replace dev {rail} root {limit}" for rail in RAILS))

    def rail_addresses(self, host: str) -> list[str]:
        """The host's address on each rail."""
        show = "ip -4 -o addr show dev {} | awk '{{print $4}}' | cut -d/ -f1"
        return self.root(host, "\n".join(show.format(rail) for rail in RAILS)).split()


def options(about: str | None) -> argparse.Namespace:
    """What every benchmark can be told: `rounds`, the lab's `name`, whether to `keep` it."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--name", default="bench", help="of the lab")
    parser.add_argument("--keep", action="store_true", help="leave the lab up")
    return parser.parse_args()


def tell(name: str, text: str, figures: object) -> None:
    """Show the figures, and keep them for programs."""
    path = ROOT / f"build/bench/{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    print(f"\n{text}\n\n{path.relative_to(ROOT)}")
