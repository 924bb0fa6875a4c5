"""The command line: one function for each verb."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from twinlab.errors import LabError
from twinlab.progress import Progress

from . import capture, pair, qemu
from .machines import Machine


def _machine(name: str) -> Machine:
    for machine in pair.known():
        if name in (machine.name, machine.name[-1]):
            return machine
    raise LabError(f"there is no machine {name}: roce-a or roce-b, a or b for short")


def _run(options: argparse.Namespace, progress: Progress) -> int:
    match options.verb:
        case "up":
            pair.up(progress)
        case "down":
            pair.down(progress, options.wipe)
        case "status":
            running = [qemu.is_on(machine) for machine in pair.known()]
            for machine, on in zip(pair.known(), running, strict=True):
                print(f"{machine.name}  {machine.address}  {'on' if on else 'OFF'}")
            return 0 if all(running) else 1
        case "ssh":
            argv = pair.ssh_argv(_machine(options.host), options.command)
            os.execvp(argv[0], argv)
        case "reboot":
            pair.reboot(_machine(options.host), progress)
        case "cut-rail" | "mend-rail":
            state = "off" if options.verb == "cut-rail" else "on"
            for machine in pair.known():
                qemu.command(machine, ["set_link", f"port{options.rail}", state])
        case "capture":
            capture.write(_machine("a"), Path(options.folder), progress)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rdma", description="Two virtual machines with RoCE devices.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("up", help="build, boot, and wait until both have booted")
    verbs.add_parser("down", help="switch off and forget").add_argument(
        "--wipe", action="store_true", help="and remove all that was built"
    )
    verbs.add_parser("status", help="what runs; exit code 1 unless both do")
    texts = {
        "ssh": "log in as the user, or run a command",
        "reboot": "reboot and wait until booted",
    }
    for name, text in texts.items():
        verbs.add_parser(name, help=text).add_argument("host", metavar="HOST")
    verbs.choices["ssh"].add_argument("command", nargs=argparse.REMAINDER)
    captures = verbs.add_parser(
        "capture", help="write trees of roce-a's devices, state by state; after a fresh up"
    )
    captures.add_argument("folder", metavar="FOLDER")
    for name, text in {"cut-rail": "take the carrier of a rail", "mend-rail": "give it back"}.items():
        verbs.add_parser(name, help=text).add_argument("rail", type=int, choices=(1, 2))
    return parser


def main(argv: list[str]) -> int:
    """Run one verb.  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 cannot run here."""
    options = _parser().parse_args(argv)
    try:
        return _run(options, Progress())
    except LabError as error:
        print(f"rdma: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("rdma: interrupted; `lab/rdma down` clears what is left", file=sys.stderr)
        return 130
