"""What the verbs of the command line have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from . import network, ownership, requirements
from .errors import LabError
from .layout import DEFAULT_NAME, Lab, state_root
from .progress import Progress

Verb = Callable[[argparse.Namespace, Progress], int]


def running_lab(options: argparse.Namespace) -> Lab:
    """The lab that is named, which must be up."""
    requirements.refuse_if(requirements.machine_reason())
    lab = Lab(options.name, state_root(), ownership.remembered_network(state_root(), options.name))
    if not network.exists(lab):
        raise LabError(f"lab {lab.name} is not up: `lab up --name {lab.name}`")
    return lab


class Verbs:
    """Collects the verbs into one parser; each takes --name too."""

    def __init__(self) -> None:
        self.parser = argparse.ArgumentParser(
            prog="lab", description="Two simulated DGX Sparks, or Stations, on this machine."
        )
        self.parser.add_argument(
            "--name", default=DEFAULT_NAME, help="which lab; hosts are NAME-a and NAME-b"
        )
        self._verbs = self.parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add(self, name: str, run: Verb, text: str, host: bool = False) -> argparse.ArgumentParser:
        """Add a verb; `host` for one that is about a host."""
        sub = self._verbs.add_parser(name, help=text, description=text)
        sub.add_argument("--name", default=argparse.SUPPRESS)
        sub.set_defaults(run=run)
        if host:
            sub.add_argument("host", metavar="HOST")
        return sub
