"""A model of a test's own in the lab's hub: what it serves, how it fails, what was asked of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_pair import Lab

HOME = "/home/nvidia/.cache/huggingface"
MIB = 1 << 20
FAST = [f"model-{number:05d}-of-00004.safetensors" for number in (1, 2, 3)]
LAST = "model-00004-of-00004.safetensors"
# Bytes a second that are none: the file comes when the fault is taken away.
NONE = 1


@dataclass(frozen=True)
class Model:
    """`ORG/NAME` at the revision that the hub has now."""

    lab: Lab
    name: str = "test/weights"
    revision: str = "d" * 40

    @property
    def words(self) -> tuple[str, ...]:
        """What a play gets for this model to be the one that it brings in."""
        return "-e", f"model_id={self.name}", "-e", f"model_revision={self.revision}"

    @property
    def folder(self) -> str:
        """Where it is in a node's cache."""
        return f"{HOME}/hub/models--{self.name.replace('/', '--')}"

    @property
    def source(self) -> Path:
        """Where the hub has it."""
        return self.lab.folder / "hub" / self.name

    @property
    def _log(self) -> Path:
        return self.lab.folder / "logs/hub-requests.log"

    def publish(self, sizes: dict[str, int]) -> None:
        """Give the hub these files, with bytes that nobody has yet."""
        self.source.mkdir(parents=True, exist_ok=True)
        for name, size in sizes.items():
            (self.source / name).write_bytes(os.urandom(size))
        (self.source / "config.json").write_text(json.dumps({"made": os.urandom(4).hex()}))
        self.serve()

    def serve(self, gated: bool | str = False, **faults: Any) -> None:
        """How the hub serves it from now on; whole and at once if nothing is said."""
        described = {"sha": self.revision, "gated": gated, "faults": faults}
        fresh = self.source.parent / f"{self.source.name}.new"
        fresh.write_text(json.dumps(described))
        fresh.replace(fresh.with_suffix(".json"))  # the hub looks at it all the time

    def forget(self) -> None:
        """Take it away from both nodes."""
        name = self.name.replace("/", "--")
        gone = f"{self.folder} {HOME}/hub/.locks/models--{name} /var/lib/twinserve/manifests/{name}@*"
        for host in self.lab.hosts:
            self.lab.root(host, "sh", "-c", f"rm -rf {gone}")

    def fetched(self) -> Counter[str]:
        """How often each file's bytes were asked for since the log was emptied."""
        asked = [json.loads(line) for line in self._log.read_text().splitlines()]
        mark = f"/{self.name}/resolve/{self.revision}/"
        paths = [one["path"] for one in asked if one["method"] == "GET" and one["status"] in (200, 206)]
        return Counter(path.partition(mark)[2] for path in paths if mark in path)

    def forget_requests(self) -> None:
        """Empty the log, which the hub goes on writing at its end."""
        os.truncate(self._log, 0)

    def arrived(self) -> int:
        """Bytes of it that the head has, whole files and begun ones."""
        script = f"cat {self.folder}/blobs/* 2>/dev/null | wc -c"
        return int(self.lab.root(self.lab.hosts[0], "sh", "-c", script))

    def begun(self) -> list[str]:
        """Files in the head's cache whose download has not ended."""
        script = f"cd {self.folder}/blobs 2>/dev/null && ls | grep incomplete; true"
        return self.lab.root(self.lab.hosts[0], "sh", "-c", script).split()

    def in_the_middle(self) -> bool:
        """Whether all but the last file have come, and that one has begun."""
        script = f"ls {self.folder}/snapshots/*/ {self.folder}/blobs/ 2>/dev/null; true"
        there = self.lab.root(self.lab.hosts[0], "sh", "-c", script)
        return ".incomplete" in there and all(name in there for name in FAST)

    def jobs(self) -> list[str]:
        """Downloads of it that run on the head."""
        pattern = f"twinserve-job-download-{self.name.replace('/', '-')}*"
        listed = ("systemctl", "list-units", "--plain", "--no-legend", "--state=active", pattern)
        return self.lab.root(self.lab.hosts[0], *listed).splitlines()

    def is_right(self) -> bool:
        """Whether both nodes have it whole."""
        return all(self.whole(host) for host in self.lab.hosts)

    def whole(self, host: str) -> bool:
        """Whether the host has each file with the hub's bytes, and nothing that was begun."""
        here = {path.name: path.read_bytes() for path in self.source.iterdir()}
        script = (
            f"cd {self.folder}/snapshots/{self.revision} && sha256sum *; ls ../../blobs | grep -c inco; true"
        )
        *lines, begun = self.lab.root(host, "sh", "-c", script).splitlines()
        found = {name: digest for digest, name in (line.split() for line in lines)}
        return begun == "0" and found == {
            name: hashlib.sha256(data).hexdigest() for name, data in here.items()
        }


@contextmanager
def fresh_model(lab: Lab) -> Iterator[Model]:
    """Four files in the hub, new ones each time; nothing of them on the nodes."""
    model = Model(lab)
    model.forget()
    model.publish(dict.fromkeys([*FAST, LAST], MIB))
    model.forget_requests()
    yield model
    lab.verb("service", "hub", "on")
    model.serve()
    model.forget()


@contextmanager
def users_client(lab: Lab) -> Iterator[None]:
    """The user has the client himself, so that no container is needed."""
    # `up` wants hosts on which nothing has failed; the manager of a login that earlier tests ended may have.
    for host in lab.hosts:
        lab.root(host, "systemctl", "reset-failed")
    lab.verb("up", "--hf")
    yield
    for host in lab.hosts:
        lab.root(host, "rm", "/home/nvidia/.local/bin/hf")
