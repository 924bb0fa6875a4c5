"""`make bench`: our copy of a model's cache against one rsync over ssh on one rail, on limited rails.

Each round runs every way once, so that all of them see the same machine. What is told are medians.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.pair import ROOT, USER, Pair, options, tell

MBIT = 400
HUB = f"/home/{USER}/.cache/huggingface/hub"
REVISION = "b" * 40
# Megabytes (2^20) of each file: many of middle size with a lot of small ones, and the same in few large ones.
SHAPES = {"many": [10] * 120 + [4] * 20, "few": [256] * 5}
SMALL, SMALL_BYTES = 200, 20_000
RUNTIME, PLAN, TARGET = "/usr/local/lib/bench", "/run/bench.json", "bench-target"


@dataclass(frozen=True)
class Way:
    """A way to copy: what is measured, which cache, over how many rails, by whom, what is wished for."""

    name: str
    shape: str
    rails: int
    ours: bool
    goal: str = ""


WAYS = (
    Way("rsync -a -L --partial, one rail", "many", 1, ours=False),
    Way("twinserve, one rail", "many", 1, ours=True, goal="1.00x"),
    Way("twinserve, two rails", "many", 2, ours=True, goal="1.80x, limit 0.85"),
    Way("twinserve, two rails, five large files", "few", 2, ours=True),
)


@dataclass(frozen=True)
class Found:
    """What came of a way: seconds of each run, their median, and the share of the rails' limit."""

    name: str
    seconds: list[float]
    median: float
    fraction: float


def repo(shape: str) -> str:
    """The folder of a cache below hub/."""
    return f"models--bench--{shape}"


def size(shape: str) -> int:
    """Bytes of a cache."""
    return (sum(SHAPES[shape]) << 20) + (SMALL * SMALL_BYTES if shape == "many" else 0)


def make_cache(pair: Pair, shape: str) -> None:
    """Fill the head's cache: blobs of random bytes and a snapshot that links to them; note what to copy."""
    sizes = [one << 20 for one in SHAPES[shape]] + ([SMALL_BYTES] * SMALL if shape == "many" else [])
    script = f"""
import os, pathlib
folder = pathlib.Path("{HUB}/{repo(shape)}")
blobs, snapshot = folder / "blobs", folder / "snapshots/{REVISION}"
blobs.mkdir(parents=True, exist_ok=True)
snapshot.mkdir(parents=True, exist_ok=True)
names = []
for number, size in enumerate({sizes}):
    name = f"{{number:064x}}"
    (blobs / name).write_bytes(os.urandom(size))
    (snapshot / f"file-{{number:05d}}").symlink_to(f"../../blobs/{{name}}")
    names.append(f"{repo(shape)}/blobs/{{name}}")
links = [f"{repo(shape)}/snapshots/{REVISION}/file-{{number:05d}}" for number in range(len(names))]
pathlib.Path("/run/bench-{shape}").write_text("\\n".join(names + links) + "\\n")
"""
    pair.verb("exec", pair.hosts[0], "python3", "-c", script)
    pair.root(pair.hosts[0], f"chown -R {USER}: /home/{USER}/.cache")


def prepare(pair: Pair) -> None:
    """Keys and known hosts by the real playbook, the program that copies, and a cache to write to."""
    pair.play("playbooks/fabric.yml")
    plugins = ROOT / "collections/ansible_collections/twinserve/pair/plugins"
    pack = ["tar", "-C", str(plugins), "--transform", "s,^module_utils,twinserve,", "-c", "module_utils"]
    packed = subprocess.run(pack, capture_output=True, check=True).stdout
    unpack = f"mkdir -p {RUNTIME} && tar -C {RUNTIME} --no-same-owner -x"
    pair.verb("exec", pair.hosts[0], "sh", "-ec", unpack, stdin=packed)
    for host in pair.hosts:
        pair.root(host, f"su {USER} -c 'mkdir -p {HUB}'")


