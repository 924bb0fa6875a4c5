"""A model on the head that takes a while to copy, rails that are slow on request, and what came over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab_pair import ROOT, Lab
from link_setups import RAILS, shell

HOME = "/home/nvidia/.cache/huggingface"
PARTIAL = f"{HOME}/.twinserve-partial"
SIZE = 4 << 20
LARGE = 64 << 20  # from here on a file that was cut off is gone on with
# Content is made from the number, so that two revisions can share it. Prints the manifest.
_MAKE = """
import hashlib, json, pathlib, random, sys
given = json.loads(sys.argv[1])
folder = pathlib.Path(given["folder"])
store, blobs, snapshot = folder.parent / "blobs", folder / "blobs", folder / "snapshots" / given["revision"]
for place in (blobs, snapshot, *([store] if given["shared"] else [])):
    place.mkdir(parents=True, exist_ok=True)
files, digests = {}, {}
for number, size in given["contents"].items():
    data = random.Random(int(number)).randbytes(size)
    digest, name = hashlib.sha256(data).hexdigest(), f"model-{int(number):05d}.safetensors"
    stored = store / hashlib.sha512(data).hexdigest()[:64] if given["shared"] else blobs / digest
    stored.write_bytes(data)
    if given["shared"] and not (blobs / digest).is_symlink():
        (blobs / digest).symlink_to(f"../../blobs/{stored.name}")
    (snapshot / name).symlink_to(f"../../blobs/{digest}")
    files[name], digests[name] = size, f"sha256:{digest}"
print(json.dumps({"files": files, "digests": digests}))
"""
# Of each file of a snapshot, whether its bytes are those that it is named by.
_CHECK = """
import hashlib, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    with path.open("rb") as stream:
        print(path.name, hashlib.file_digest(stream, "sha256").hexdigest() == path.readlink().name)
