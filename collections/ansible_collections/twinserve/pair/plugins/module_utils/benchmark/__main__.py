"""`python3 -m twinserve.benchmark install|sweep`: what it prints last is what people are told."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from .install import InstallError, Order, install
from .others import Unquiet
from .sweep import Sweep, SweepError

KEY = "TWINSERVE_BENCH_KEY"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The order as it was written on the command line."""
    parser = argparse.ArgumentParser(prog="twinserve.benchmark")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("install")
    for name in ("version", "python", "pip", "constraints"):
        one.add_argument(f"--{name}", required=True)
    one.add_argument("--wheels", default="")
    one = verbs.add_parser("sweep")
    one.add_argument("folder", type=Path, help="which has plan.json")
    one.add_argument("--again", action="store_true", help="measure also what is measured")
    for one in verbs.choices.values():
        one.add_argument("--secret", type=Path, help="file to remove: systemd has read it")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Do it; systemd's SIGTERM ends AIPerf, too."""
    signal.signal(signal.SIGTERM, _end)
    given = vars(parse(argv))
    secret = given.pop("secret")
    _remove(secret)
    try:
        if given.pop("verb") == "install":
            print(install(Order(**given)))
        else:
            plan = json.loads((given["folder"] / "plan.json").read_text(encoding="utf-8"))
            print(Sweep(plan, given["folder"], os.environ.get(KEY, ""), given["again"]).run())
    except (InstallError, SweepError, Unquiet, OSError, ValueError) as error:
        print(error)
        return 1
    finally:
        _remove(secret)  # a run that attached has laid it down anew
    return 0


def _remove(path: Path | None) -> None:
    if path:
        path.unlink(missing_ok=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    print("ended from outside: what is finished is kept, and run again it goes on", flush=True)
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