def write_plan(pair: Pair, way: Way) -> None:
    """The plan of one of our copies."""
    own, peer = (pair.rail_addresses(host) for host in pair.hosts)
    rails = [{"address": there, "source": here} for here, there in zip(own, peer, strict=True)]
    plan = {
        "worker": pair.hosts[1],
        "user": USER,
        "source": HUB,
        "target": "hub/",
        "files": f"/run/bench-{way.shape}",
        "rails": rails[: way.rails],
    }
    pair.root(pair.hosts[0], f"cat > {PLAN} <<'END'\n{json.dumps(plan)}\nEND")


def command(pair: Pair, way: Way) -> str:
    """What is timed, on the head."""
    if way.ours:
        return f"PYTHONPATH={RUNTIME} python3 -P -m twinserve.transfer {PLAN} >&2"
    address = pair.rail_addresses(pair.hosts[1])[0]
    source = f"{HUB}/{repo(way.shape)}/snapshots/{REVISION}/"
    return f"su {USER} -c 'rsync -a -L --partial -e ssh {source} {USER}@{address}:{TARGET}/'"


def measure(pair: Pair, way: Way) -> float:
    """Seconds of one run into an empty worker, with everything to be read in the head's memory."""
    head, worker = pair.hosts
    pair.root(worker, f"rm -rf {HUB}/models--bench--* /home/{USER}/{TARGET}; sync")
    write_plan(pair, way)
    script = f"""
cat {HUB}/{repo(way.shape)}/blobs/* > /dev/null
began=$(date +%s.%N)
{command(pair, way)}
echo "$began $(date +%s.%N)"
"""
    began, ended = pair.root(head, script).split()[-2:]
    arrived = f"{HUB}/{repo(way.shape)}/snapshots/{REVISION}" if way.ours else f"/home/{USER}/{TARGET}"
    found = pair.root(worker, f"cat {arrived}/* | wc -c")
    if int(found) != size(way.shape):
        sys.exit(f"bench: {way.name}: {found.strip()} bytes arrived, {size(way.shape)} were sent")
    return float(ended) - float(began)


def judge(runs: dict[str, list[float]]) -> list[Found]:
    """Medians, and what share of the rails' limit they are."""
    found = []
    for way in WAYS:
        median = statistics.median(runs[way.name])
        limit = way.rails * MBIT * 1e6 / 8
        found.append(Found(way.name, runs[way.name], median, size(way.shape) / median / limit))
    return found


def table(found: Sequence[Found]) -> str:
    """The figures for people."""
    lines = [f"{'':40} {'median':>8} {'limit':>7} {'faster':>7}   {'goal':18} runs (s)"]
    for way, one in zip(WAYS, found, strict=True):
        # Bytes may differ between shapes: rates are compared, in units of one rail's limit.
        faster = one.fraction * way.rails / found[0].fraction
        runs = " ".join(f"{seconds:.2f}" for seconds in one.seconds)
        figures = f"{one.median:>6.2f} s {one.fraction:>7.2f} {faster:>6.2f}x   {way.goal:18}"
        lines.append(f"{one.name:40} {figures} {runs}")
    return "\n".join(lines)


def main() -> None:
    """Bring the pair up, measure, tell, and take it down."""
    given = options(__doc__)
    pair = Pair(given.name)
    print(f"== two hosts, rails limited to {MBIT} Mbit/s at both ends", flush=True)
    pair.verb("up", "--cabled")
    try:
        prepare(pair)
        for shape in SHAPES:
            make_cache(pair, shape)
        pair.limit_rails(MBIT)
        runs: dict[str, list[float]] = {way.name: [] for way in WAYS}
        for number in range(1, given.rounds + 1):
            for way in WAYS:
                runs[way.name].append(measure(pair, way))
                print(f"round {number}: {way.name}: {runs[way.name][-1]:.2f} s", flush=True)
    finally:
        if not given.keep:
            pair.verb("down", "--wipe")
    found = judge(runs)
    figures = {
        "mbit": MBIT,
        "bytes": {shape: size(shape) for shape in SHAPES},
        "ways": [asdict(one) for one in found],
    }
    tell("copy", table(found), figures)


if __name__ == "__main__":
    main()
