"""The sweep itself: one concurrency after the other, what is finished kept, a report after each."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..acceptance.client import Api
from ..acceptance.found import Wrong
from ..agent.plan import write_atomically
from . import aiperf, export, others, report

RESULT = "result.json"
_SAID_EVERY = 10.0
_GRACE = 20.0  # seconds between asking AIPerf to end and killing it


class SweepError(RuntimeError):
    """The sweep is over before it is through; the text says why, and what is kept."""


@dataclass
class Sweep:
    """A plan, and the folder in which its measurements are kept. `key` is what the API asks for, `again`
    measures also what is measured.

    For `span` seconds it is watched whether others are there; `pause` lies between two looks at AIPerf,
    which is ended after `patience` seconds without a reply.
    """

    plan: Mapping[str, Any]
    folder: Path
    key: str = ""
    again: bool = False
    span: float = others.SPAN
    pause: float = 2.0
    patience: float = aiperf.TIMEOUT + 600.0
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        """The API as this machine sees it."""
        self.api = Api(self.plan["url"], self.plan["served_name"], key=self.key, seconds=30.0)

    def run(self) -> str:
        """Measure what is not measured yet. Raises SweepError, others.Unquiet."""
        failed: list[str] = []
        for level in self.plan["levels"]:
            if not self.again and (result := kept(self.folder, level, self.plan["while_busy"])):
                say(f"concurrency {level['concurrency']}: kept, {told(result)}")
                continue
            result = self._measure(level)
            write_atomically(self._place(level) / RESULT, result)
            # The numbers go on without a picture; why there is none is told at the end.
            with contextlib.suppress(SweepError):
                self.write_report()
            say(f"concurrency {level['concurrency']}: {told(result)}")
            failed += [f"concurrency {level['concurrency']}: {result['fault']}"] if "fault" in result else []
        self.write_report()
        if failed:
            raise SweepError("; ".join(failed))
        return f"measured: {report.peak_words(self.document())}"

    def document(self) -> dict[str, Any]:
        """The report so far."""
        found = [read(self._place(level)) for level in self.plan["levels"]]
        return report.document(self.plan, [one for one in found if one])

    def write_report(self) -> None:
        """JSON and Markdown, and the picture by the program beside them, which needs AIPerf's environment."""
        document = self.document()
        (self.folder / "report.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        (self.folder / "report.md").write_text(report.markdown(document), encoding="utf-8")
        for kind in ("png", "svg"):
            (self.folder / f"report.{kind}").unlink(missing_ok=True)  # it is of other numbers
        if not document["levels"]:
            return
        python = Path(self.plan["program"]).with_name("python")
        words = [str(python), str(self.folder / "plots.py"), str(self.folder / "report.json")]
        env = {"HOME": str(self.folder), "MPLCONFIGDIR": str(self.folder / "fonts")}
        done = subprocess.run(words, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SweepError(
                f"the plots cannot be drawn: {(done.stderr.strip().splitlines() or ['no output'])[-1]}"
            )

    def _place(self, level: Mapping[str, int]) -> Path:
        return place(self.folder, level["concurrency"])

    def _measure(self, level: Mapping[str, int]) -> dict[str, Any]:
        """One concurrency; the result has a `fault` when it went wrong."""
        interval = float(self.plan["canary_interval"])
        try:
            if not self.plan["while_busy"]:
                others.need_quiet(self._look, interval, self.span)
            before = self._look()
        except Wrong as error:
            raise SweepError(f"{self.plan['url']} does not answer: {error}") from error
        folder = self._place(level)
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        aiperf.lay_down(self.plan, level, folder)
        shutil.chown(folder, self.plan["user"])
        began = time.monotonic()
        result: dict[str, Any] = {"concurrency": level["concurrency"]}
        try:
            result |= _result(folder / "aiperf", self._run(level, folder))
            ours = export.count(_export(folder / "aiperf")) + _warmed(folder / "aiperf")
            after, seconds = self._look(), time.monotonic() - began
            result["others"] = others.strangers(before, after, ours, seconds, interval)
        except (export.NotMeasured, Wrong) as error:
            result["fault"] = str(error)
        return {**result, "busy": self.plan["while_busy"], "effective": self.plan["about"]["effective"]}

    def _look(self) -> others.Seen:
        return others.look(self.api, self.plan["health_metrics"])

    def _run(self, level: Mapping[str, int], folder: Path) -> int:
        """AIPerf's exit code; while it runs, how far it is. Raises NotMeasured when it stands still."""
        words = aiperf.argv(self.plan["program"], self.plan, level, folder, keyed=bool(self.key))
        env = aiperf.environment(folder, self.key)
        said, began = 0.0, time.monotonic()
        written, moved = 0, began
        with (folder / "aiperf.log").open("w", encoding="utf-8") as log:
            child = subprocess.Popen(
                words, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True, **_identity(self.plan["user"]),
            )  # fmt: skip
            try:
                while not _ended(child, self.pause):
                    now = time.monotonic()
                    if (size := _written(folder / "aiperf")) != written:
                        written, moved = size, now
                    if now - moved > self.patience:
                        raise export.NotMeasured(f"no reply came for {self.patience:.0f} s")
                    if now - said >= _SAID_EVERY:
                        said = now
                        say(self._progress(level, folder, now - began))
            finally:
                _end(child)
        return child.returncode

    def _progress(self, level: Mapping[str, int], folder: Path, seconds: float) -> str:
        """How many replies are there, the warm-up's among them."""
        records = folder / "aiperf" / aiperf.RECORDS
        done = records.read_bytes().count(b"\n") if records.is_file() else 0
        return f"concurrency {level['concurrency']}: {done} replies, {seconds:.0f} s"


def place(folder: Path, concurrency: int) -> Path:
    """Where a measurement is kept."""
    return folder / f"concurrency-{concurrency:04d}"


def read(folder: Path) -> dict[str, Any] | None:
    """The result of a measurement that came to its end, well or not."""
    path = folder / RESULT
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def kept(folder: Path, level: Mapping[str, int], while_busy: bool) -> dict[str, Any] | None:
    """What was measured before, and need not be again."""
    result = read(place(folder, level["concurrency"]))
    return result if result and _counts(result, while_busy) else None


def finished(folder: Path, while_busy: bool = False) -> list[int]:
    """The concurrencies that have been measured there, rising."""
    found = (read(path) for path in folder.glob("concurrency-*"))
    return sorted(int(one["concurrency"]) for one in found if one and _counts(one, while_busy))


def _counts(result: Mapping[str, Any], while_busy: bool) -> bool:
    """Whether it is a measurement: requests of others spoil it, unless they may run."""
    spoilt = result.get("busy") or result.get("others") != 0
    return "fault" not in result and (while_busy or not spoilt)


def told(result: Mapping[str, Any]) -> str:
    """A result in a few words."""
    if "fault" in result:
        return f"failed: {result['fault']}"
    return (
        f"{result['throughput']:.1f} tokens/s, first token {result['ttft_ms']['mean']:.0f} ms, "
        f"{result['requests']} requests in {result['seconds']:.0f} s"
    )


def say(text: str) -> None:
    """A line for the job's log, at once."""
    print(text, flush=True)


def _export(folder: Path) -> dict[str, Any]:
    path = folder / aiperf.EXPORT
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _result(folder: Path, code: int) -> dict[str, Any]:
    found = _export(folder)
    if not found:
        log = folder.with_name("aiperf.log")
        raise export.NotMeasured(f"AIPerf ended with {code} and no result: {log} says why")
    result = export.measured(found)
    if code:
        raise export.NotMeasured(f"AIPerf ended with {code}: {folder.with_name('aiperf.log')} says why")
    return result


def _written(folder: Path) -> int:
    """Bytes of what AIPerf notes of each reply, in whatever phase: within seconds, also of a failed one."""
    return sum(path.stat().st_size for path in folder.rglob(aiperf.RECORDS))


def _warmed(folder: Path) -> int:
    """Requests of the warm-up, which has an export of its own."""
    return export.count(_export(folder / "phases/warmup"))


def _ended(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(child: subprocess.Popen[bytes]) -> None:
    """End AIPerf with all its processes; its own end needs none of this."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(_GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _identity(user: str) -> dict[str, Any]:
    """Arguments that make a process that user's, when we are root."""
    if os.getuid() != 0:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(user, entry.pw_gid)}
