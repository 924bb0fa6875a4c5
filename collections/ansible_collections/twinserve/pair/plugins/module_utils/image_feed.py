"""All that the head's image key runs on a worker: feeds `docker load` with what comes over ssh.

A head that vanished, with its rail cut, closes nothing: sshd would wait for hours, docker load with it, and
what that has unpacked would stay on the disk. So a stream from which nothing comes ends, and a new one ends
those before. Stands alone: a worker has nothing else of ours yet.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_LOAD = ("/usr/bin/docker", "load")
_AT_ONCE = 1 << 20
_IDLE = 600.0  # seconds; the head's Docker may save the whole image before the first byte comes
_TO_END = 60.0  # seconds that an earlier load has to clear away what is its own


def pass_on(source: int, target: int, idle: float) -> None:
    """Pass on what comes, until the end or until nothing came for `idle` seconds."""
    while select.select([source], [], [], idle)[0] and (piece := os.read(source, _AT_ONCE)):
        left = memoryview(piece)
        while left:
            left = left[os.write(target, left) :]


def end_others() -> None:
    """End the streams before this one: what else runs this program, as this user."""
    mine = Path("/proc/self/cmdline").read_bytes()
    for folder in Path("/proc").glob("[0-9]*"):
        # Some end while we look.
        with suppress(FileNotFoundError, ProcessLookupError):
            is_ours = folder.stat().st_uid == os.getuid() and (folder / "cmdline").read_bytes() == mine
            if is_ours and int(folder.name) != os.getpid():
                process = os.pidfd_open(int(folder.name))
                signal.pidfd_send_signal(process, signal.SIGTERM)
                select.select([process], [], [], _TO_END)


def main() -> int:
    """Exit code of docker load; asked for a command, only whether it may be run."""
    if os.environ.get("SSH_ORIGINAL_COMMAND"):
        return subprocess.run(["sudo", "-n", "-l", *_LOAD], check=False).returncode
    end_others()
    # By an exception: docker load sees the end of its input, and is waited for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with subprocess.Popen(["sudo", "-n", *_LOAD], stdin=subprocess.PIPE, bufsize=0) as load:
        assert load.stdin
        # When it takes no more it has said why.
        with suppress(BrokenPipeError), load.stdin as target:
            pass_on(sys.stdin.fileno(), target.fileno(), _IDLE)
        return load.wait()


if __name__ == "__main__":
    sys.exit(main())
