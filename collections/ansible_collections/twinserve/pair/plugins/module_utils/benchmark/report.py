"""The report of a sweep: a document for programs, the same as Markdown, and a short form for the terminal."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..redact import MARK, redact
from ..snapshots import models
from .plan import described, is_part
from .speed_bench import ROWS

SCHEMA = 1
_HEADINGS = (
    "concurrency", "tokens/s", "per user", "requests/s", "latency s", "p99", "first token ms", "p99",
    "between tokens ms", "p99", "reply tokens", "requests",
)  # fmt: skip
# What a pair may have less of after another start: what the state says, and the words for it.
_EFFECTIVE = {"window": "window", "pool_tokens": "pool tokens", "rails": "rails"}
_REFERENCE = (
    ("tokens/s", "throughput"),
    ("per user", "throughput_per_user"),
    ("latency s", "latency_s"),
    ("first token ms", "ttft_ms"),
    ("between tokens ms", "itl_ms"),
)


def document(plan: Mapping[str, Any], results: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All that is known: what was measured, how, on what, and what it is set beside."""
    found = sorted(results, key=lambda one: one["concurrency"])
    levels = [dict(one) for one in found if "fault" not in one]
    failed = [dict(one) for one in found if "fault" in one]
    about = plan["about"]
    return {
        "schema": SCHEMA,
        "id": plan["id"],
        "pair": plan["pair"],
        "title": about["title"],
        "subtitle": about["subtitle"],
        "note": about["note"],
        "host": plan["host"],
        "aiperf": plan["aiperf"],
        "dataset": {key: plan["dataset"].get(key) for key in ("name", "sha256", "rows")},
        "load": plan["load"],
        "wanted": [one["concurrency"] for one in plan["levels"]],
        "levels": levels,
        "failed": failed,
        "peak": _peak(levels),
        "remarks": [*_remarks(plan, levels)],
        "configuration": about["configuration"],
        "command": about["command"],
        "environment": about["environment"],
        "reference": about["reference"],
    }


