"""Programs that a copy runs side by side: names in, lines out, and an end for all of them at once."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

from .said import Result, beside_progress

_TAIL = 25
Told = Callable[[str], None]


class Programs:
    """Runs them in process groups of their own, so that ending rsync ends its ssh too."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._ended = False

    def run(self, argv: Sequence[str], names: Iterable[str], told: Told) -> Result:
        """Run to the end, each line of its output to `told`.

        `names` go to its standard input all at once, as soon as the last is known.
        """
        tail: deque[str] = deque(maxlen=_TAIL)
        try:
            program = self._start(argv)
        except FileNotFoundError:
            return Result(127, (f"{argv[0]} is not installed on the head",))
        assert program.stdin and program.stdout
        try:
            feeder = threading.Thread(target=_feed, args=(program.stdin, names), daemon=True)
            feeder.start()
            for line in _lines(program.stdout):
                if text := beside_progress(line).strip():
                    tail.append(text)
                told(line)
            code = program.wait()
            feeder.join()
        finally:
            with self._lock:
                self._running.discard(program)
        return Result(code, tuple(tail))

    def end(self) -> None:
        """End all that runs; what is started later ends at once."""
        with self._lock:
            self._ended = True
            for program in self._running:
                _terminate(program)

    def _start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        with self._lock:
            program = subprocess.Popen(
                list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"}, start_new_session=True,
            )  # fmt: skip
            self._running.add(program)
            if self._ended:
                _terminate(program)
            return program


def _terminate(program: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended by itself a moment ago
        os.killpg(program.pid, signal.SIGTERM)


def _feed(pipe: IO[bytes], names: Iterable[str]) -> None:
    # A program that ended before it had read them tells so by its exit code.
    with contextlib.suppress(BrokenPipeError), pipe:
        pipe.write("".join(f"{name}\0" for name in names).encode("utf-8", "surrogateescape"))


def _lines(pipe: IO[bytes]) -> Iterator[str]:
    """Lines, and what a program writes over again in one line, as soon as they are there."""
    rest = b""
    with pipe:
        while chunk := os.read(pipe.fileno(), 65536):
            *whole, rest = re.split(rb"[\r\n]", rest + chunk)
            yield from (one.decode("utf-8", "replace") for one in whole if one.strip())
    if rest.strip():
        yield rest.decode("utf-8", "replace")