"""
# How many bytes of a snapshot are in memory.
_CACHED = """
import ctypes, mmap, pathlib, sys
libc, held = ctypes.CDLL(None, use_errno=True), 0
for path in pathlib.Path(sys.argv[1]).iterdir():
    with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as view:
        found = (ctypes.c_ubyte * -(-len(view) // mmap.PAGESIZE))()
        start = (ctypes.c_char * len(view)).from_buffer(view)
        if libc.mincore(start, ctypes.c_size_t(len(view)), found):
            sys.exit(f"mincore: errno {ctypes.get_errno()}")
        held += sum(one & 1 for one in found) * mmap.PAGESIZE
        del start
print(held)
"""


@dataclass(frozen=True)
class Model:
    """A snapshot: size by number of each file, in one of the cache's two layouts."""

    contents: Mapping[int, int]
    repo: str = "test/large"
    revision: str = "c" * 40
    shared: bool = False

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.contents.values())

    @property
    def folder(self) -> str:
        """Where its repository is, on either node."""
        return f"{HOME}/hub/models--{self.repo.replace('/', '--')}"

    @property
    def snapshot(self) -> str:
        """Where its files are linked together."""
        return f"{self.folder}/snapshots/{self.revision}"

    @property
    def manifest(self) -> str:
        """What says that a node has it whole."""
        return f"/var/lib/twinserve/manifests/{self.repo.replace('/', '--')}@{self.revision}.json"

    @property
    def copy(self) -> list[str]:
        """The play that copies it, and nothing else."""
        pins = {"model_id": self.repo, "model_revision": self.revision, "drafter": "mtp", "parallel": 1}
        return [
            "playbooks/model.yml",
            *(word for key, value in pins.items() for word in ("-e", f"{key}={value}")),
        ]


MODEL = Model({0: LARGE, **dict.fromkeys(range(1, 21), SIZE)})


@contextmanager
def copying_pair(lab: Lab, *models: Model) -> Iterator[Lab]:
    """The pair with its link, stopped; on the head `models` as downloads leave them."""
    lab.play("playbooks/fabric.yml").succeeded()
    lab.play("playbooks/stop.yml").succeeded()
    for model in models:
        make(lab, model)
    yield lab
    for host in lab.hosts:
        forget(lab, host, *models)


def make(lab: Lab, model: Model) -> None:
    """Lay a verified snapshot down on the head."""
    given = {
        "folder": model.folder,
        "revision": model.revision,
        "contents": model.contents,
        "shared": model.shared,
    }
    as_user = ["runuser", "-u", "nvidia", "--", "python3", "-c", _MAKE, json.dumps(given)]
    manifest = lab.root(lab.hosts[0], *as_user)
    folder = model.manifest.rpartition("/")[0]
    shell(lab, lab.hosts[0], f"mkdir -p {folder}; cat > {model.manifest} <<'END'\n{manifest}END")


def forget(lab: Lab, host: str, *models: Model) -> None:
    """Nothing of them on a host, nor of a copy that was broken off."""
    for model in models:
        stored = f"find {model.folder}/blobs -type l -exec readlink -f {{}} + | xargs -r rm -f"
        shell(lab, host, f"if [ -d {model.folder}/blobs ]; then {stored}; fi")
        lab.root(host, "rm", "-rf", model.folder, model.manifest, PARTIAL)


def limit(lab: Lab, rate: str | None) -> None:
    """What the head can send on each rail."""
    for netdev in RAILS:
        how = f"tbf rate {rate} burst 64k latency 100ms" if rate else "noqueue"
        shell(lab, lab.hosts[0], f"tc qdisc replace dev {netdev} root {how}")


def sent(lab: Lab) -> list[int]:
    """Bytes that the head has sent on each rail."""
    files = [f"/sys/class/net/{netdev}/statistics/tx_bytes" for netdev in RAILS]
    return [int(line) for line in lab.root(lab.hosts[0], "cat", *files).split()]


def progress(lab: Lab, model: Model = MODEL) -> dict[str, Any]:
    """What the copy reports; empty before it does."""
    job = f"copy {lab.hosts[1]} {model.repo} {model.revision[:12]}".replace(" ", "-").replace("/", "-")
    report = f"/run/twinserve/progress/{job}.json"
    text = shell(lab, lab.hosts[0], f"if [ -f {report} ]; then cat {report}; fi")
    found: dict[str, Any] = json.loads(text) if text.strip() else {}
    return found


def forget_progress(lab: Lab) -> None:
    """So that a test sees its own copy alone."""
    shell(lab, lab.hosts[0], "rm -f /run/twinserve/progress/copy-*")


def moved(lab: Lab, part: float) -> Callable[[], bool]:
    """Whether this part of the model has come over."""
    return lambda: progress(lab).get("bytes", 0) > MODEL.total * part


def here(lab: Lab, model: Model = MODEL) -> int:
    """Bytes of the model that the worker has, whole files and begun ones."""
    script = f"""for file in {model.folder}/blobs/* {PARTIAL}/*; do
    if [ -f $file ]; then stat -c %s $file; fi
done"""
    return sum(int(size) for size in shell(lab, lab.hosts[1], script).split())


def linked(lab: Lab, model: Model = MODEL) -> list[str]:
    """Files of the snapshot that the worker has a link for."""
    script = f"if [ -d {model.snapshot} ]; then ls {model.snapshot}; fi"
    return shell(lab, lab.hosts[1], script).split()


def counts_as_whole(lab: Lab, model: Model = MODEL) -> bool:
    """Whether the worker has noted that the snapshot is there."""
    return "yes" in shell(lab, lab.hosts[1], f"if [ -f {model.manifest} ]; then echo yes; fi")


def whole(lab: Lab, model: Model = MODEL) -> bool:
    """Whether the worker has every file with the right bytes, and nothing is left over."""
    worker = lab.hosts[1]
    checked = [
        line.split() for line in lab.root(worker, "python3", "-c", _CHECK, model.snapshot).splitlines()
    ]
    right = [name for name, same in checked if same == "True"]
    strays = f"find {HOME} -path '*.twinserve-partial*' -o -path '*/blobs/.*'"
    return len(right) == len(checked) == len(model.contents) and not shell(lab, worker, strays).strip()


def cached(lab: Lab, host: str, model: Model = MODEL) -> int:
    """Bytes of the model that a host's kernel keeps in memory."""
    return int(lab.root(host, "python3", "-c", _CACHED, model.snapshot))


def wait_for(what: Callable[[], bool], play: subprocess.Popen[str] | None = None) -> None:
    """Until it is so; a test would hang when the `play` that it waits for is over, or after three minutes."""
    end = time.monotonic() + 180
    while not what():
        assert time.monotonic() < end, "it did not come to be"
        assert not play or play.poll() is None, f"the run is over: {play.communicate()[0]}"
        time.sleep(1)


@contextmanager
def running(
    lab: Lab, words: Sequence[str] = MODEL.copy, terminal: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The copy's play, under way; its output goes to `terminal`, if there is one."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(lab.inventory), *words]
    play = subprocess.Popen(
        argv,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE if terminal is None else terminal,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield play
    finally:
        if play.poll() is None:
            kill(play)
            play.communicate()


def kill(play: subprocess.Popen[str]) -> None:
    """The controller is gone, with all that it runs."""
    os.killpg(play.pid, signal.SIGKILL)
