"""Prometheus's text format, for files that the node exporter reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .atomic_file import replace

# Files are written only while monitoring is on: its unit makes the folder.
FOLDER = Path("/run/twinserve/metrics")
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True)
class Metric:
    """One name with its sentence and its values, each for some labels. A value of None is left out."""

    name: str
    says: str
    values: Iterable[tuple[Mapping[str, object], float | None]]
    kind: str = field(default="gauge", kw_only=True)

    def lines(self) -> list[str]:
        """The metric as text; nothing when it has no value."""
        known = [(labels, value) for labels, value in self.values if value is not None]
        head = [f"# HELP {self.name} {self.says}", f"# TYPE {self.name} {self.kind}"]
        return [
            *(head if known else []),
            *(f"{self.name}{_labels(labels)} {float(value)!r}" for labels, value in known),
        ]


def single(name: str, says: str, value: float | None) -> Metric:
    """A metric with one value."""
    return Metric(name, says, [({}, value)])


def text(metrics: Iterable[Metric]) -> str:
    """The content of a file."""
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())


def write(name: str, metrics: Iterable[Metric], folder: Path = FOLDER) -> None:
    """Replace `NAME.prom` in one step; anyone may read it."""
    replace(folder / f"{name}.prom", text(metrics).encode(), 0o644)


def _labels(labels: Mapping[str, object]) -> str:
    inside = ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""
