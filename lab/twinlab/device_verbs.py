"""The verbs about cables and RDMA devices: what breaks on real pairs."""

from __future__ import annotations

import argparse

from . import power
from .machine import cables, quirks
from .progress import Progress
from .verbs import Verbs, running_lab


def _cut_rail(options: argparse.Namespace, progress: Progress) -> int:
    cables.set_cut(running_lab(options), options.rail, cut=True)
    return 0


def _mend_rail(options: argparse.Namespace, progress: Progress) -> int:
    cables.set_cut(running_lab(options), options.rail, cut=False)
    return 0


def _flaky(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    rail = cables.check_rail(lab, options.rail)
    quirks.change(lab, lambda now: now.with_flaky(rail, not options.clear))
    return 0


def _plug(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    cables.plug(lab, lab.host(options.host), options.socket)
    return 0


def _gids(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    device = quirks.device(lab.host(options.host), options.hca)
    quirks.change(lab, lambda now: now.with_gids(device, options.shift, options.v1_only))
    return 0


def _lose(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    device = quirks.device(lab.host(options.host), options.hca)
    quirks.change(lab, lambda now: now.with_lost(device, not options.clear))
    return 0


def _rdma(options: argparse.Namespace, progress: Progress) -> int:
    power.set_rdma(running_lab(options).host(options.host), options.state == "on")
    return 0


def _bandwidth(options: argparse.Namespace, progress: Progress) -> int:
    power.set_bandwidth(running_lab(options).host(options.host), options.gbits)
    return 0


def add(verbs: Verbs) -> None:
    """Add them to the command line."""
    rails = {"cut-rail": (_cut_rail, "pull the cable of a rail"), "mend-rail": (_mend_rail, "put it back")}
    for name, (run, text) in rails.items():
        verbs.add(name, run, text).add_argument("rail", type=int, metavar="N")
    flaky = verbs.add("flaky", _flaky, "make the cable of a rail a bad one: error counters rise")
    flaky.add_argument("rail", type=int, metavar="N")
    flaky.add_argument("--clear", action="store_true", help="a good cable again; the counts stay")
    plug = verbs.add("plug", _plug, "put a host's end of the cable into a socket", host=True)
    plug.add_argument("socket", type=int, metavar="SOCKET", help="0, or 1 on a Spark")
    _add_device_verbs(verbs)


def _add_device_verbs(verbs: Verbs) -> None:
    gids = verbs.add("gids", _gids, "disturb the GID table of a device; alone: as it was", host=True)
    gids.add_argument("hca", metavar="HCA")
    gids.add_argument("--shift", type=int, default=0, metavar="N", help="IPv4 entries lie N slots higher")
    gids.add_argument("--v1-only", action="store_true", help="IPv4 entries have no RoCE v2 twin")
    gids.add_argument("--clear", action="store_true", help="the table as the kernel fills it")
    lose = verbs.add("lose", _lose, "take an RDMA device away, and leave its network device", host=True)
    lose.add_argument("hca", metavar="HCA")
    lose.add_argument("--clear", action="store_true", help="it is back, as after a power cycle")
    rdma = verbs.add("rdma", _rdma, "whether the host has /dev/infiniband", host=True)
    rdma.add_argument("state", choices=("on", "off"))
    bandwidth = verbs.add(
        "bandwidth", _bandwidth, "what ib_write_bw shows of a rail, sent by the host", host=True
    )
    rate = bandwidth.add_mutually_exclusive_group(required=True)
    rate.add_argument("gbits", type=float, nargs="?", metavar="GBITS")
    rate.add_argument("--clear", action="store_true", help="what such a machine does")
