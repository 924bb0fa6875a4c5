"""The synthetic set: coding tasks made here, the same ones at the same concurrency on every pair.

But each begins with a word that was never used before: what the engine keeps of a prompt that it has seen
would else make every measurement but the first look good.
"""

from __future__ import annotations

import hashlib
import json
import random

_LANGUAGES = ("Python", "C", "Rust", "Go", "Java", "TypeScript", "SQL", "Bash", "C++", "Kotlin")
_THINGS = (
    "a queue with priorities that several threads share",
    "a parser for arithmetic expressions with brackets and variables",
    "a cache that forgets what was used least recently",
    "a program that merges sorted files that do not fit into memory",
    "a retry with growing pauses around a call that may fail",
    "a small interpreter for a language with variables and loops",
    "a search for the shortest path in a weighted graph",
    "a reader of CSV files with quoted cells and broken lines",
    "a limiter of requests by token bucket",
    "a diff of two texts, line by line",
    "a scheduler of jobs that depend on one another",
    "a compressor by Huffman's codes",
)
_WISHES = (
    "Explain each decision before the code.",
    "Show the tests first, then the code that passes them.",
    "Say what it costs in time and memory, and why.",
    "Name the cases in which it goes wrong, and handle each.",
    "Write it once plainly and once as fast as you can, and compare both.",
)


def tasks(concurrency: int, count: int, mark: str) -> list[str]:
    """So many different prompts, of some 80 tokens each; `mark` tells this measurement from all others."""
    drawn = random.Random(concurrency)
    return [
        _task(drawn, hashlib.sha256(f"{mark}/{number}".encode()).hexdigest()[:12]) for number in range(count)
    ]


def lines(concurrency: int, count: int, mark: str) -> str:
    """The same as AIPerf's file of single turns."""
    return "".join(json.dumps({"text": text}) + "\n" for text in tasks(concurrency, count, mark))


def _task(drawn: random.Random, mark: str) -> str:
    language, thing, wish = drawn.choice(_LANGUAGES), drawn.choice(_THINGS), drawn.choice(_WISHES)
    limit = drawn.randrange(100, 1000)
    return (
        f"{mark}: write {thing} in {language}, for inputs of up to {limit} thousand entries, without "
        f"libraries from elsewhere. {wish} Then go through the whole code once more, line by line."
    )
