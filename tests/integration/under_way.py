"""A play that is under way, so that a test can break what it works on."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab_pair import ROOT, Lab, Play, parse_recap


@dataclass(frozen=True)
class Running:
    """ansible-playbook, started as a user would."""

    process: subprocess.Popen[bytes]
    output: Path

    def said(self, text: str) -> bool:
        """Whether it has said this by now, with whatever breaks of lines."""
        return text in one_line(self.output.read_text())

    def kill(self) -> None:
        """The controller dies, with all that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> Play:
        """What came of it; the bound only ends a test that would hang."""
        code = self.process.wait(timeout=900)
        text = self.output.read_text()
        return Play(text, code, parse_recap(text))


@contextmanager
def running(lab: Lab, *words: str) -> Iterator[Running]:
    """The play, without a terminal; it is killed when the test leaves it alone."""
    argv = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(lab.inventory), *words]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1"}
    with tempfile.NamedTemporaryFile() as output:
        play = Running(
            subprocess.Popen(
                argv,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ),
            Path(output.name),
        )
        try:
            yield play
        finally:
            play.kill()


def wait_for(what: Callable[[], object], seconds: float = 300) -> None:
    """Until it is so; the bound only ends a test that would hang."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(1)


def one_line(output: str) -> str:
    """The output as one line: texts are broken where the line is full."""
    return " ".join(output.split())
