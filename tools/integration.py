"""The integration tests in two rows beside each other.

One is the story's pair; the other pairs of their own, then the lab itself, then each role alone. Each test
that ends is a line; all else that a part says comes in one piece when it ends, and everything is in
build/integration-PART.log. Exit code 1 when any fails. What is given (`--run-slow`) goes to the pairs' tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
ROWS = (("story",), ("own", "lab", "molecule"))
# The parts that tests/integration/conftest.py tells apart, and the name that their labs begin with.
LABS = {"story": "test", "own": "own"}
FINISHED = re.compile(r"(?P<test>\S+::.+) (?P<result>[A-Z]+)(?: \(.*\))? +\[ *(?P<percent>\d+%)\]")


def command(part: str, more: Iterable[str]) -> list[str]:
    """What runs one part."""
    if part == "molecule":
        return ["tools/molecule.sh"]
    if part == "lab":
        words = ["-m", "lab", "tests/lab"]
    else:
        words = ["-m", "not real_engine", f"--part={part}", *more, "tests/integration"]
    return [sys.executable, "-m", "pytest", "-v", f"--junitxml=build/integration-{part}.xml", *words]


def follow(part: str, told: Iterable[str], log: TextIO, screen: TextIO) -> None:
    """Show each finished test at once, and the rest in one piece when there is no more."""
    rest = []
    for line in told:
        log.write(line)
        log.flush()
        if found := FINISHED.match(line):
            test = found["test"].removeprefix("tests/integration/")
            screen.write(f"{part} {found['percent']:>4} {found['result']} {test}\n")
            screen.flush()
        else:
            rest.append(line)
    screen.write(f"\n== integration tests: {part}\n{''.join(rest)}\n")
    screen.flush()


def run(part: str, more: Iterable[str], codes: dict[str, int]) -> None:
    """Run one part to its end."""
    environment = {**os.environ, "TWINSERVE_TEST_LAB": LABS.get(part, part), "PYTHONUNBUFFERED": "1"}
    with (
        (ROOT / f"build/integration-{part}.log").open("w") as log,
        subprocess.Popen(
            command(part, more),
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout
        follow(part, process.stdout, log, sys.stdout)
    codes[part] = process.returncode


def run_row(row: Iterable[str], more: Iterable[str], codes: dict[str, int]) -> None:
    """Run the parts of a row one after the other, whatever becomes of each."""
    for part in row:
        run(part, more, codes)


def main(more: list[str]) -> int:
    """Run all; 0 when all passed."""
    (ROOT / "build").mkdir(exist_ok=True)
    codes: dict[str, int] = {}
    rows = [threading.Thread(target=run_row, args=(row, more, codes)) for row in ROWS]
    for one in rows:
        one.start()
    for one in rows:
        one.join()
    return int(any(codes.get(part) != 0 for row in ROWS for part in row))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
