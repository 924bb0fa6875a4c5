"""Images in all states: a registry that is off, other content behind the name, repositories to build from."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab_pair import ROOT, Lab
from link_setups import RAILS, shell

PLAY = "playbooks/container.yml"
_REFUSE = "OUTPUT -p tcp --dport 5000 -j REJECT"
_WHO = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
# Two patches: the second applies to what the first made.
PATCHES = {
    "0001-marker.patch": '--- /dev/null\n+++ tensorfold/marker.py\n@@ -0,0 +1 @@\n+NAMES = ["one"]\n',
    "0002-marker.patch": (
        "--- tensorfold/marker.py\n+++ tensorfold/marker.py\n@@ -1 +1 @@\n"
        '-NAMES = ["one"]\n+NAMES = ["one", "two"]\n'
    ),
}


def pinned(lab: Lab) -> str:
    """The image as the pair's release pins it."""
    text = (lab.folder / "catalogue/lab.yml").read_text()
    found = {name: re.search(rf"{name}: (\S+)", text) for name in ("image", "image_digest")}
    return "@".join(one[1] for one in found.values() if one)


def own_name(lab: Lab) -> str:
    """The name under which it comes to a worker that cannot pull it."""
    return f"localhost/twinserve/tensorfold:{pinned(lab).partition('@sha256:')[2][:12]}"


@contextmanager
def registry_off(lab: Lab, host: str) -> Iterator[None]:
    """The host does not reach the registry meanwhile."""
    shell(lab, host, f"iptables -I {_REFUSE}")
    try:
        yield
    finally:
        shell(lab, host, f"iptables -D {_REFUSE}")


@contextmanager
def slow_rail(lab: Lab, rate: str) -> Iterator[None]:
    """What the head sends on its main rail takes a while."""
    tc = f"tc qdisc {{}} dev {RAILS[0]} root"
    shell(lab, lab.hosts[0], f"{tc.format('add')} tbf rate {rate} burst 64kb latency 400ms")
    try:
        yield
    finally:
        shell(lab, lab.hosts[0], tc.format("del"))


@contextmanager
def in_the_background(lab: Lab, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run of ansible-playbook that may be met in the middle, and killed with all that it started."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(lab.inventory), *words]
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)


def job_under_way(lab: Lab, host: str, kind: str, run: subprocess.Popen[str]) -> None:
    """Wait until the job has worked for some seconds; the run must not end before."""
    listed = f"systemctl list-units --plain --no-legend --state=running 'twinserve-job-{kind}-*'"
    while not shell(lab, host, listed):
        assert run.poll() is None, run.communicate()[0]
        time.sleep(1)
    time.sleep(3)


def forget_images(lab: Lab, host: str) -> None:
    """Remove every image of the store in use."""
    shell(lab, host, "docker image prune --all --force")


def image_names(lab: Lab, host: str) -> set[str]:
    """Name and tag of each image that has one."""
    return set(lab.root(host, "docker", "images", "--format", "{{.Repository}}:{{.Tag}}").split())


def change_content(lab: Lab, host: str, name: str, patches: str) -> None:
    """Put another image behind the name, which says that it has other patches."""
    script = (
        f"docker create --name other --entrypoint true {name}; "
        f"docker commit --change 'LABEL tf.patches={patches}' other {name}; docker rm other"
    )
    shell(lab, host, script)


def put_repository(lab: Lab, host: str, path: str, files: Mapping[str, str | bytes]) -> str:
    """A git repository on the host with one commit of these files; its address and commit as in a recipe."""
    with tempfile.TemporaryDirectory() as work:
        top = Path(work, "repo")
        for name, text in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        env = {**os.environ, **_WHO, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TEMPLATE_DIR": "/dev/null"}
        for words in (["init", "--quiet", "-b", "main"], ["add", "."], ["commit", "--quiet", "-m", "x"]):
            subprocess.run(["git", *words], cwd=top, env=env, check=True)
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=top, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.add(top / ".git", ".git")
    unpack = f"rm -rf {path}; mkdir -p {path}; tar -x --no-same-owner -C {path}"
    argv = [str(ROOT / "lab/lab"), "exec", "--name", lab.name, host, "sh", "-ec", unpack]
    subprocess.run(argv, input=buffer.getvalue(), check=True)
    return f"file://{path}/.git@{head}"


def write_recipe(lab: Lab, name: str, engine: str, patches: str, patches_hash: str) -> None:
    """A release of the lab's own that is built from these repositories."""
    site = "/usr/lib/python3/dist-packages"
    release = {
        "extends": "lab",
        "defaults": {"base_image": pinned(lab), "engine_source": engine},
        "recipe": {
            "extras": ["av==18.1.0"],
            "install": f"cp -r engine/extra {site}/ && test -n '{{extras}}'",
            "patches": {"git": patches, "folder": "patches", "package": "tensorfold", "hash": patches_hash},
            "check": "python3 -c 'import extra, tensorfold.marker; assert len(tensorfold.marker.NAMES) == 2'",
        },
    }
    (lab.folder / f"catalogue/{name}.yml").write_text(json.dumps(release, indent=1) + "\n")
