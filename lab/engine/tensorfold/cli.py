"""The command line: parse, run, and turn refusals into `tensorfold: <reason>` with exit status 1."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import __version__
from .options import add_serve_options

COMMANDS = ("serve", "pull", "models", "update", "info")


def build_parser() -> argparse.ArgumentParser:
    """The whole parser. Building and parsing touch no file, no network and no environment variable."""
    parser = argparse.ArgumentParser(prog="tensorfold", description="Serve a model.")
    parser.add_argument("--version", action="version", version=f"tensorfold {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve a model over HTTP")
    add_serve_options(serve)
    pull = commands.add_parser("pull", help="download models")
    pull.add_argument("repos", nargs="+", metavar="REPO")
    commands.add_parser("models", help="list downloaded models")
    update = commands.add_parser("update", help="update the engine")
    update.add_argument("--check", action="store_true")
    update.add_argument("--force", action="store_true")
    info = commands.add_parser("info", help="describe a model without loading it")
    info.add_argument("model")
    return parser


def main(argv: Sequence[str] | None = None, root: Path = Path("/")) -> int:
    """Run one command and return its exit status; `root` is where /sys, /proc, /dev and /lab are looked up.

    Refusals (ValueError, FileNotFoundError) print one line and give 1. A RuntimeError passes through, so that
    the interpreter prints its traceback and ends with 1, as the engine does.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        words.insert(0, "serve")
    arguments = build_parser().parse_args(words)
    try:
        return _run(arguments, root)
    except (ValueError, FileNotFoundError) as refusal:
        print(f"tensorfold: {refusal}", file=sys.stderr, flush=True)
        return 1


def _run(arguments: argparse.Namespace, root: Path) -> int:
    if arguments.command == "serve":
        from .serve import serve

        return serve(arguments, dict(os.environ), root)
    if arguments.command == "info":
        from .info import describe

        print("\n".join(describe(Path(arguments.model))), flush=True)
        return 0
    raise ValueError(f"the simulator has no {arguments.command}: use the lab's model hub and image registry")
