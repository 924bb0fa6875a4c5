"""Is this reply the work of a model? Judgement of the tiny completions that prove life."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"<[^<>\s]*>")
_WORD = re.compile(r"\w+", re.UNICODE)
# The server says that it is full: alive, only not for us now.
BUSY = frozenset({429, 503})
# At least 24 characters at the end, of a piece that repeats eight times and more. Only the last ones are
# looked through, since it takes the square of their number.
_TAIL = 200
_STUCK = re.compile(r"(?=.{24})(.{1,12}?)\1{7,}$", re.DOTALL)
# Of these are rulers, tables and large numbers, in which thoughts may end where they are cut.
_RULER = frozenset("-=_*#|: \n0")
# A reply of this many characters, or words, has some variety when a model wrote it.
_LONG, _MANY = 8, 4


@dataclass(frozen=True)
class Reply:
    """An HTTP answer: its status, and the reply's text or the server's error message.

    `thought` is what the model thought before; `cut`: it was not done when its tokens were used up.
    """

    status: int
    text: str
    thought: str = ""
    cut: bool = False


@dataclass(frozen=True)
class Verdict:
    """`ok`: the model works. `busy`: no proof either way. Else `detail` says what is wrong.

    `hopeless`: another start would answer the same.
    """

    ok: bool
    busy: bool = False
    hopeless: bool = False
    detail: str = ""


def judge(reply: Reply) -> Verdict:
    """Judge an answer to the smoke prompt, or to a canary."""
    if reply.status in BUSY:
        return Verdict(ok=False, busy=True, detail=f"busy (HTTP {reply.status})")
    if reply.status in (401, 403):
        return Verdict(ok=False, hopeless=True, detail="the API rejects the configured key")
    if reply.status != 200:
        return Verdict(ok=False, detail=f"HTTP {reply.status}: {reply.text[:200]}")
    shown, why = reply.text, collapsed(reply.text)
    if stuck(reply.thought):
        shown, why = reply.thought, "collapsed output"
    elif reply.cut and _WORD.search(reply.thought) and not reply.text.strip():
        why = None  # it is still thinking, and sensibly
    if why is None:
        return Verdict(ok=True)
    return Verdict(
        ok=False,
        hopeless=True,
        detail=f'rank pair answers "{_shorten(shown)}" ({why}): weights loaded but the model does not '
        "work; verify the model files (model_verify: sha256)",
    )


def collapsed(text: str) -> str | None:
    """Say why a text is no sensible reply; None when it is one.

    Broken weights give nothing, one sign or a few for ever, one word for ever, or the tokenizer's own tags.
    """
    plain = text.strip()
    if not plain:
        return "empty output"
    bare = _TAG.sub("", plain).strip()
    if not bare:
        return "only tags"
    words = [word.lower() for word in _WORD.findall(bare)]
    if not words:
        return "collapsed output"
    if len(bare) >= _LONG and len(set(bare.replace(" ", ""))) <= 2:
        return "collapsed output"
    if len(words) >= _MANY and len(set(words)) <= max(1, len(words) // 4):
        return "collapsed output"
    if _periodic(bare) or stuck(bare):
        return "collapsed output"
    return None


def stuck(text: str) -> bool:
    """Whether a text ends in a short piece that repeats, however it began.

    What long thoughts may do otherwise (few different words, tags) is no sign of anything.
    """
    found = _STUCK.search(text.rstrip()[-_TAIL:])
    return found is not None and not set(found[1]) <= _RULER


def _periodic(text: str) -> bool:
    """Whether a short piece repeats from the beginning to the end, at least four times."""
    return len(text) >= _LONG and re.fullmatch(r"(.{1,12}?)\1{3,}.{0,11}", text, re.DOTALL) is not None


def _shorten(text: str) -> str:
    shown = text.strip()
    return shown if len(shown) <= 40 else f"{shown[:40]}..."