def _peak(levels: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Where the throughput is highest; of equals the fewest at once."""
    if not levels:
        return None
    best = max(levels, key=lambda one: (one["throughput"], -one["concurrency"]))
    return {"concurrency": best["concurrency"], "throughput": best["throughput"]}


def peak_words(report: Mapping[str, Any]) -> str:
    """The peak in a sentence, or that there is none."""
    if not (peak := report["peak"]):
        return "nothing was measured"
    words = f"throughput peaks at concurrency {peak['concurrency']}: {peak['throughput']:.1f} tokens/s"
    last = max(one["concurrency"] for one in report["levels"])
    if len(report["levels"]) > 1 and peak["concurrency"] == last:
        words += ", the highest that was measured: it may lie above"
    return words


def _remarks(plan: Mapping[str, Any], levels: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """What somebody has to know who compares these numbers."""
    yield f"Prompts: {described(plan)}."
    load = plan["load"]
    yield f"Asked from {plan['host']}; temperature {load['temperature']}; tokens as the engine counts them."
    yield f"A reply has at most {load['max_tokens']} tokens, reasoning among them."
    parallel = plan["about"]["parallel"]
    if above := [one["concurrency"] for one in levels if one["concurrency"] > parallel]:
        yield f"The pair decodes {parallel} requests at once: of {_listed(above)} some waited for their turn."
    if cached := [one for one in levels if (one.get("cached_percent") or 0) >= 1]:
        told = _listed(f"{one['cached_percent']:.0f}% at {one['concurrency']}" for one in cached)
        yield f"Prompt tokens that the engine still knew from before: {told}."
    if busy := [one["concurrency"] for one in levels if one.get("busy")]:
        yield f"Requests of others were allowed to run meanwhile at concurrency {_listed(busy)}."
    for one in levels:
        if one.get("others"):
            yield f"{one['others']} requests of others ran during concurrency {one['concurrency']}."
        elif one.get("others") is None and not one.get("busy"):
            yield f"Whether requests of others ran during concurrency {one['concurrency']} is not known."
    if len({str(one.get("began"))[:10] for one in levels}) > 1:
        yield "Measured on different days, since what an earlier run has finished is kept."
    for name, words in _EFFECTIVE.items():
        found = [(one["concurrency"], (one.get("effective") or {}).get(name)) for one in levels]
        if len({value for _, value in found}) > 1:
            each = _listed(f"{words} {value} at {count}" for count, value in found)
            yield f"Not comparable with one another, since the pair was restarted between: {each}."


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report for people."""
    lines = [f"# {report['title']}", "", report["subtitle"], ""]
    lines += [f"**{report['note']}**", ""] if report["note"] else []
    lines += [f"{_sentence(peak_words(report))}.", ""]
    if report["levels"]:
        lines += ["![Throughput and latencies over concurrency](report.png)", "", "## Measured", ""]
        lines += [*table(_HEADINGS, map(_row, report["levels"])), ""]
    for one in report["failed"]:
        lines += [f"- Concurrency {one['concurrency']} was not measured: {one['fault']}"]
    seen = {one["concurrency"] for one in (*report["levels"], *report["failed"])}
    if missing := [count for count in report["wanted"] if count not in seen]:
        lines += [f"- Not measured yet: concurrency {_listed(missing)}. Run it again to go on."]
    lines += [*(f"- {one}" for one in report["remarks"]), ""]
    lines += _reference(report["reference"])
    lines += ["## Configuration", "", *table(("what", "as it was measured"), report["configuration"]), ""]
    lines += ["The engine's command line on the head:", "", f"    {shlex.join(report['command'])}", ""]
    lines += [
        "Its environment:",
        "",
        *(f"    {name}={value}" for name, value in report["environment"].items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def screen(report: Mapping[str, Any], folder: str) -> list[str]:
    """For the terminal."""
    lines = [report["title"], f"  {report['subtitle']}"]
    for one in report["levels"]:
        lines.append(
            f"  concurrency {one['concurrency']:>3}  {one['throughput']:>8.1f} tokens/s  "
            f"latency {one['latency_s']['mean']:.2f} s  first token {one['ttft_ms']['mean']:.0f} ms  "
            f"between tokens {_number(one['itl_ms']['mean'], 2)} ms"
        )
    lines += [f"  concurrency {one['concurrency']:>3}  failed: {one['fault']}" for one in report["failed"]]
    return [
        *lines,
        f"  {peak_words(report)}",
        f"  report: {folder}/report.md, report.json, report.png, report.svg",
    ]


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A table of Markdown."""
    cells = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in cells]


def _row(one: Mapping[str, Any]) -> list[str]:
    latency, first, between = one["latency_s"], one["ttft_ms"], one["itl_ms"]
    return [
        str(one["concurrency"]),
        _number(one["throughput"], 1),
        _number(one["throughput_per_user"], 1),
        _number(one["requests_per_second"], 2),
        _number(latency["mean"], 2),
        _number(latency["p99"], 2),
        _number(first["mean"], 1),
        _number(first["p99"], 1),
        _number(between["mean"], 2),
        _number(between["p99"], 2),
        _number(one["reply_tokens"], 0),
        str(one["requests"]),
    ]


def _reference(reference: Mapping[str, Any] | None) -> list[str]:
    if not reference:
        return ["## Reference", "", "There is none for this engine.", ""]
    lines = ["## Reference", "", f"{reference['title']}. {reference['conditions']}", ""]
    for series in reference["series"]:
        known = [(words, key) for words, key in _REFERENCE if any(key in one for one in series["points"])]
        rows = [
            [one["concurrency"], *(_number(one.get(key), None) for _, key in known)]
            for one in series["points"]
        ]
        lines += [f"{_sentence(series['name'])}:", ""]
        lines += [*table(["concurrency", *(words for words, _ in known)], rows), ""]
    return [*lines, *(f"- {one}" for one in reference.get("remarks", ())), ""]


def _number(value: float | None, digits: int | None) -> str:
    if value is None:
        return "-"
    return str(value) if digits is None else f"{value:.{digits}f}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(words: Iterable[Any]) -> str:
    return ", ".join(map(str, words))


def about(
    plan: Mapping[str, Any], release: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], note: str | None
) -> dict[str, Any]:
    """What the report says of the pair: as it was deployed, by what is on its nodes. `nodes` go by rank."""
    config = nodes[0]["pair_config"]
    head = nodes[0].get("rank_plan") or {}
    hardware = _hardware(nodes, release.get("gpu_name"))
    same = config["release"] == release["release"]
    version = f" {release['engine_version']}" if same and release.get("engine_version") else ""
    drivers = sorted({(node.get("gpu") or {}).get("driver") or "" for node in nodes} - {""})
    effective = (nodes[0].get("state") or {}).get("effective") or {}
    rows = [
        ("pair", config["pair"]),
        ("engine", f"{config['engine']}{version}"),
        ("release", config["release"]),
        ("image", head.get("image", "")),
        ("models", ", ".join(f"{one['repo']}@{one['revision'][:8]}" for one in models(head))),
        ("machines", hardware),
        ("driver", ", ".join(drivers)),
        ("kernel", ", ".join(sorted({str(node.get("kernel")) for node in nodes}))),
        ("streams", config["promise"]["parallel"]),
        ("window", effective.get("window")),
        ("pool tokens", effective.get("pool_tokens")),
        ("rails", effective.get("rails")),
        ("configuration", config["digest"]),
        ("AIPerf", plan["aiperf"]),
    ]
    prompts = plan["dataset"]["name"]
    if is_part(plan):
        prompts += f" ({plan['load']['requests']} of {ROWS})"
    return {
        "title": f"{config['served_name']} on {hardware}",
        "subtitle": f"{config['engine']}{version}, release {config['release']}; {prompts}, "
        f"AIPerf {plan['aiperf']}",
        "note": note or "",
        "parallel": int(config["promise"]["parallel"]),
        "effective": {name: effective.get(name) for name in _EFFECTIVE},
        "configuration": [[name, str(value)] for name, value in rows if value not in (None, "")],
        "command": _command(head.get("command") or ()),
        "environment": {
            name: _value(f"{name}=", str(value)) for name, value in (head.get("env") or {}).items()
        },
        "reference": release.get("reference"),
    }


def _command(words: Sequence[str]) -> list[str]:
    """A command line without secrets."""
    pairs = zip(["", *words], words, strict=False)
    return [redact(word) if word.startswith("-") else _value(f"{before} ", word) for before, word in pairs]


def _value(name: str, value: str) -> str:
    """The value without secrets: nothing of it is left behind a name that promises one."""
    told = redact(name + json.dumps(value))
    return MARK if told == f'{name}"{MARK}"' else redact(value)


def _hardware(nodes: Sequence[Mapping[str, Any]], wanted: str | None) -> str:
    """`2 x NVIDIA GB10`: of each node the GPU that the engine is made for, else its first."""
    found = []
    for node in nodes:
        names = (node.get("gpu") or {}).get("names") or ["unknown GPU"]
        found.append(next((name for name in names if wanted and wanted in name), names[0]))
    return " and ".join(f"{found.count(name)} x {name}" for name in dict.fromkeys(found))
