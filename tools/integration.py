"""The integration tests in two processes beside each other: the story's pair, and pairs of their own.

Each finished test is a line; all else that a process says comes in one piece when it ends, and everything is
in build/integration-PART.log. Exit code 1 when either fails. What is given (`--run-slow`) goes to both.
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
# By what tests/integration/conftest.py tells them apart, and the name that their labs begin with.
PARTS = {"story": "test", "own": "own"}
FINISHED = re.compile(r"(?P<test>\S+::.+) (?P<result>[A-Z]+)(?: \(.*\))? +\[ *(?P<percent>\d+%)\]")


def command(part: str, more: Iterable[str]) -> list[str]:
    """pytest with the tests of one part."""
    report = f"--junitxml=build/integration-{part}.xml"
    words = ["-v", "-m", "not real_engine", f"--part={part}", report, *more, "tests/integration"]
    return [sys.executable, "-m", "pytest", *words]


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
    environment = {**os.environ, "TWINSERVE_TEST_LAB": PARTS[part], "PYTHONUNBUFFERED": "1"}
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


def main(more: list[str]) -> int:
    """Run both; 0 when both passed."""
    (ROOT / "build").mkdir(exist_ok=True)
    codes: dict[str, int] = {}
    both = [threading.Thread(target=run, args=(part, more, codes)) for part in PARTS]
    for one in both:
        one.start()
    for one in both:
        one.join()
    return int(any(codes.get(part) != 0 for part in PARTS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
