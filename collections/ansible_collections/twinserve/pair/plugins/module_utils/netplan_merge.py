"""What netplan would make of all files with ours among them, tried in a folder of its own first.

`netplan generate` takes all files at once. So a typing error in somebody else's file, or an edit that he has
not applied yet, would fail or go live with ours.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import netplan_file
from .netdevs import read_links
from .networkd_match import sections, winner
from .shell import CommandError, run

LIVE = Path("/run")
# As systemd-networkd reads them: the first folder that has a file of that name wins.
NETWORKD = (Path("/etc/systemd/network"), Path("/run/systemd/network"), Path("/usr/lib/systemd/network"))
_MADE = ("systemd/network", "NetworkManager/system-connections")


class MergeError(RuntimeError):
    """The merged configuration may not go live; the text says whose fault it is and what to do."""


def check(content: str | None, own: Collection[str], wanted: Sequence[Mapping[str, Any]]) -> None:
    """Refuse `content` as our file when the result would be wrong, or would be more than what we change.

    `own` are the ports that may change; `wanted` says what each shall have. Raises MergeError.
    """
    others = {path: text for path, text in netplan_file.sources().items() if path != netplan_file.FILE}
    now = live()
    try:
        before = generated(others)
    except CommandError as error:
        raise MergeError(_refusal(error, "", ": mend that file first, no address was changed")) from error
    links = read_links()
    _refuse_pending(before, now, own, others)
    _refuse_unlike(before, links, own, others)
    if content is None:
        return
    try:
        after = generated({**others, netplan_file.FILE: content})
    except CommandError as error:
        raise MergeError(_refusal(error, "netplan refuses the rails' addresses: ")) from error
    for port in wanted:
        _refuse_losing(port, after, str((links.get(port["netdev"]) or {}).get("mac") or ""), others)


def is_installed() -> bool:
    """Whether there is a netplan to ask."""
    return shutil.which("netplan") is not None


def generated(files: Mapping[Path, str]) -> dict[str, str]:
    """What netplan makes of `files`: content by path below /run. Raises CommandError when it refuses them."""
    with tempfile.TemporaryDirectory(prefix="twinserve-netplan-") as folder:
        for path, text in files.items():
            copy = Path(folder, path.relative_to("/"))
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.touch(mode=0o600)
            copy.write_text(text)
        try:
            run([*netplan_file.generate_argv(), "--root-dir", folder])
        except CommandError as error:
            raise CommandError(str(error), error.said.replace(folder, "")) from error
        return live(Path(folder, "run"))


def live(root: Path | None = None) -> dict[str, str]:
    """What netplan made of its files below `root`, by path."""
    root = root or LIVE
    return {
        f"{part}/{path.name}": path.read_text()
        for part in _MADE
        for path in sorted(Path(root, part).glob("*netplan-*"))
        if path.is_file()
    }


def _refusal(error: CommandError, start: str, end: str = "") -> str:
    """Netplan's own words: file, line and what is wrong with it, without the excerpt that follows.

    Where it names no file, netplan itself failed: then nobody is told to mend one.
    """
    lines = [line.strip() for line in error.said.splitlines() if ".yaml" in line]
    if lines:
        return f"{start}{lines[-1].rstrip(': ')}{end}"
    return f"{error}; the files of netplan could not be tried, no address was changed"


def _refuse_pending(
    before: Mapping[str, str], now: Mapping[str, str], own: Collection[str], others: Mapping[Path, str]
) -> None:
    """Whatever differs would change with our file, at ports that are no business of ours."""
    for name in sorted({*before, *now}):
        port = _port_of(name)
        if port in own or before.get(name) == now.get(name):
            continue
        if path := _last_naming(port, others):
            raise MergeError(
                f"{path} has edits of {port} that were never applied and would go live with the rails: apply "
                "them (sudo netplan apply) or take them back, then run this again; no address was changed"
            )
        raise MergeError(
            f"{port} still has what a netplan file gave it that is no longer there: apply that "
            "(sudo netplan apply) or put the file back, then run this again; no address was changed"
        )


def _refuse_unlike(
    before: Mapping[str, str],
    links: Mapping[str, Mapping[str, Any]],
    own: Collection[str],
    others: Mapping[Path, str],
) -> None:
    """The same, seen at the ports: any reload of systemd (a package's, say) brings such edits to /run."""
    for name, text in before.items():
        port = _port_of(name)
        link = links.get(port) or {}
        if port in own or not name.endswith(".network") or not link.get("carrier"):
            continue
        says = sections(text)
        lacks = [one for one in says.get("Network", {}).get("Address", []) if not _has(link, one)]
        lacks += [
            f"MTU {one}" for one in says.get("Link", {}).get("MTUBytes", [])[-1:] if one != str(link["mtu"])
        ]
        if lacks:
            path = _last_naming(port, others) or name
            raise MergeError(
                f"{path} gives {port} {', '.join(lacks)}, which was never applied and would go live with "
                "the rails: apply it (sudo netplan apply) or take it back, then run this again; "
                "no address was changed"
            )


def _has(link: Mapping[str, Any], address: str) -> bool:
    """Whether the port has that IPv4 address; those of IPv6 are not looked at."""
    return ":" in address or address in link["addresses"]


def _refuse_losing(
    port: Mapping[str, Any], after: Mapping[str, str], mac: str, others: Mapping[Path, str]
) -> None:
    """Another file may win over ours: then the port would not get what the plan says."""
    netdev, address, mtu = port["netdev"], port["address"], str(port["mtu"])
    ours = f"10-netplan-{netdev}.network"
    files = _networkd_files(after)
    name = winner(files, netdev, mac)
    got = sections(files[name]) if name else {}
    has_address = address in got.get("Network", {}).get("Address", [])
    has_mtu = got.get("Link", {}).get("MTUBytes", [])[-1:] == [mtu]
    if name == ours and has_address and has_mtu:
        return
    lacks = f"MTU {mtu}" if name == ours and has_address else address
    by = _last_naming(_port_of(name or netdev), others) or _found_in(name) or "another file"
    raise MergeError(
        f"{netdev} would not get {lacks}: {by} names the port too and wins; take the port out of that file, "
        "or give it its address there and set fabric_manage: auto; no address was changed"
    )


def _networkd_files(after: Mapping[str, str]) -> dict[str, str]:
    """Content by file name as networkd would see it with `after` live; what netplan made before is gone."""
    found: dict[str, str] = {}
    for folder in reversed(NETWORKD):
        for path in sorted(folder.glob("*.network")):
            if not (folder == NETWORKD[1] and path.name.startswith("10-netplan-")):
                found[path.name] = path.read_text()
    made = {Path(name).name: text for name, text in after.items() if name.endswith(".network")}
    return {**made, **found}


def _found_in(name: str | None) -> str | None:
    paths = (folder / (name or "") for folder in NETWORKD)
    return next((str(path) for path in paths if path.is_file()), None)


def _port_of(name: str) -> str:
    """The id in the name of a file that netplan made: 10-netplan-ID.network, netplan-ID.nmconnection."""
    stem = re.sub(r"\.(network|link|netdev|nmconnection)$", "", Path(name).name)
    return stem.partition("netplan-")[2] or stem


def _last_naming(port: str, files: Mapping[Path, str]) -> Path | None:
    """The last netplan file that has an entry of that name; a later file wins over an earlier one."""
    entry = re.compile(rf"""^\s*["']?{re.escape(port)}["']?\s*:""", re.MULTILINE)
    naming = [path for path, text in files.items() if entry.search(text)]
    return max(naming, key=lambda path: path.name, default=None)
