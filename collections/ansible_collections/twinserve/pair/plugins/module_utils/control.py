"""What the head's key may do on a worker: the forced command of its ssh entry.

Only exact verbs pass; everything else (a shell, a copy, another command) ends with exit code 126.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import NoReturn

REFUSED = 126
_AGENT = "/usr/local/sbin/twinserve-rank"
_ALLOWED = re.compile(r"report|start|stop|kill|state(?: loading)?|reach|logs [0-9]{1,5}", re.ASCII)


def agent_argv(command: str) -> list[str] | None:
    """Return what to run for the command that the client asked for; None when it may not."""
    if not _ALLOWED.fullmatch(command):
        return None
    return ["sudo", "-n", _AGENT, *command.split(" ")]


def main(environ: Mapping[str, str]) -> NoReturn:
    """Become the agent, or refuse."""
    argv = agent_argv(environ.get("SSH_ORIGINAL_COMMAND", ""))
    if argv is None:
        print(
            "twinserve-control: only report, start, stop, kill, state, state loading, reach and logs N "
            "are allowed",
            file=sys.stderr,
        )
        sys.exit(REFUSED)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main(os.environ)
