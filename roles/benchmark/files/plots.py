"""Draws report.png and report.svg beside a report.json: throughput and latencies over concurrency.

Run by the Python of AIPerf's environment, which has matplotlib: `python plots.py report.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402 (the backend first)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.patheffects import withStroke  # noqa: E402
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator  # noqa: E402

INK, FAINT, GRID = "#1f2933", "#7b8794", "#e4e7eb"
MEASURED = "#1b6ca8"
# Of references, which are told apart by their marks too.
OTHERS = (("#d1603d", "s"), ("#8a6d3b", "D"), ("#5f7a61", "^"))
# Title, unit, the report's name, whether it has percentiles.
PANELS = (
    ("Throughput", "tokens/s, all requests", "throughput", False),
    ("Time to first token", "ms", "ttft_ms", True),
    ("Time between tokens", "ms", "itl_ms", True),
    ("Request latency", "s", "latency_s", True),
)
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "report",
}


def draw(report: Mapping[str, Any], folder: Path) -> None:
    """Write both pictures."""
    pyplot.rcParams.update(STYLE)
    figure, panels = pyplot.subplots(2, 2, figsize=(11, 8.2))
    references = (report["reference"] or {}).get("series", [])
    for axes, (title, unit, name, spread) in zip(panels.flat, PANELS, strict=True):
        _measured(axes, report["levels"], name, spread)
        for series, (colour, mark) in zip(references, OTHERS, strict=False):
            _reference(axes, series, name, colour, mark)
        _dress(axes, title, unit, _counts(report["levels"], references, name))
    if report["peak"]:
        _name_peak(panels.flat[0], report)
    figure.suptitle(report["title"], x=0.075, y=0.975, ha="left", fontsize=16, fontweight="bold")
    figure.text(0.075, 0.925, report["subtitle"], ha="left", color=FAINT)
    if report["note"]:
        figure.text(0.075, 0.9, report["note"], ha="left", color=OTHERS[0][0], fontweight="bold")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    more, words = panels.flat[3].get_legend_handles_labels()
    known = dict(zip([*words, *labels], [*more, *handles], strict=True))
    order = [word for word in ("measured, mean", "p50 to p99") if word in known]
    order += [word for word in known if word not in order]
    figure.legend([known[word] for word in order], order, loc="lower center", ncols=4, frameon=False)
    figure.subplots_adjust(left=0.075, right=0.975, top=0.845, bottom=0.115, hspace=0.42, wspace=0.2)
    for kind in ("png", "svg"):
        figure.savefig(folder / f"report.{kind}", dpi=150)


def _measured(axes: Axes, levels: Sequence[Mapping[str, Any]], name: str, spread: bool) -> None:
    found = [(one["concurrency"], one[name]) for one in levels]
    if not spread:
        axes.plot(
            *zip(*found, strict=True), color=MEASURED, marker="o", lw=2.2, label="measured, mean", zorder=3
        )
        return
    known = [(count, value) for count, value in found if value["mean"] is not None]
    if not known:
        return
    counts = [count for count, _ in known]
    low, high = ([value[key] for _, value in known] for key in ("p50", "p99"))
    mean = [value["mean"] for _, value in known]
    axes.plot(counts, mean, color=MEASURED, marker="o", lw=2.2, label="measured, mean", zorder=3)
    if len(known) == 1:
        axes.vlines(counts, low, high, color=MEASURED, alpha=0.25, lw=9, label="p50 to p99")
    else:
        axes.fill_between(counts, low, high, color=MEASURED, alpha=0.15, lw=0, label="p50 to p99")


def _reference(axes: Axes, series: Mapping[str, Any], name: str, colour: str, mark: str) -> None:
    points = [(one["concurrency"], one[name]) for one in series["points"] if one.get(name) is not None]
    if points:
        label = f"reference: {series['name']}"
        axes.plot(
            *zip(*points, strict=True),
            color=colour,
            marker=mark,
            ms=5,
            lw=1.3,
            ls="--",
            label=label,
            zorder=2,
        )


def _counts(
    levels: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]], name: str
) -> list[int]:
    """The concurrencies that have a point in this panel."""
    own = {one["concurrency"] for one in levels}
    others = {
        one["concurrency"] for series in references for one in series["points"] if one.get(name) is not None
    }
    return sorted(own | others)


def _dress(axes: Axes, title: str, unit: str, counts: Sequence[int]) -> None:
    axes.set_title(title, loc="left", fontsize=11.5, fontweight="bold")
    axes.set_xlabel("concurrent requests")
    axes.set_ylabel(unit)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(counts))
    axes.xaxis.set_major_formatter(FixedFormatter([str(count) for count in counts]))
    axes.xaxis.set_minor_locator(NullLocator())
    # A single point stands in the middle, and none on the edge.
    axes.set_xlim(counts[0] / 1.25, counts[-1] * 1.25)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
    axes.grid(color=GRID, lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def _name_peak(axes: Axes, report: Mapping[str, Any]) -> None:
    """Beside its point, and inside the panel."""
    peak, counts = report["peak"], [one["concurrency"] for one in report["levels"]]
    side = "center" if len(counts) == 1 or peak["concurrency"] not in (counts[0], counts[-1]) else "right"
    side = "left" if len(counts) > 1 and peak["concurrency"] == counts[0] else side
    words = f"{peak['throughput']:.0f} tokens/s" + (f" at {peak['concurrency']}" if len(counts) > 1 else "")
    axes.annotate(
        words, (peak["concurrency"], peak["throughput"]), (0, 10), textcoords="offset points",
        ha=side, color=MEASURED, fontweight="bold", zorder=4,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )  # fmt: skip


if __name__ == "__main__":
    source = Path(sys.argv[1])
    draw(json.loads(source.read_text(encoding="utf-8")), source.parent)
