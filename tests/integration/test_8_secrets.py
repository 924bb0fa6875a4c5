"""Secrets from a vault, runs of every kind at their most talkative, and then a search of all that they leave.

A setting that is declared secret is in here by being declared so; one of a new type has to say what it looks
like (`value`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pexpect
import pytest
import yaml
from bench_setups import aiperf_wheels
from lab_pair import ROOT, Lab

SEARCH = Path(__file__).with_name("secret_search.py")
SECRET = {
    name: one
    for file in sorted(ROOT.glob("engines/*/settings.yml"))
    for name, one in yaml.safe_load(file.read_text())["settings"].items()
    if one.get("secret")
}
# They look like nothing that is taken away by its looks: what hides them has to know them.
MARKS = {name: f"mark{name.replace('_', '')}Qx7-Qx7-Qx7" for name in SECRET}
PASSWORDS = {"BECOME password": "markbecomeQx7", "Vault password": "markvaultQx7"}
# What a secret is good for only together with others.
WITH_THEM = ("-e", "bench_url=http://127.0.0.1:8888")
# Files that hold a secret while a job runs that reads it: root's or the cache owner's, and gone with the job.
HOLDERS = {
    "hf_token": r"/run/twinserve\.models--[\w.-]+\.hf-token 0600",
    "proxy_env": r"/run/twinserve\.(models--[\w.-]+\.proxy|benchmark-[\w-]+)\.env 0600",
    "bench_api_key": r"/run/twinserve\.benchmark-[\w-]+\.env 0600",
    "api_keys": r"/run/twinserve-gateway/keys\.conf 0600",
    # With `monitoring: true` alone, whose own test looks for them.
    "alert_webhook": "none",
    "alert_mail_password": "none",
}
# Those that stay: the gateway takes them at every start.
STAY = ("/etc/twinserve/gateway/keys.conf", "/run/twinserve-gateway/keys.conf")
KEYS = "/etc/twinserve/keys"


def value(name: str) -> Any:
    """A secret setting's value, with its mark."""
    mark = MARKS[name]
    special: dict[str, Any] = {
        "proxy_env": {"https_proxy": f"http://me:{mark}@127.0.0.1:9"},
        "api_keys": {"me": mark},
        "alert_webhook": f"http://127.0.0.1:9/{mark}",
    }
    return mark if SECRET[name]["type"] == "text" and name not in special else special[name]


@dataclass
class Owner:
    """Somebody who follows the README in a checkout of his own."""

    lab: Lab
    checkout: Path
    said: list[str] = field(default_factory=list)

    def types(self, command: str, **env: str) -> tuple[int, str]:
        """What a command came to at a terminal at which passwords are asked for."""
        events = {f"{prompt}: ": f"{word}\n" for prompt, word in PASSWORDS.items()}
        path = f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"
        output, code = pexpect.run(
            command,
            events=events,
            withexitstatus=True,
            timeout=None,
            cwd=str(self.checkout),
            env={**os.environ, "PATH": path, "ANSIBLE_NOCOLOR": "1", "COLUMNS": "200", **env},
            encoding="utf-8",
        )
        self.said.append(output)
        return code, output

    def plays(self, play: str, *words: str) -> int:
        """Exit code of a playbook that says all that it can."""
        asked = "--ask-become-pass --ask-vault-pass -vvv --diff"
        line = f"ansible-playbook {play} -i {self.lab.inventory} {asked} {' '.join((*WITH_THEM, *words))}"
        return self.types(line)[0]


