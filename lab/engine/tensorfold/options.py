"""The options of `tensorfold serve` at 0.5.0: names, types, defaults and choices, not their meaning.

What argparse refuses here ends with exit status 2; what needs sense is refused later, with status 1.
"""

from __future__ import annotations

import argparse

SNAPSHOTS = "~/.cache/tensorfold/prefix-snapshots"


def add_serve_options(parser: argparse.ArgumentParser) -> None:
    """Add the positional model and the 38 options."""
    parser.add_argument("model", help="a model directory or a repository id")
    _add_server(parser)
    _add_sampling(parser)
    _add_drafts(parser)
    _add_caches(parser)
    _add_ranks(parser)


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address of the API")
    parser.add_argument("--port", type=int, default=8080, help="port of the API")
    parser.add_argument("--name", default="", help="model id; empty: the directory's name")
    parser.add_argument("--alias", action="append", default=[], help="a further model id")
    parser.add_argument("--vision", action="store_true", help="accept images and videos")
    parser.add_argument("--vision-urls", action="store_true", help="fetch media from URLs too")
    parser.add_argument(
        "--context", type=int, default=None, help="window in tokens; 0: the largest that fits"
    )
    parser.add_argument("--max-tokens", type=int, default=4096, help="reply budget when a request names none")


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--temperature", type=float, default=None)
    parser.add_argument("--top-p", type=float, default=None)
    parser.add_argument("--min-p", type=float, default=None)
    parser.add_argument("--top-k", type=int, default=None)
    parser.add_argument("--thinking", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--reasoning-effort", choices=("low", "medium", "xhigh"), default=None)
    parser.add_argument("--thinking-budget", type=int, default=0)


def _add_drafts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-drafts", action="store_true")
    parser.add_argument("--drafter", default="auto", help="path, repository id, none or auto")
    parser.add_argument("--drafter-bits", type=int, default=4)
    parser.add_argument("--mtp-drafts", type=int, default=None)
    parser.add_argument("--mtp-confidence", type=float, default=None)
    parser.add_argument("--lane-kernels", choices=("auto", "on", "off"), default="auto")


def _add_caches(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prompt-cache-gib", type=float, default=None)
    parser.add_argument("--checkpoint-slots", type=int, default=None)
    parser.add_argument("--spill-gib", type=float, default=0.0)
    parser.add_argument("--snapshot-dir", default=SNAPSHOTS)
    parser.add_argument("--max-snapshots", type=int, default=3)
    parser.add_argument("--parallel", default="auto", help="requests decoded together: a number or auto")
    parser.add_argument("--decode-share", type=float, default=None)
    parser.add_argument("--mlx-cache-gib", type=float, default=8.0)
    parser.add_argument("--ssd-experts", type=float, default=None)
    parser.add_argument("--ple-on-ssd", action="store_true")
    parser.add_argument("--no-update-check", action="store_true")


def _add_ranks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", choices=("auto", "mlx", "cuda"), default="auto")
    parser.add_argument("--tp", type=int, choices=(1, 2), default=1)
    parser.add_argument("--rank", type=int, choices=(0, 1), default=0)
    parser.add_argument("--master", default="", help="address of rank 0")
    parser.add_argument("--master-port", type=int, default=29551)
    parser.add_argument("--kv-dtype", choices=("bf16", "int8", "int4"), default="bf16")
