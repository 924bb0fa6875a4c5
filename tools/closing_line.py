"""The last line of `make test`: the sums of all JUnit reports, for whoever reads the log."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as xml


def main(paths: list[str]) -> None:
    """Add up and print; a report with a failure has ended make before."""
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for path in paths:
        for suite in xml.parse(path).getroot().iter("testsuite"):
            for name in counts:
                counts[name] += int(suite.get(name, 0))
    failed = counts["failures"] + counts["errors"]
    print(
        f"{counts['tests'] - failed - counts['skipped']} passed, {failed} failed, {counts['skipped']} skipped"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
