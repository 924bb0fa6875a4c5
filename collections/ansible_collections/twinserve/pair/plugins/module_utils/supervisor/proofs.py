"""What each rank must have said before the pair serves, and what else of its words is worth telling: pure.

A pair over another network than was meant comes up and answers; that nothing bad was said is no proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from .config import Config, Proof
from .state import State, with_rank

_LONGEST = 300


def hear(state: State, rank: int, text: str) -> State:
    """Note what a rank's log proves: newer lines may push it out of the next look."""
    view, lines = state.ranks[rank], text.splitlines()
    given = {pattern for _, _, pattern in _demanded(state, rank) if re.search(pattern, text)}
    remarks = remarked(view.remarks, lines, state.config)
    return with_rank(state, replace(view, proofs=view.proofs | given, remarks=remarks))


def missing(state: State) -> str:
    """Say what ranks whose logs were read did not say, and what instead; empty when all is proved."""
    lacking = [
        (proof, rank, proof.says.replace("{rank}", str(rank)).replace("{hca}", hca))
        for rank in sorted(state.answers)
        for proof, hca, pattern in _demanded(state, rank)
        if pattern not in state.ranks[rank].proofs
    ]
    if not lacking:
        return ""
    proof, rank, _ = lacking[0]
    seen = [line.strip() for line in state.answers[rank].splitlines() if proof.seen.search(line)]
    shown = clip(seen[-1]) if seen else "nothing of the kind is in its log"
    return f"{'; '.join(said for _, _, said in lacking)}: {shown}; {proof.cure}"


def remarked(known: Mapping[str, str], lines: Iterable[str], config: Config) -> Mapping[str, str]:
    """Add to what is known the first line of each kind that is worth telling."""
    if not config.remarks:
        return known
    told = dict(known)
    for line in lines:
        for rule in config.remarks:
            if rule.says not in told and rule.pattern.search(line):
                told[rule.says] = clip(line.strip())
    return told


def clip(text: str) -> str:
    """A line that is not too long to be shown."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _demanded(state: State, rank: int) -> Iterator[tuple[Proof, str, str]]:
    """Each proof with a device of the rank's (empty where it names none), and the pattern for it."""
    devices = [end["hca"] for end in state.link.of_rank(rank)]
    for proof in state.config.proofs:
        for hca in devices if "{hca}" in proof.pattern + proof.says else [""]:
            yield proof, hca, proof.pattern.replace("{hca}", re.escape(hca))
