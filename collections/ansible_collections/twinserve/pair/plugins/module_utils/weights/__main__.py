"""`python3 -m twinserve.weights fetch|take|verify`: what it prints last is what people are told."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from .bundle import take
from .errors import ClientFailed, WeightsError
from .fetch import Order, fetch
from .verify import verify


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The order as it was written on the command line."""
    parser = argparse.ArgumentParser(prog="twinserve.weights")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("fetch", "take", "verify"):
        one = verbs.add_parser(verb)
        for name, says in (("home", "cache root"), ("repo", "organisation/name"), ("revision", "commit")):
            one.add_argument(f"--{name}", required=True, help=says)
    verbs.choices["verify"].add_argument("--host", required=True, help="what this node is called")
    verbs.choices["take"].add_argument("--bundle", required=True, help="folder that has it")
    for verb in ("fetch", "take"):
        verbs.choices[verb].add_argument("--user", help="whose cache it is")
        verbs.choices[verb].add_argument("--secret", action="append", help="file to remove at the end")
    one = verbs.choices["fetch"]
    one.add_argument("--stall", type=float, default=300.0, help="seconds without a byte that end a try")
    one.add_argument("--offline", action="store_true", help="what is here must do")
    one.add_argument("--again", action="store_true", help="ask the client also when all is here")
    one.add_argument("argv", nargs="+", help="the client's command line, after --")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Do it; systemd's SIGTERM ends the client, too."""
    signal.signal(signal.SIGTERM, _end)
    given = parse(argv)
    try:
        if given.verb == "verify":
            print(verify(given.home, given.repo, given.revision, given.host))
        elif given.verb == "take":
            print(take(given.home, given.repo, given.revision, given.bundle, given.user))
        else:
            order = {key: value for key, value in vars(given).items() if key not in ("verb", "secret")}
            print(fetch(Order(**order)))
    except ClientFailed as error:
        print(error)
        return error.code if error.code > 0 else 1
    except (WeightsError, OSError, ValueError) as error:
        print(error)
        return 1
    finally:
        for path in vars(given).get("secret") or ():
            Path(path).unlink(missing_ok=True)
    return 0


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
