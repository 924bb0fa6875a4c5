"""What is in the engine's image: the simulator's layer, the configuration, and the whole of it, run.

(That one needs root and mmdebstrap, which `lab up` installs.)
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest
from twinlab.services import image
from twinlab.services.push import Image
from twinlab.services.tarball import Layer


def _content(layer: Layer) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(layer.path) as tar:
        return {member.name: member for member in tar}


def test_the_simulators_layer_holds_the_program_its_script_and_the_entrypoint(tmp_path: Path) -> None:
    found = _content(image.simulator_layer(tmp_path))
    package = "usr/lib/python3/dist-packages/tensorfold"
    assert f"{package}/api/server.py" in found and f"{package}/cli.py" in found
    assert {name for name, member in found.items() if member.isfile() and member.mode & 0o111} == {
        "opt/nvidia/nvidia_entrypoint.sh",
        "usr/local/bin/hf",
        "usr/local/bin/tensorfold",
    }
    assert not [name for name in found if "__pycache__" in name]


def test_the_layer_is_made_once_and_made_anew_when_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    first = image.simulator_layer(work)
    made = first.path.stat().st_mtime_ns
    assert image.simulator_layer(work) == first and first.path.stat().st_mtime_ns == made
    changed = tmp_path / "engine"
    subprocess.run(["cp", "-r", image.ENGINE, changed], check=True)
    (changed / "tensorfold/log.py").write_text("changed\n")
    monkeypatch.setattr(image, "ENGINE", changed)
    monkeypatch.setattr(image, "FILES", changed / "image")
    second = image.simulator_layer(work)
    assert second.digest != first.digest
    assert [path.name for path in work.glob("*.tar.gz")] == [second.path.name]


def test_the_configuration_is_the_contracts() -> None:
    config = image.image_config("0123456789ab")["config"]
    assert config == {
        "Env": [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HF_HOME=/root/.cache/huggingface",
            "TORCH_EXTENSIONS_DIR=/cache/torch_extensions",
            "TRITON_CACHE_DIR=/cache/triton",
        ],
        "Entrypoint": ["/opt/nvidia/nvidia_entrypoint.sh"],
        "WorkingDir": "/workspace",
        "Labels": {"tf.patches": "0123456789ab"},
    }


def test_another_patches_label_is_another_image(tmp_path: Path) -> None:
    layer = image.simulator_layer(tmp_path)
    digests = {
        Image((layer,), image.image_config(label)).digest() for label in ("0" * 12, "1" * 12, "0" * 12)
    }
    assert len(digests) == 2


@pytest.mark.lab
def test_the_built_image_runs_its_programs_as_any_user(tmp_path: Path) -> None:
    built = image.build_image(tmp_path / "work")
    assert image.build_image(tmp_path / "work").digest() == built.digest()
    root = tmp_path / "root"
    root.mkdir()
    for layer in built.layers:
        subprocess.run(["tar", "-xzf", layer.path, "-C", root], check=True)
    entered = ["chroot", "--userspec=1234:1234", str(root), "/opt/nvidia/nvidia_entrypoint.sh"]

    def inside(*words: str) -> str:
        return subprocess.run([*entered, *words], capture_output=True, text=True, check=True).stdout

    assert inside("tensorfold", "--version").endswith("tensorfold 0.5.0\n")
    assert "2.4.0" in inside("env", "HOME=/tmp", "hf", "version")
    assert inside("sh", "-c", "echo shell; id -u").endswith("shell\n1234\n")
    assert inside("bash", "-c", "echo ${BASH_VERSION%%.*}").strip().endswith("5")
