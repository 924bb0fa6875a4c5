"""What the settings and the nodes say before anything is planned for the link of a pair. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .rails import rank_names
from .services import node_runs


class FabricError(ValueError):
    """The link cannot be planned; the text says what is wrong on which host and what to do."""


class Unfit(FabricError):
    """A rail that cannot work as it is, and why; the pair may do without it, when it is not the main one."""


@dataclass(frozen=True)
class Wish:
    """The settings that concern the link.

    `manage` is `auto`, True or False. `netdevs`, `peers` and `hcas` are by rank: the main rail's own port,
    the peer's address or name on it, the selector of RDMA devices; None leaves it open.
    """

    rails: str = "auto"
    manage: bool | str = "auto"
    netdevs: tuple[str | None, ...] = ()
    peers: tuple[str | None, ...] = ()
    hcas: tuple[str | None, ...] = ()
    mtu: int = 9000
    subnets: tuple[str, ...] = ("192.168.177.0/24", "192.168.178.0/24")

    @property
    def only_checks(self) -> bool:
        """Whether nothing may be changed."""
        return self.manage is False

    @property
    def mends(self) -> bool:
        """Whether what others configured may be mended too."""
        return self.manage is True

    @property
    def limit(self) -> int:
        """How many rails are wanted at most."""
        return 1 if self.rails == "1" else 2

    @property
    def networks(self) -> list[ipaddress.IPv4Network]:
        """The subnets, parsed. Raises FabricError for what is no network of at least two hosts."""
        try:
            networks = [ipaddress.IPv4Network(subnet) for subnet in self.subnets]
        except ValueError as error:
            raise FabricError(f"fabric_subnets: {error}") from error
        for network in networks:
            if network.prefixlen > 30:
                raise FabricError(f"fabric_subnets: {network} has no room for two hosts")
        return networks

    @property
    def hint(self) -> str:
        """What to do about a rail that cannot work as it is."""
        if self.mends:
            return "mend it there"
        own = "set fabric_manage: true to let Twinserve mend it"
        return f"fabric_manage: false only checks: mend it there, or {own}" if self.only_checks else own


@dataclass(frozen=True)
class Pair:
    """The nodes that are planned for, by rank: their probes, names and management addresses (or names)."""

    nodes: Sequence[Mapping[str, Any]]
    names: Sequence[str]
    wish: Wish
    management: Sequence[str] = ()

    @property
    def ranks(self) -> str:
        """All ranks in words: `head and worker`."""
        return rank_names(len(self.names))

    @property
    def serving(self) -> bool:
        """Whether a rank runs on any of the nodes: its rails carry packets now, and nothing is written."""
        return any(node_runs(node, "twinserve-rank.service") for node in self.nodes)

    def of(self, rank: int, attribute: Sequence[str | None]) -> str | None:
        """This rank's entry of a setting that may be empty for all."""
        return attribute[rank] if rank < len(attribute) else None

    def addresses_of(self, name: str) -> list[str]:
        """An address as it is; of a name what the head takes it for, which may be nothing."""
        try:
            return [str(ipaddress.IPv4Address(name))]
        except ValueError:
            return list((self.nodes[0].get("resolved") or {}).get(name) or [])
