"""The link of a pair: rails with one end a rank, those that are used and those that are not. Plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Endpoint:
    """One end of a rail. `address` is plain (no prefix); `mtu` in bytes.

    Only an end of a rail that is not used may lack its address (empty) or its GID. What `shares_subnet` says:
    see Device.
    """

    rank: int
    netdev: str
    hca: str
    address: str
    gid_index: int | None
    mtu: int
    pci: str
    mac: str = ""
    shares_subnet: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return what a rank is told about its own end."""
        return {name: getattr(self, name) for name in ("netdev", "hca", "address", "gid_index", "mtu")}


Rail = tuple[Endpoint, ...]


@dataclass(frozen=True)
class Unused:
    """A rail that could have been one more, and why it is not."""

    rail: Rail
    reason: str


@dataclass(frozen=True)
class Link:
    """The rails of a pair, main rail first, one end a rank in rank order. With errors it must not be used."""

    rails: tuple[Rail, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    unused: tuple[Unused, ...] = ()

    @property
    def master(self) -> str:
        """The head's address on the main rail: the rendezvous address of all ranks."""
        return self.rails[0][0].address

    def of_rank(self, rank: int) -> list[dict[str, Any]]:
        """Return this rank's ends, main rail first."""
        return [rail[rank].as_dict() for rail in self.rails]

    def summary(self) -> str:
        """Return e.g. `2 rails: rocep1s0f1,roceP2p1s0f1 <-> rocep1s0f0,roceP2p1s0f0`."""
        return summarize([[end.hca for end in rail] for rail in self.rails])


def summarize(rails: Sequence[Sequence[str]]) -> str:
    """Return `1 rail: rocep1s0f1 <-> rocep1s0f0`, from each rail's devices in rank order."""
    sides = [",".join(devices) for devices in zip(*rails, strict=True)]
    return f"{len(rails)} rail{'' if len(rails) == 1 else 's'}: {' <-> '.join(sides)}"


def told_rails(told: Sequence[Mapping[str, Any] | None]) -> tuple[Rail, ...]:
    """Return the rails that ranks were started with, from what each was told (`link.json`), in rank order.

    Nothing when one of them is not known, or when they do not belong together.
    """
    sides = [
        [Endpoint(rank, end["netdev"], end["hca"], end["address"], end["gid_index"], end.get("mtu", 0), "")
         for end in link["rails"]]
        for rank, link in enumerate(told)
        if link
    ]  # fmt: skip
    if len(sides) < len(told) or len({len(side) for side in sides}) != 1:
        return ()
    return tuple(zip(*sides, strict=True))
