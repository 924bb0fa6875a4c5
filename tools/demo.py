"""`make demo`: from this machine to a chat answer of a simulated pair, with the real playbooks.

ENGINE=vllm deploys a real engine, vLLM on CPUs with a small model, in place of the simulated one. Each step
says what it does; what cannot work is said in one line. Runs as root (the Makefile asks for sudo).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Show:
    """What one engine is shown with."""

    lab: str
    machines: str
    model: str
    port: int
    question: str
    max_tokens: int


SHOWS = {
    "tensorfold": Show(
        "demo", "Sparks", "GLM-5.3-Flash-EXL3", 8888, "Write a Python fibonacci function.", 2000
    ),
    "vllm": Show(
        "demov", "Stations", "lab/SmolLM2-135M-Instruct", 8000, "What is the capital of France?", 40
    ),
}


def fail(text: str) -> None:
    """End with one line that says what is wrong."""
    sys.exit(f"demo: {text}")


def say(text: str) -> None:
    """A heading for what comes next."""
    print(f"\n== {text}", flush=True)


def preconditions() -> None:
    """What no later step can mend."""
    if sys.version_info < (3, 11):
        fail(f"Python 3.11 or later is needed, {sys.executable} is {sys.version.split()[0]}")
    if not sys.platform.startswith("linux"):
        fail(f"the simulated pair needs Linux namespaces, this is {sys.platform}")
    if os.geteuid() != 0:
        fail("root is needed for namespaces and mounts: run it as `make demo` (which uses sudo)")
    if not shutil.which("apt-get"):
        fail("no apt-get here: the simulated machines are built from Debian or Ubuntu packages")


def step(argv: list[str], what: str) -> None:
    """Run a step with its output shown."""
    if subprocess.run(argv, cwd=ROOT, check=False).returncode:
        fail(f"{what} failed; the reason is above")


def deploy(inventory: Path, lab: str) -> str:
    """Run site.yml with its output shown; return the recap."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(inventory), "site.yml"]
    print(f"$ ansible-playbook -i {inventory.relative_to(ROOT)} site.yml", flush=True)
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "ANSIBLE_FORCE_COLOR": "1" if sys.stdout.isatty() else "0"}
    recap: list[str] = []
    with subprocess.Popen(
        argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        for line in run.stdout or []:
            print(line, end="", flush=True)
            if "changed=" in line:
                recap.append(line)
    if run.returncode:
        fail(f"site.yml failed; the reason is above. Look with: lab/lab ssh --name {lab} a")
    return re.sub(r"\x1b\[[0-9;]*m", "", "".join(recap))


def ask(show: Show) -> str:
    """Ask the API through the gateway, as root on the head: others are given the authority and a key."""
    body = {
        "model": show.model,
        "messages": [{"role": "user", "content": show.question}],
        "max_tokens": show.max_tokens,
        "temperature": 0,
    }
    url = f"https://{show.lab}-a:{show.port}/v1/chat/completions"
    gateway = "/etc/twinserve/gateway"
    curl = (
        f"curl -sS --max-time 60 --cacert {gateway}/ca.pem"
        f' -H "Authorization: Bearer $(cat {gateway}/api-key)" -H "Content-Type: application/json" {url} -d'
    )
    lab = [
        str(ROOT / "lab/lab"),
        "exec",
        "--name",
        show.lab,
        f"{show.lab}-a",
        "sh",
        "-c",
        f'{curl} "$1"',
        "sh",
        json.dumps(body),
    ]
    answer = subprocess.run(lab, capture_output=True, text=True, check=False)
    if answer.returncode:
        fail(f"the API did not answer: {answer.stderr.strip()}")
    print(f"# {curl} '{json.dumps(body)}'")
    return str(json.loads(answer.stdout)["choices"][0]["message"]["content"])


def main() -> None:
    """Prepare, deploy, ask."""
    began = time.monotonic()
    engine = os.environ.get("ENGINE") or "tensorfold"
    if engine not in SHOWS:
        fail(f"ENGINE={engine}: {' or '.join(SHOWS)}")
    show = SHOWS[engine]
    preconditions()
    step(["make", "--no-print-directory", "venv"], "the Python environment")
    say(f"Two simulated DGX {show.machines} (lab/README.md)")
    step([str(ROOT / "lab/lab"), "up", "--name", show.lab, "--engine", engine], "the lab")
    say("The real playbooks, over ssh")
    recap = deploy(ROOT / f".lab/{show.lab}/inventory", show.lab)
    say("A chat request, on the head")
    print(ask(show))
    changed = sum(int(number) for number in re.findall(r"changed=(\d+)", recap))
    again = "make demo" if engine == "tensorfold" else f"make demo ENGINE={engine}"
    say(f"Done in {time.monotonic() - began:.0f} s, changed={changed}. Again: {again}. Away: make clean.")


if __name__ == "__main__":
    main()
