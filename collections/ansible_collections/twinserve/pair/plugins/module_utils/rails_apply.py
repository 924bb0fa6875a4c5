"""Give the rails of this node their addresses, guarded: what costs the node undoes itself.

The change is applied by whoever owns each port, checked here at once, and stays armed to be undone until
somebody confirms it over a new connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import fabric_record, guard, netplan_file, netplan_merge, nm_profiles, port_state
from .confirming import ApplyError, Outcome
from .guard import Change
from .netdevs import read_links
from .shell import run

# Seconds until a port has what it shall have.
_PORT = 10


@dataclass(frozen=True)
class Wish:
    """What the plan wants of this node: our netplan file, profiles of ours, and what each port shall have."""

    netplan: str | None = None
    profiles: Sequence[Mapping[str, Any]] = ()
    ports: Sequence[Mapping[str, Any]] = ()

    @property
    def netdevs(self) -> set[str]:
        """Ports that may change: those of our profiles, and of our file as it shall be and as it is."""
        files = netplan_file.ports_of(self.netplan) | netplan_file.ports_of(netplan_file.read())
        return files | {str(one["netdev"]) for one in self.profiles}

    @property
    def own_ports(self) -> list[Mapping[str, Any]]:
        """What those ports shall have; the others of the plan are kept as somebody else set them up."""
        return [port for port in self.ports if port["netdev"] in self.netdevs]


def present(wish: Wish, check: bool) -> Outcome:
    """Compare, then predict or do. Raises ApplyError, with everything as it was, when it cannot be."""
    file, profiles = netplan_file.read(), _profiles(wish)
    is_file_new = wish.netplan is not None and (file != wish.netplan or not netplan_file.is_private())
    new = [one for one in wish.profiles if profiles[one["netdev"]] != nm_profiles.wanted(one)]
    unset = [port for port in wish.own_ports if not is_set(port)]
    outcome = Outcome(
        changed=bool(is_file_new or new or unset),
        before=_text(file if wish.netplan is not None else None, profiles, unset, "has"),
        after=_text(wish.netplan, {p["netdev"]: nm_profiles.wanted(p) for p in wish.profiles}, unset, "gets"),
        armed=not check,
    )
    if not outcome.changed:
        return Outcome(before=outcome.before, after=outcome.before)
    if wish.netplan is not None and not (check and not netplan_merge.is_installed()):
        wanted = [port for port in wish.own_ports if port["netdev"] in netplan_file.ports_of(wish.netplan)]
        netplan_merge.check(wish.netplan, wish.netdevs, wanted)
    if not check:
        fabric_record.ensure(wish.netdevs)
        guard.guarded(_change(wish, is_file_new))
    return outcome


def is_set(port: Mapping[str, Any]) -> bool:
    """Whether the port has the addresses and the MTU that it shall have."""
    link = read_links().get(port["netdev"], {})
    has_all = {port["address"], *port.get("more", ())} <= set(link.get("addresses", []))
    return has_all and link.get("mtu") == port["mtu"]


def _profiles(wish: Wish) -> dict[str, dict[str, str] | None]:
    if wish.profiles and not nm_profiles.is_running():
        raise ApplyError("NetworkManager has the rails and does not run: start it, then run this again")
    return {one["netdev"]: nm_profiles.read(one["netdev"]) for one in wish.profiles}


def _change(wish: Wish, is_file_new: bool) -> Change:
    state = port_state.read(wish.netdevs)
    will_be = {
        "netplan": wish.netplan if wish.netplan is not None else state["netplan"],
        "profiles": state["profiles"] | {p["netdev"]: nm_profiles.wanted(p) for p in wish.profiles},
    }
    commands = _commands(wish, is_file_new, state["profiles"])
    made = ["fabric file"] * (wish.netplan is not None) + ["fabric profiles"] * bool(wish.profiles)
    return Change(
        netdevs=wish.netdevs,
        before=state,
        after=will_be,
        apply=lambda: _apply(wish, commands),
        check=_checks(wish, state),
        undone=f"{' and '.join(made)} rolled back",
        about={"kind": "present", "ports": [dict(port) for port in wish.own_ports]},
    )


def _apply(wish: Wish, commands: Sequence[Sequence[str]]) -> None:
    left = guard.budget()
    if wish.netplan is not None:
        netplan_file.write(wish.netplan)
    for command in commands:
        run(command, timeout=left())


def _commands(wish: Wish, is_file_new: bool, profiles: Mapping[str, Any]) -> list[list[str]]:
    """What makes the file live and the profiles hold, given ours that are there."""
    found: list[list[str]] = []
    if wish.netplan is not None:
        # Not `netplan apply`: that has every port of netplan's dropped and set anew, the management port too.
        found += [netplan_file.generate_argv(), ["networkctl", "reload"]]
        if not is_file_new:
            # Nothing new to read: the port was changed by hand.
            found.append(["networkctl", "reconfigure", *sorted(netplan_file.ports_of(wish.netplan))])
    for profile in wish.profiles:
        found += nm_profiles.apply_argvs(profile, new=profiles.get(profile["netdev"]) is None)
    return found


def _checks(wish: Wish, state: Mapping[str, Any]) -> Callable[[], None]:
    def check() -> None:
        for port in wish.own_ports:
            what = f"{port['netdev']} did not get {port['address']} with MTU {port['mtu']} within {_PORT} s"
            guard.wait(lambda port=port: is_set(port), _PORT, what)  # type: ignore[misc]
        for profile in wish.profiles:
            _refuse_rest(profile, state["ports"].get(profile["netdev"]) or {})

    return check


def _refuse_rest(profile: Mapping[str, Any], was: Mapping[str, Any]) -> None:
    """Another address on the port would be taken for the rail's by whoever looks for one."""
    given = [profile["address"], *profile.get("more", ())]
    rest = [a for a in read_links()[profile["netdev"]]["addresses"] if a not in given]
    if rest:
        by = f'NetworkManager profile "{was["profile"]}"' if was.get("profile") else "outside NetworkManager"
        raise ApplyError(f"{profile['netdev']} still has {', '.join(rest)} from {by}")


def _text(
    file: str | None,
    profiles: Mapping[str, Mapping[str, str] | None],
    unset: Sequence[Mapping[str, Any]],
    verb: str,
) -> str:
    """For the diff: our file, our profiles, and ports that have not what they shall have."""
    links = read_links() if verb == "has" else {}
    lines = [nm_profiles.text(netdev, fields) for netdev, fields in profiles.items()]
    for port in unset:
        link = links.get(port["netdev"]) or {"addresses": [port["address"]], "mtu": port["mtu"]}
        lines.append(f"{port['netdev']}: {', '.join(link['addresses']) or 'no address'}, MTU {link['mtu']}\n")
    return "".join([file or "", *lines])
