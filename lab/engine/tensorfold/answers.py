"""The simulated model's knowledge: deterministic, and plain enough to see that the right prompt arrived."""

from __future__ import annotations

import re

SUM = re.compile(
    r"(-?\d+(?:\.\d+)?)\s*(\+|-|\*|x|times|plus|minus|/|divided by)\s*(-?\d+(?:\.\d+)?)", re.IGNORECASE
)
CAPITALS = {
    "france": "Paris",
    "germany": "Berlin",
    "italy": "Rome",
    "spain": "Madrid",
    "japan": "Tokyo",
    "norway": "Oslo",
}
FIBONACCI = '''```python
def fibonacci(n: int) -> int:
    """The n-th Fibonacci number, counted from fibonacci(0) = 0."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
```'''
QUOTED = 400
COLLAPSED = "!" * 8


def answer(
    question: str, model: str, images: int, videos: int, take: int = 0, colour: str | None = None
) -> str:
    """The reply to the last user message."""
    text = question.strip()
    needle = re.search(
        r"\b(?:secret|magic|pass) ?(?:word|number|code|key)\w* (?:is|was) [\"'`]?([\w-]+)",
        text,
        re.IGNORECASE,
    )
    if needle and "?" in text:
        return f"It is {needle[1]}."
    lower = text.lower()
    capital = re.search(r"capital (?:city )?of (\w+)", lower)
    if capital and capital[1] in CAPITALS:
        return f"The capital of {capital[1].capitalize()} is {CAPITALS[capital[1]]}."
    if colour and "colour" in lower:
        return f"It is {colour}."
    if "fibonacci" in lower:
        return FIBONACCI
    sums = SUM.search(text)
    if sums and len(text) < 200:
        return _calculate(float(sums[1]), sums[2].lower(), float(sums[3]))
    said = re.search(
        r"\b(?:reply|answer|respond) with(?: exactly| only)?:? [\"'`]?([^\"'`\n]+?)[\"'`]?\s*[.!]?\s*$",
        text,
        re.IGNORECASE,
    )
    if said and len(said[1].split()) <= 4:
        return said[1]
    return _quote(text, model if not take else f"{model}, take {take}", images, videos)


def _calculate(left: float, operator: str, right: float) -> str:
    if operator in ("/", "divided by") and right == 0:
        return "Division by zero is not defined."
    results = {
        "+": left + right,
        "plus": left + right,
        "-": left - right,
        "minus": left - right,
        "/": left / (right or 1.0),
        "divided by": left / (right or 1.0),
    }
    return f"{results.get(operator, left * right):g}"


def _quote(text: str, model: str, images: int, videos: int) -> str:
    shown = text if len(text) <= QUOTED else f"{text[: QUOTED // 2]} ... {text[-QUOTED // 2 :]}"
    seen = "".join(
        f" I also see {count} {kind}{'s' * (count > 1)}."
        for count, kind in ((images, "image"), (videos, "video"))
        if count
    )
    return f'This is {model}. You wrote {len(text.split())} words: "{shown}".{seen}'


def reasoning(question: str, effort: str) -> str:
    """What the model thinks first; more of it with more effort."""
    steps = [
        f"The user wrote {len(question.split())} words.",
        "I look for a question, a sum or an order to repeat something.",
        "I check that no part of the message was lost.",
        "I consider whether a tool or a fixed form is asked for.",
        "I go through the message once more, slowly.",
        "Now I can answer.",
    ]
    count = {"low": 1, "medium": 2, "high": 4, "xhigh": 5, "max": 6}[effort]
    return " ".join(steps[:count])
