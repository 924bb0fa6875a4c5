"""Weights: the next release beside the one that serves, what breaks in the cache, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from lab_pair import Lab, Play

MODEL, REVISION = "Mia-AiLab/GLM-5.3-Flash-EXL3-TR3-4bpw", "9eaebb7c4e96d983dcd538e18624622ba5b820a8"
NEXT, NEXT_REVISION = "example/next", "0123456789abcdef0123456789abcdef01234567"
HUB = "/home/nvidia/.cache/huggingface/hub"
FOLDER = f"{HUB}/models--{MODEL.replace('/', '--')}"
SHARD = "model-00003-of-00012.safetensors"


@pytest.fixture
def next_release(lab: Lab) -> Iterator[str]:
    """A release with another model and another image; the hub and the registry have both."""
    hub = lab.folder / "hub"
    shutil.copytree(hub / MODEL, hub / NEXT, dirs_exist_ok=True)
    (hub / f"{NEXT}.json").write_text(json.dumps({"sha": NEXT_REVISION, "gated": False, "faults": {}}))
    head = lab.hosts[0]
    (image,) = set(lab.root(head, "docker", "images", "--format", "{{.Repository}}").split())
    one = lab.root(head, "docker", "create", lab.inspect(head)["Config"]["Image"]).strip()
    lab.root(head, "docker", "commit", "--change", "LABEL tf.patches=next", one, f"{image}:next")
    lab.root(head, "docker", "push", "--quiet", f"{image}:next")
    pushed = json.loads(lab.root(head, "docker", "image", "inspect", f"{image}:next"))[0]["RepoDigests"]
    lab.root(head, "docker", "rm", one)
    lab.root(head, "docker", "rmi", f"{image}:next")
    release = lab.folder / "catalogue/next.yml"
    release.write_text(
        "extends: lab\nimage_label: next\ndefaults:\n"
        f"  image_digest: {pushed[-1].partition('@')[2]}\n"
        f"  model_id: {NEXT}\n  model_revision: {NEXT_REVISION}\n"
    )
    yield "next"
    release.unlink()


def packages(lab: Lab) -> list[str]:
    return [lab.root(host, "md5sum", "/var/lib/dpkg/status") for host in lab.hosts]


def snapshot(lab: Lab, host: str, name: str) -> str:
    return lab.root(host, "readlink", "-f", f"{FOLDER}/snapshots/{REVISION}/{name}").strip()


def test_the_next_release_is_fetched_while_this_one_serves(
    lab: Lab, converged: Play, next_release: str
) -> None:
    before, installed = lab.containers(), packages(lab)

    predicted = lab.play("playbooks/prepare.yml", "--check", "-e", f"release={next_release}").succeeded()
    run = lab.play("playbooks/prepare.yml", "-e", f"release={next_release}").succeeded()

    for host in lab.hosts:
        for output in (predicted.output, run.output):
            assert f"{host} needs: image up to 1 GB; weights 0.0 GB into /home/nvidia/.cache" in output
    assert lab.containers() == before
    assert packages(lab) == installed
    assert "OK" in lab.chat("Reply with OK.")
    assert lab.play("playbooks/prepare.yml", "-e", f"release={next_release}").succeeded().changed == 0
    assert lab.play("site.yml").succeeded().changed == 0


def test_m06_a_flipped_byte_on_the_worker_is_found_and_named(lab: Lab, converged: Play) -> None:
    worker = lab.hosts[1]
    payload = snapshot(lab, worker, SHARD)
    lab.root(worker, "sh", "-c", f"printf X | dd of={payload} bs=1 seek=5000 conv=notrunc")
    assert lab.play("playbooks/model.yml").succeeded().changed == 0, "sizes alone cannot tell"

    run = lab.play("playbooks/model.yml", "-e", "model_verify=sha256").refused()

    assert f"{worker}: {SHARD} sha256 differs: remove {payload} and run again" in run.output
    lab.root(worker, "rm", payload)
    lab.play("playbooks/model.yml", "-e", "model_verify=sha256").succeeded()
    assert lab.play("site.yml").succeeded().changed == 0


def test_a_truncated_payload_on_the_head_is_fetched_again(lab: Lab, converged: Play) -> None:
    payload = snapshot(lab, lab.hosts[0], SHARD)
    lab.root(lab.hosts[0], "truncate", "--size", "1000", payload)

    lab.play("playbooks/model.yml").succeeded()

    assert lab.play("playbooks/model.yml", "-e", "model_verify=sha256").succeeded()
    assert lab.play("site.yml").succeeded().changed == 0


def test_m17_without_the_hub_what_is_here_will_do(lab: Lab, converged: Play) -> None:
    """Whole, and not yet known to be: somebody downloaded it himself."""
    noted = f"/var/lib/twinserve/manifests/{MODEL.replace('/', '--')}@{REVISION}.json"
    nowhere = "hf_endpoint=http://127.0.0.1:9"
    assert lab.play("site.yml", "-e", nowhere).succeeded().changed == 0
    for host in lab.hosts:
        lab.root(host, "rm", noted)

    run = lab.play("playbooks/model.yml", "-e", nowhere).succeeded()

    assert "Hugging Face not reachable: using the snapshot already here (9eaebb7c)" in " ".join(
        run.output.split()
    )
    lab.root(lab.hosts[0], "rm", noted, snapshot(lab, lab.hosts[0], SHARD))
    refused = lab.play("playbooks/model.yml", "-e", nowhere).refused()
    assert "no answer from http://127.0.0.1:9" in refused.output
    lab.play("playbooks/model.yml").succeeded()


def test_m19_nfs_is_refused_where_the_nodes_lack_it(lab: Lab, converged: Play) -> None:
    run = lab.play("playbooks/model.yml", "-e", "worker_weights=nfs").refused()

    said = " ".join(run.output.split())
    assert f"{lab.hosts[1]}: cannot mount NFS: apt install nfs-common" in said
    assert f"{lab.hosts[0]}: has no NFS server: apt install nfs-kernel-server" in said


def forget_everything(lab: Lab) -> None:
    """Neither image nor weights on any node; the pair is stopped."""
    lab.play("playbooks/stop.yml").succeeded()
    for host in lab.hosts:
        lab.root(host, "sh", "-c", "docker images --quiet | sort -u | xargs -r docker rmi --force")
        lab.root(host, "sh", "-c", f"rm -rf {HUB} /var/lib/twinserve/manifests")


@pytest.mark.slow
def test_image_and_weights_come_from_a_disk_without_network(lab: Lab, converged: Play) -> None:
    head = lab.hosts[0]
    image = lab.inspect(head)["Config"]["Image"]
    lab.root(head, "cp", "-a", HUB.removesuffix("/hub"), "/srv/bundle")
    lab.root(head, "docker", "tag", image, "engine:bundle")
    lab.root(head, "docker", "save", "--output", "/srv/bundle/image.tar", "engine:bundle")
    forget_everything(lab)

    run = lab.play(
        "site.yml",
        "-e",
        "bundle=/srv/bundle",
        "-e",
        "hf_endpoint=http://127.0.0.1:9",
        "-e",
        "model_verify=sha256",
    ).succeeded()

    assert f"{head} takes weights from /srv/bundle into /home/nvidia/.cache/huggingface" in " ".join(
        run.output.split()
    )
    assert "OK" in lab.chat("Reply with OK.")
    assert {lab.inspect(host)["Config"]["Image"].partition(":")[0] for host in lab.hosts} == {
        "localhost/twinserve/tensorfold"
    }
    lab.root(head, "rm", "-rf", "/srv/bundle")
    forget_everything(lab)
    lab.play("site.yml").succeeded()
    assert lab.play("site.yml").succeeded().changed == 0
