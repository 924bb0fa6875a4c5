"""The controller may be the head itself: `ansible_connection: local` there, ssh to the worker."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from lab_pair import ROOT, Lab, Play, parse_recap

COLLECTIONS = ("ansible/posix", "community/crypto")
CONTROLLER = "/opt/controller"


@pytest.fixture(scope="module")
def controller(lab: Lab, converged: Play, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Put ansible-core for the head's own Python, and this project at its own path, onto the head."""
    packages = tmp_path_factory.mktemp("controller")
    version = lab.root(
        lab.hosts[0], "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"
    ).strip()
    core = subprocess.run(
        [sys.executable, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    ).stdout
    pin = next(line for line in core.splitlines() if line.startswith("ansible-core=="))
    wheels = ["--only-binary=:all:", "--python-version", version, "--implementation", "cp"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", str(packages), *wheels, pin],
        check=True,
        capture_output=True,
    )
    install = Path(sys.executable).parent.parent
    bundled = next(install.glob("lib/python*/site-packages/ansible_collections"))
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    parts = [(packages, CONTROLLER)]
    parts += [(bundled / name, f"{CONTROLLER}/ansible_collections/{name}") for name in COLLECTIONS]
    parts += [(ROOT / name, str(ROOT / name)) for name in files.split() if not name.startswith("tests/")]
    names = ("inventory", "catalogue", "ssh_config", "known_hosts")
    parts += [(lab.folder / name, str(lab.folder / name)) for name in names]
    parts += [(lab.folder.parent / "keys", str(lab.folder.parent / "keys"))]
    send(lab, parts)
    lab.root(lab.hosts[0], "chmod", "-R", "a+rX", CONTROLLER)
    lab.root(lab.hosts[0], "chown", "-R", "nvidia:", str(ROOT), str(lab.folder.parent))
    local = f"all:\n  hosts:\n    {lab.hosts[0]}:\n      ansible_connection: local\n"
    lab.root(lab.hosts[0], "sh", "-c", f"printf '{local}' > {lab.folder}/local.yml")
    return str(ROOT)


def send(lab: Lab, parts: list[tuple[Path, str]]) -> None:
    """Unpack files and folders at their places on the head."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for source, target in parts:
            archive.add(source, target)
    argv = [str(ROOT / "lab/lab"), "exec", "--name", lab.name, lab.hosts[0], "tar", "-x", "-C", "/"]
    subprocess.run(argv, input=buffer.getvalue(), check=True)


def test_site_run_on_the_head_finds_the_pair_converged(lab: Lab, controller: str) -> None:
    before = lab.containers()
    paths = f"PYTHONPATH={CONTROLLER} ANSIBLE_COLLECTIONS_PATH={controller}/collections:{CONTROLLER}"
    play = f"python3 -m ansible playbook -i {lab.inventory} -i {lab.folder}/local.yml site.yml"
    output = lab.verb("ssh", lab.hosts[0], f"cd {controller} && ANSIBLE_NOCOLOR=1 {paths} {play}")

    recap = parse_recap(output)

    assert set(recap) == set(lab.hosts), output
    assert sum(counts["changed"] + counts["failed"] for counts in recap.values()) == 0, output
    assert "The capital of France is Paris." in output
    assert lab.containers() == before
