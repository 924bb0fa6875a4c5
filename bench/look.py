"""`make bench`: a second run of the model's play, which finds 200 files as they should be on both nodes.

The public shell recipe took 10.70 s for that where a play with one task took 2.01 s, on hosts of this kind.
"""

from __future__ import annotations

from bench.copy import HUB
from bench.pair import USER, Pair, options, tell
from bench.yardstick import ONE_TASK, Timed, play, round_trips

REPO, REVISION, FILES, BYTES = "bench/look", "d" * 40, 200, 20_000
RECIPE, RECIPE_ROUND_TRIPS = 10.70 / 2.01, 17
GOAL = RECIPE / 2
MODEL = ("playbooks/model.yml", "-e", f"model_id={REPO}", "-e", f"model_revision={REVISION}")
# A verified snapshot, as a download leaves it on the head.
MAKE = f"""
import hashlib, json, os, pathlib, subprocess
folder = pathlib.Path("{HUB}/models--bench--look")
blobs, snapshot = folder / "blobs", folder / "snapshots/{REVISION}"
blobs.mkdir(parents=True)
snapshot.mkdir(parents=True)
files, digests = {{}}, {{}}
for number in range({FILES}):
    name, data = f"part-{{number:05d}}.safetensors", os.urandom({BYTES})
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    (snapshot / name).symlink_to(f"../../blobs/{{digest}}")
    files[name], digests[name] = len(data), f"sha256:{{digest}}"
subprocess.run(["chown", "-R", "{USER}:", "/home/{USER}/.cache"], check=True)
manifest = pathlib.Path("/var/lib/twinserve/manifests/bench--look@{REVISION}.json")
manifest.parent.mkdir(parents=True, exist_ok=True)
manifest.write_text(json.dumps({{"files": files, "digests": digests}}))
"""


def table(found: list[Timed]) -> str:
    """The figures for people."""
    yardstick = found[0].median
    lines = [f"{'':40} {'median':>8} {'plays':>7} {'sent':>5}   runs (s)"]
    for one in found:
        runs = " ".join(f"{seconds:.2f}" for seconds in one.seconds)
        ratio = one.median / yardstick
        lines.append(f"{one.name:40} {one.median:>6.2f} s {ratio:>6.2f}x {one.round_trips:>5}   {runs}")
    lines.append(f"{'the shell recipe, elsewhere':40} {'':>8} {RECIPE:>6.2f}x {RECIPE_ROUND_TRIPS:>5}")
    lines.append(f"{'goal, half of it':40} {'':>8} {GOAL:>6.2f}x")
    return "\n".join(lines)


def main() -> None:
    """Bring the pair up and its model in, measure, tell, and take it down."""
    given = options(__doc__)
    pair = Pair(given.name)
    print("== two hosts with a model of 200 files", flush=True)
    pair.verb("up", "--cabled")
    try:
        pair.play("playbooks/fabric.yml")
        pair.verb("exec", pair.hosts[0], "python3", "-c", MAKE)
        pair.play(*MODEL)
        runs: dict[tuple[str, ...], list[float]] = {(str(ONE_TASK),): [], MODEL: []}
        for _ in range(given.rounds):
            for words, seconds in runs.items():
                seconds.append(play(pair, *words))
        names = ("a play with one task", "the model's play, nothing to do")
        found = [
            Timed(name, seconds, round_trips(pair, *words))
            for name, (words, seconds) in zip(names, runs.items(), strict=True)
        ]
    finally:
        if not given.keep:
            pair.verb("down", "--wipe")
    figures = [{"name": one.name, "seconds": one.seconds, "sent": one.round_trips} for one in found]
    tell("look", table(found), figures)


if __name__ == "__main__":
    main()
