"""`python3 -m twinserve.agent VERB`: one verb, its input on stdin, its answer as JSON on stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ..shell import CommandError
from . import verbs
from .errors import AgentError

USAGE = "usage: twinserve-rank report|start|stop|kill|state [loading]|reach|logs N"


def answer(argv: Sequence[str], stdin: str) -> Any:
    """Do one verb and return its answer: text as it is, None for none, anything else for JSON.

    Raises AgentError for an unknown verb and for whatever the verb could not do.
    """
    match list(argv):
        case ["report"]:
            return verbs.report()
        case ["start"]:
            return verbs.start(stdin)
        case ["stop"]:
            return verbs.stop()
        case ["kill"]:
            return verbs.kill()
        case ["state"]:
            return verbs.state()
        case ["state", "loading"]:
            return verbs.state(loading=True)
        case ["logs", count] if count.isdecimal():
            return verbs.logs(int(count))
        case ["reach"]:
            return verbs.reach_all(json.loads(stdin))
        case ["run"]:
            return verbs.run()
        case ["unit-stop"]:
            return verbs.unit_stop()
        case ["unit-guard"]:
            return verbs.unit_guard()
        case ["unit-clean"]:
            return verbs.unit_clean()
    raise AgentError(USAGE)


def main(argv: Sequence[str]) -> int:
    """Answer on stdout; an error is `{"error": ...}` and exit code 1."""
    try:
        if os.geteuid() != 0:
            raise AgentError("twinserve-rank needs root: sudo twinserve-rank VERB")
        reply = answer(argv, sys.stdin.read() if argv and argv[0] in ("start", "reach") else "")
    except (AgentError, CommandError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        print(json.dumps({"error": text}))
        return 1
    if isinstance(reply, str):
        sys.stdout.write(reply)
    elif reply is not None:
        print(json.dumps(reply))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