@pytest.fixture(scope="module")
def owner(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Owner:
    """A checkout with a vault, made as the README says."""
    top = tmp_path_factory.mktemp("owner")
    not_ours = shutil.ignore_patterns(
        ".git", "tests", ".venv", ".lab", "build", "__pycache__", ".*_cache", "logs"
    )
    owner = Owner(lab, Path(shutil.copytree(ROOT, top / "twinserve", symlinks=True, ignore=not_ours)))
    text = yaml.safe_dump({name: value(name) for name in SECRET})
    editor = top / "editor"
    editor.write_text(f"#!/bin/sh\ncat >\"$1\" <<'END'\n{text}END\n")
    editor.chmod(0o700)
    readme = (ROOT / "README.md").read_text()
    example = re.search(r"^ *(ansible-vault create \S+)\n\n((?: {7}\S.*\n)+)", readme, re.MULTILINE)
    assert example and yaml.safe_load(textwrap.dedent(example[2])).keys() <= SECRET.keys()
    code, said = owner.types(example[1], EDITOR=str(editor))
    assert code == 0, said
    editor.unlink()
    return owner


def search(lab: Lab, host: str, *words: str) -> list[tuple[str, str]]:
    """Marks that are found on a host, and where."""
    script = SEARCH.read_text()
    marks = [mark[::-1] for mark in (*MARKS.values(), *PASSWORDS.values())]
    found = lab.root(host, "python3", "-c", script, *words, *marks).splitlines()
    return [(mark, place) for mark, _, place in (line.partition("\t") for line in found if line)]


@contextmanager
def watched(lab: Lab) -> Iterator[dict[str, set[str]]]:
    """Where the marks were seen meanwhile, by mark; the controller's command lines are watched too."""
    end = "/run/search-is-over"
    seen: dict[str, set[str]] = {}
    argv = ["at", *(mark[::-1] for mark in (*MARKS.values(), *PASSWORDS.values()))]
    over = lab.folder / "search-is-over"
    over.unlink(missing_ok=True)
    commands = [[sys.executable, str(SEARCH), "watch", str(over), *argv[1:]]]
    for host in lab.hosts:
        lab.root(host, "rm", "-f", end)
        inside = ["python3", "-c", SEARCH.read_text(), "watch", end, *argv[1:]]
        commands.append([str(ROOT / "lab/lab"), "exec", "--name", lab.name, host, *inside])
    watchers = [subprocess.Popen(one, stdout=subprocess.PIPE, text=True) for one in commands]
    try:
        yield seen
    finally:
        over.touch()
        for host in lab.hosts:
            lab.root(host, "touch", end)
        for one in watchers:
            for line in filter(None, one.communicate()[0].splitlines()):
                mark, _, place = line.partition("\t")
                seen.setdefault(mark, set()).add(place)
        over.unlink()


def private_keys(lab: Lab) -> list[str]:
    """A line of each private key of the head."""
    return lab.root(
        lab.hosts[0], "sh", "-c", f"for key in $(ls {KEYS} | grep -v pub); do sed -n 3p {KEYS}/$key; done"
    ).split()


def left_behind(top: Path) -> Iterator[tuple[str, str]]:
    """All files of the controller below `top`, and those in archives among them."""
    for path in filter(Path.is_file, top.rglob("*")):
        if path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                for member in archive.getmembers():
                    file = archive.extractfile(member)
                    yield f"{path.name}/{member.name}", file.read().decode(errors="replace") if file else ""
        else:
            yield str(path), path.read_bytes().decode(errors="replace")


def test_what_brings_a_pair_up_and_changes_it_leaves_no_secret(owner: Owner) -> None:
    with watched(owner.lab) as seen:
        assert owner.plays("site.yml", "-e", "prepare=always") == 0, owner.said[-1]
        assert owner.plays("serve.yml", "-e", "parallel=2") == 0, owner.said[-1]

    # The search finds what there is to be found: the download had both.
    assert {MARKS["hf_token"], MARKS["proxy_env"]} <= seen.keys()
    nothing_was_seen_elsewhere(seen)
    nothing_is_left(owner)


def test_what_fails_and_what_is_asked_then_leaves_no_secret(owner: Owner) -> None:
    lab, wrong = owner.lab, owner.checkout / "wrong.yml"
    wrong.write_text(yaml.safe_dump({name: [{"not": MARKS[name]}] for name in SECRET}))
    refusal = {"message": "the two ranks were started with different settings", "times": 1}

    with watched(lab) as seen:
        assert owner.plays("serve.yml", "-e", f"@{wrong}") != 0
        lab.root(lab.hosts[1], "rm", "-f", "/var/lib/lab-engine/switch-uses.json")  # in a lab that was kept
        lab.verb("engine", lab.hosts[1], f"crash_at_start={json.dumps(refusal)}")
        assert owner.plays("serve.yml", "-e", "parallel=3") != 0, owner.said[-1]
        lab.verb("engine", lab.hosts[1], "--clear")
        # It cannot be installed: there is nobody at the proxy's address.
        assert owner.plays("playbooks/bench.yml", "-e", "bench_wheels=https://198.51.100.9/") != 0
        assert owner.plays("playbooks/logs.yml") == 0, owner.said[-1]
        owner.plays("playbooks/doctor.yml")
    wrong.unlink()

    assert MARKS["proxy_env"] in seen
    assert list(owner.checkout.glob("logs/*/*.tar.gz"))
    nothing_was_seen_elsewhere(seen)
    nothing_is_left(owner)


@pytest.mark.slow
def test_a_benchmark_with_a_key_leaves_no_secret(owner: Owner) -> None:
    with aiperf_wheels(owner.lab) as wheels, watched(owner.lab) as seen:
        words = f"-e bench_wheels={wheels} -e bench_requests=2 -e bench_concurrency=1"
        assert owner.plays("playbooks/bench.yml", words) == 0, owner.said[-1]

    assert MARKS["bench_api_key"] in seen
    assert list(owner.checkout.glob("reports/*/report.md"))
    nothing_was_seen_elsewhere(seen)
    nothing_is_left(owner)


def nothing_was_seen_elsewhere(seen: dict[str, set[str]]) -> None:
    """While plays ran the marks were in the files that are meant to hold them, and in nothing else."""
    elsewhere = dict(seen)
    for name, mark in MARKS.items():
        elsewhere[mark] = {place for place in seen.get(mark, ()) if not re.fullmatch(HOLDERS[name], place)}
    assert not {mark: places for mark, places in elsewhere.items() if places}


def nothing_is_left(owner: Owner) -> None:
    """On no node, and of what came to the controller in nothing but the vault, which is encrypted."""
    for host in owner.lab.hosts:
        found = search(owner.lab, host, "at_rest")
        assert [one for one in found if one != (MARKS["api_keys"], one[1]) or one[1] not in STAY] == []
        for path in {place for _, place in found}:
            assert owner.lab.node(host).file(path).mode == 0o600
    secrets = [*MARKS.values(), *PASSWORDS.values(), *private_keys(owner.lab)]
    controllers = [*left_behind(owner.checkout), *left_behind(Path.home() / ".ansible")]
    places = [*((f"what run {number} said", text) for number, text in enumerate(owner.said)), *controllers]
    assert [(secret, place) for place, text in places for secret in secrets if secret in text] == []
