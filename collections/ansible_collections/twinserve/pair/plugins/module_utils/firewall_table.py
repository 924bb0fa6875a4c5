"""The firewall's table on this node: load it under a way back, keep it, take it away.

What a boot loads is written only once the rules are kept: a node that is switched off before comes back with
those that it had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import atomic_file, other_firewalls, way_back
from .confirming import LIMIT, ApplyError, Outcome
from .firewall_loaded import is_enabled, read_table
from .firewall_rules import FILE, TABLE, UNIT, replacing, signature
from .shell import CommandError, run

NAME = "firewall"
_SERVICE = Path(UNIT).name
_DELETE = f"table {TABLE}; delete table {TABLE}"


def present(rules: str, unit: str, others: Mapping[str, Sequence[Any]], check: bool) -> Outcome:
    """Load `rules` and leave the way back armed, or write what only the next boot needs.

    Raises ApplyError or CommandError, with the table as it was, when it cannot be.
    """
    listing, file = read_table(), Path(FILE)
    is_new = signature(listing) != signature(rules)
    is_unwritten = not _is_kept(rules, unit)
    before = listing if is_new else rules
    outcome = Outcome(
        changed=is_new or is_unwritten or any(others.values()),
        before=before
        + other_firewalls.words(others["drop"])
        + ("" if is_new or not is_unwritten else f"{file}: other\n"),
        after=rules + other_firewalls.words(others["add"]),
        armed=is_new and not check,
    )
    if check:
        return outcome
    other_firewalls.change(others["add"], others["drop"])
    if is_new:
        _load(rules, unit, listing)
    elif is_unwritten:
        keep({"rules": rules, "unit": unit})
    return outcome


def _load(rules: str, unit: str, listing: str) -> None:
    place = way_back.make_room(NAME)
    (place / "new.nft").write_text(rules)
    (place / "before.nft").write_text(
        replacing(listing) if listing else f"table {TABLE}\ndelete table {TABLE}\n"
    )
    run(["nft", "--check", "--file", str(place / "new.nft")])
    way_back.arm(NAME, LIMIT, [["nft", "--file", str(place / "before.nft")]], {"rules": rules, "unit": unit})
    try:
        run(["nft", "--file", str(place / "new.nft")])
    except CommandError as error:
        way_back.undo_now(NAME)
        raise ApplyError(f"{error}; the rules are as before") from error


def keep(about: Mapping[str, Any]) -> None:
    """Let each boot load the rules. Raises CommandError or OSError."""
    Path(FILE).parent.mkdir(mode=0o755, exist_ok=True)
    for path, text in ((FILE, about["rules"]), (UNIT, about["unit"])):
        atomic_file.replace(Path(path), text.encode(), 0o644)
    # By its files alone: a reload of systemd would take the GPU from a running rank.
    run(["systemctl", "--quiet", "--root=/", "enable", _SERVICE])
    run(["systemctl", "start", _SERVICE])


def _is_kept(rules: str, unit: str) -> bool:
    texts = [(Path(FILE), rules), (Path(UNIT), unit)]
    return is_enabled() and all(path.is_file() and path.read_text() == text for path, text in texts)


def absent(check: bool) -> Outcome:
    """Take away the table, what loads it, and what was added to other firewalls."""
    listing, paths = read_table(), [Path(path) for path in (FILE, UNIT) if Path(path).is_file()]
    seen = other_firewalls.read()
    drop = other_firewalls.steps(seen, [], [])["drop"]
    before = listing + "".join(f"{path}\n" for path in paths) + other_firewalls.words(drop)
    outcome = Outcome(changed=bool(before), before=before, after="")
    if check or not before:
        return outcome
    other_firewalls.change([], drop)
    if listing:
        run(["nft", _DELETE])
    if Path(UNIT) in paths:
        run(["systemctl", "--quiet", "--root=/", "disable", _SERVICE])
        run(["systemctl", "stop", _SERVICE])
    for path in paths:
        path.unlink()
    return outcome
