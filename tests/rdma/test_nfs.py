"""Weights over NFS between two machines whose kernel can do it: one story, in this order.

The model is a few bytes in a bundle on the head, so no network is needed. Its files are its owner's alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import vm_pair as vm

HOME = "/var/lib/twinserve/weights"
MOUNT = f"{HOME}/hub"
CACHE = f"/home/{vm.USER}/.cache/huggingface"
BUNDLE = f"/home/{vm.USER}/bundle"
MODEL, FOLDER = "twinserve/tiny", "models--twinserve--tiny"
FIRST, SECOND = "1" * 40, "2" * 40
MAIN = "enp1s0f0np0"
SETTINGS = ("drafter=mtp", "parallel=1", "prepare=auto", f"bundle={BUNDLE}", f"model_id={MODEL}")

# A snapshot as the hub's client leaves it: links to blobs that are named by their hash.
SNAPSHOT = """set -e
umask 077
mkdir -p {place}/hub/{folder}/blobs
cd {place}/hub/{folder}
for text in config.json='{{}}' model-00001.safetensors=weights-of-{revision}; do
    name=${{text%%=*}}; printf '%s' "${{text#*=}}" >blobs/new
    blob=$(sha256sum blobs/new | cut -c1-64); mv blobs/new blobs/$blob; chmod 0400 blobs/$blob
    mkdir -p snapshots/{revision}; ln -sf ../../blobs/$blob snapshots/{revision}/$name
done
"""


@pytest.fixture(scope="module", autouse=True)
def machines() -> Iterator[None]:
    """Rails with addresses, a bundle of two revisions, and a token beside the weights."""
    with vm.machines():
        prepare()
        yield


def prepare() -> None:
    """What the story begins with."""
    if not vm.addresses(vm.HEAD)[MAIN]:
        vm.play()
    made = "".join(SNAPSHOT.format(place=BUNDLE, folder=FOLDER, revision=one) for one in (FIRST, SECOND))
    vm.on(vm.HEAD, f"{made}mkdir -p {CACHE}; echo secret >{CACHE}/token")
    # The worker has a copy from before, which nothing is to touch.
    vm.on(vm.WORKER, SNAPSHOT.format(place=CACHE, folder=FOLDER, revision=SECOND))


def words(revision: str = FIRST, weights: str = "nfs", *more: str) -> list[str]:
    """Settings for the tiny model."""
    given = (*SETTINGS, f"model_revision={revision}", f"worker_weights={weights}", *more)
    return [word for one in given for word in ("-e", one)]


def address(host: str) -> str:
    """A machine's own on the main rail."""
    return vm.addresses(host)[MAIN][0].partition("/")[0]


def shard(revision: str, home: str = HOME) -> str:
    """The file with the weights."""
    return f"{home}/hub/{FOLDER}/snapshots/{revision}/model-00001.safetensors"


def source() -> str:
    """What is mounted for weights on the worker, and how, by the kernel's own list."""
    return vm.on(vm.WORKER, f'awk \'$2 == "{MOUNT}" && $3 != "autofs" {{print $1, $4}}\' /proc/mounts')


# What a start of a rank does first for its weights, with the runtime that the role laid down.
START = (
    "PYTHONPATH=$(echo /usr/local/lib/twinserve/*) python3 -P -c "
    f"\"from twinserve.agent import weights; weights.mount({{'mounts': [{{'source': '{HOME}'}}]}})\""
)
# And then, with an image of one program.
RANK = (
    f"{START} && cd /bin && tar -c busybox | sudo docker import - tiny >/dev/null && sudo docker run --rm "
    f"--network none -v {HOME}:/root/.cache/huggingface:ro tiny /busybox cat "
)


def test_m19_the_worker_reads_the_owners_private_files_over_the_rail() -> None:
    done = vm.play(*words(FIRST, "nfs", "model_verify=sha256"), playbook="model")
    assert done.changed > 0
    mounted, options = source().split()
    assert mounted == f"{address(vm.HEAD)}:{CACHE}/hub"
    assert {"ro", "hard", "vers=4.2", "lookupcache=pos"} <= set(options.split(","))
    assert vm.on(vm.HEAD, f"stat -Lc %a {shard(FIRST, CACHE)}").strip() == "400"
    assert vm.on(vm.WORKER, f"sudo cat {shard(FIRST)}") == f"weights-of-{FIRST}"
    vm.fails(vm.WORKER, f"test -e {shard(FIRST, CACHE)}")


def test_x03_a_wider_export_of_others_is_told_and_a_second_run_changes_nothing() -> None:
    line = f"/home/{vm.USER} 198.18.99.0/24(ro)"
    vm.on(vm.HEAD, f"echo '{line}' | sudo tee /etc/exports.d/other.exports")
    done = vm.play(*words(), playbook="model")
    vm.on(vm.HEAD, "sudo rm /etc/exports.d/other.exports")
    assert done.changed == 0, done.output
    warning = f"/etc/exports.d/other.exports gives away more than the weights: {line}"
    assert warning in " ".join(done.output.split())


