"""A vocabulary without a file: each token is one to three bytes, so text makes the round trip exactly.

Ids 0-255 are single bytes, then all pairs of bytes, then triples of 44 common characters, then four marks.
A token is about three characters of English, and all ids are below the model's vocabulary of 154,880.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

COMMON = b" etaoinshrdlucmfwypvbgkjqxz.,\n0123456789'\"-:"
PAIRS = 256
TRIPLES = PAIRS + 256 * 256
SPECIAL = TRIPLES + len(COMMON) ** 3
MARKS = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>")
MEDIA = SPECIAL + len(MARKS)
VOCABULARY = 154_880

_PLACE = {byte: place for place, byte in enumerate(COMMON)}
_SIDE = len(COMMON)


def encode(text: str) -> list[int]:
    """Token ids of a text."""
    data = text.encode("utf-8", "surrogatepass")
    places = [_PLACE.get(byte, -1) for byte in data]
    ids: list[int] = []
    at, end = 0, len(data)
    while at < end:
        if at + 2 < end and places[at] >= 0 and places[at + 1] >= 0 and places[at + 2] >= 0:
            ids.append(TRIPLES + (places[at] * _SIDE + places[at + 1]) * _SIDE + places[at + 2])
            at += 3
        elif at + 1 < end:
            ids.append(PAIRS + data[at] * 256 + data[at + 1])
            at += 2
        else:
            ids.append(data[at])
            at += 1
    return ids


def decode(ids: Sequence[int]) -> str:
    """The text of token ids; ValueError for an id outside the vocabulary."""
    return b"".join(_bytes_of(token) for token in ids).decode("utf-8", "replace")


def mark(name: str) -> int:
    """The id of a chat mark, one of MARKS."""
    return SPECIAL + MARKS.index(name)


def media_ids(digest: bytes, count: int) -> list[int]:
    """`count` ids that stand for an image or video; equal media give equal ids, to be reused like text."""
    room = VOCABULARY - MEDIA
    return [MEDIA + int.from_bytes(digest[i % 16 : i % 16 + 4], "big") % room for i in range(count)]


def pieces(text: str) -> Iterable[tuple[str, list[int]]]:
    """The text word by word with each word's ids: what a stream sends at once."""
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or (text[end].isspace() and not text[end - 1].isspace()):
            word = text[start:end]
            yield word, encode(word)
            start = end


def _bytes_of(token: int) -> bytes:
    if 0 <= token < PAIRS:
        return bytes([token])
    if PAIRS <= token < TRIPLES:
        return bytes(divmod(token - PAIRS, 256))
    if TRIPLES <= token < SPECIAL:
        rest, third = divmod(token - TRIPLES, _SIDE)
        first, second = divmod(rest, _SIDE)
        return bytes([COMMON[first], COMMON[second], COMMON[third]])
    if SPECIAL <= token < MEDIA:
        return MARKS[token - SPECIAL].encode()
    if MEDIA <= token < VOCABULARY:
        return b""
    raise ValueError(f"token {token} is outside the vocabulary of {VOCABULARY}")
