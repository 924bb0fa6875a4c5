"""The certificate that the gateway shows: what it has to say, and what it says."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..shell import run
from .keys import FOLDER

OWN = FOLDER / "tls.pem"
# What nginx reads: a copy of the chosen one, made by its unit at each start and reload.
SHOWN = Path("/run/twinserve-gateway/certificate.pem")
# Renewed by the first run in its last 90 days; Apple's systems take none that is valid for more than 825.
RENEWED_BEFORE_DAYS = 90
_LOCAL = ("localhost", "127.0.0.1")
_NAME = re.compile(r"\b(?:DNS|IP Address):([^\s,]+)")


@dataclass(frozen=True)
class Certificate:
    """Names and addresses it is good for (`DNS:x`, `IP:y`), begin and end in seconds since 1970."""

    names: tuple[str, ...]
    begins: float
    ends: float


def alternative_names(names: Iterable[str]) -> list[str]:
    """Names and addresses, in the words of a certificate, each once; with those of the head itself."""
    return sorted({_alternative(name) for name in [*names, *_LOCAL] if name})


def _alternative(name: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name.lower()}"


def parse(text: str) -> Certificate:
    """What `openssl x509 -noout -dates -ext subjectAltName` prints."""
    names = sorted(_alternative(name) for name in _NAME.findall(text))
    return Certificate(tuple(names), _date("notBefore", text), _date("notAfter", text))


def _date(name: str, text: str) -> float:
    found = re.search(rf"^{name}=(.+?)\s*GMT$", text, re.MULTILINE)
    if not found:
        raise ValueError(f"no {name} in {text!r}")
    return datetime.strptime(found[1], "%b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()


def read(path: Path) -> dict[str, Any] | None:
    """The certificate in a file of this node, None where there is none."""
    if not path.is_file():
        return None
    shown = run(["openssl", "x509", "-in", str(path), "-noout", "-dates", "-ext", "subjectAltName"])
    return asdict(parse(shown))


def is_good(found: dict[str, Any] | None, names: Sequence[str], now: float) -> bool:
    """Whether the own certificate has these names and is not near its end."""
    return (
        found is not None
        and sorted(found["names"]) == sorted(names)
        and found["ends"] - now > RENEWED_BEFORE_DAYS * 86400
    )