def test_x03_nothing_else_is_given_away_and_to_nobody_else() -> None:
    vm.on(vm.WORKER, "sudo mkdir -p /mnt/try")
    mount = "sudo mount -t nfs -o nfsvers=4.2,retry=0"
    lan = vm.on(vm.HEAD, "ip -j -4 addr show enP7s7 | grep -o '198[.0-9]*' | head -1").strip()
    other = vm.addresses(vm.HEAD)["enP2p1s0f0np0"][0].partition("/")[0]
    for way in (lan, other):
        assert "access denied" in vm.fails(vm.WORKER, f"{mount} {way}:{CACHE}/hub /mnt/try")
    vm.fails(vm.WORKER, f"{mount} {address(vm.HEAD)}:{CACHE} /mnt/try && sudo cat /mnt/try/token")
    vm.on(
        vm.WORKER, f"! mountpoint -q /mnt/try || sudo umount /mnt/try; {mount} {address(vm.HEAD)}:/ /mnt/try"
    )
    assert vm.on(vm.WORKER, f"sudo ls -A /mnt/try{CACHE}").split() == ["hub"]
    vm.fails(vm.WORKER, f"sudo cat /mnt/try{CACHE}/token")
    said = vm.fails(vm.WORKER, f"sudo touch /mnt/try{CACHE}/hub/mine")
    assert "Read-only file system" in said
    vm.on(vm.WORKER, "sudo umount /mnt/try")


def test_c16_compiled_kernels_on_the_mount_are_refused() -> None:
    said = vm.refused(*words(FIRST, "nfs", f"kernel_cache={MOUNT}/kernels"), playbook="model")
    assert f"{vm.WORKER}: kernel_cache is inside the NFS weights mount" in said


def test_m19_an_export_whose_files_only_nobody_reads_is_refused() -> None:
    """Somebody edits our export: what is listed cannot be read. The next run mends it."""
    vm.on(
        vm.HEAD,
        "sudo sed -i 's/all_squash,.*)/root_squash)/' /etc/exports.d/twinserve.exports && sudo exportfs -ra",
    )
    # A file that is open, or has been, is not asked for again.
    vm.on(vm.WORKER, f"sudo umount {MOUNT} && sudo mount {MOUNT}")
    given = {"hf_home": HOME, "repo": MODEL, "revision": FIRST, "readable": True}
    said = vm.module(vm.WORKER, "hf_snapshot", given)
    assert "worker cannot read config.json over NFS (mode 0400, root_squash)" in said


def test_m19_a_new_revision_is_seen_at_once_through_a_mended_export() -> None:
    """The worker asked for it a moment before it came."""
    assert vm.play(*words(SECOND), playbook="model").changed > 0
    assert vm.on(vm.WORKER, f"sudo cat {shard(SECOND)}") == f"weights-of-{SECOND}"


def test_m19_a_head_that_is_gone_is_told_and_hangs_neither_play_nor_boot() -> None:
    where = f"{address(vm.HEAD)}:{CACHE}/hub"
    told = f"{where} does not give the weights over NFS"
    vm.verb("cut-rail", "1")
    said = vm.refused(*words(SECOND), playbook="model")
    assert f"{vm.WORKER}: the model cache cannot be read: {told}" in said
    vm.verb("reboot", vm.WORKER)  # waits until all that boots has booted
    assert told in vm.fails(vm.WORKER, START)
    vm.verb("mend-rail", "1")


def test_m19_weights_are_there_for_a_rank_when_the_head_came_later_than_the_worker() -> None:
    assert source() == "", "the test before this one has left the mount waiting"
    assert vm.on(vm.WORKER, RANK + shard(SECOND, "/root/.cache/huggingface")) == f"weights-of-{SECOND}"
    assert source().startswith(f"{address(vm.HEAD)}:{CACHE}/hub ")
    assert vm.play(*words(SECOND), playbook="model").changed == 0


def test_m19_weights_are_there_again_after_the_head_was_away() -> None:
    vm.verb("reboot", vm.HEAD)
    assert vm.on(vm.WORKER, f"sudo cat {shard(SECOND)}") == f"weights-of-{SECOND}"
    assert vm.on(vm.WORKER, f"sudo cat {shard(FIRST)}") == f"weights-of-{FIRST}"


def test_m19_back_to_copies_takes_mount_and_export_away_and_leaves_files() -> None:
    done = vm.play(*words(SECOND, "copy"), playbook="model")
    assert f"{vm.WORKER} reads from its own disk, and from the head no more" in " ".join(done.output.split())
    assert vm.on(vm.WORKER, f"sudo cat {shard(SECOND, CACHE)}") == f"weights-of-{SECOND}"
    assert vm.on(vm.HEAD, f"cat {shard(SECOND, CACHE)}") == f"weights-of-{SECOND}"
    assert vm.on(vm.WORKER, f"grep -h {HOME} /proc/mounts /etc/fstab; systemctl --failed --no-legend") == ""
    assert vm.on(vm.HEAD, "sudo exportfs; ls /etc/exports.d") == ""
    assert vm.play(*words(SECOND, "copy"), playbook="model").changed == 0
