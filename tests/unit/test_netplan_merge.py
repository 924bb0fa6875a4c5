"""Our netplan file among those of others: what is refused before anything goes live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import (
    netplan_file,
    netplan_merge,
    networkd_match,
)
from ansible_collections.twinserve.pair.plugins.module_utils.netplan_merge import MergeError
from fake_ports import shown
from fake_programs import Programs

PORT = {"netdev": "enp1s0f0np0", "address": "192.168.177.1/24", "mtu": 9000}
OFFICE = "[Match]\nName=enP7s7\n\n[Network]\nAddress=192.0.2.11/24\n"
RAIL = "[Match]\nName=enp1s0f0np0\n\n[Link]\nMTUBytes={mtu}\n\n[Network]\nAddress={address}\n"
GOOD = RAIL.format(mtu=9000, address="192.168.177.1/24")
MINE = "network:\n  ethernets:\n    enp1s0f0np0:\n      mtu: 9000\n"
# Makes what lies in a folder of the test, for others' files alone or with ours among them.
GENERATE = (
    'eval "root=\\${$#}"; mkdir -p "$root/run/systemd"; '
    'if ls "$root$ETC" | grep -q twinserve; then cp -r "$NODE/with" "$root/run/systemd/network"; '
    'else cp -r "$NODE/without" "$root/run/systemd/network"; fi'
)


class Node:
    """A node with netplan files, what they make without and with ours, and what is live."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.etc = root, root / "etc/netplan"
        self.programs = Programs(root / "node", monkeypatch, "ip", "netplan")
        self.programs.answer("ip_-j_addr", shown(enP7s7=("192.0.2.11", 24, 1500), enp1s0f0np0=("", 24, 1500)))
        self.programs.answer("netplan_generate", do=GENERATE)
        monkeypatch.setenv("ETC", str(self.etc))
        self.live = root / "run/systemd/network"
        self.networkd = root / "etc/systemd/network"
        for folder in (self.etc, self.live, self.networkd, root / "node/with", root / "node/without"):
            folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(netplan_file, "FILE", self.etc / "60-twinserve-fabric.yaml")
        monkeypatch.setattr(netplan_file, "GENERATORS", ())
        monkeypatch.setattr(netplan_file, "FOLDERS", (self.etc,))
        monkeypatch.setattr(netplan_merge, "LIVE", root / "run")
        monkeypatch.setattr(netplan_merge, "NETWORKD", (self.networkd, self.live, root / "usr/lib"))
        self.file("01-office.yaml", "network:\n  ethernets:\n    enP7s7: {}\n")
        self.makes(enP7s7=OFFICE)
        (self.live / "10-netplan-enP7s7.network").write_text(OFFICE)
        (root / "node/with/10-netplan-enp1s0f0np0.network").write_text(GOOD)

    def file(self, name: str, text: str) -> Path:
        (self.etc / name).write_text(text)
        return self.etc / name

    def makes(self, **ports: str) -> None:
        """What netplan makes of the others' files."""
        for netdev, text in ports.items():
            for folder in ("with", "without"):
                (self.root / "node" / folder / f"10-netplan-{netdev}.network").write_text(text)

    def check(self, content: str | None = MINE, *ports: dict[str, Any]) -> None:
        netplan_merge.check(content, {"enp1s0f0np0"}, ports or [PORT])


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_f13_a_file_that_adds_only_our_ports_may_go_live(node: Node) -> None:
    node.check()
    assert not netplan_file.FILE.exists(), "tried in a folder of its own"
    roots = [call for call in node.programs.calls if "--root-dir" in call]
    assert len(roots) == 2
    assert not any(Path(call.split()[-1]).exists() for call in roots)


def test_f13_somebody_elses_invalid_file_is_named_in_netplans_own_words(node: Node) -> None:
    bad = node.file("99-bad.yaml", "network: {}\n")
    said = f"{bad}:5:18: Error in network definition: address '10.0.0.1' is missing /prefixlength\n  ^\n"
    node.programs.answer(
        "netplan_generate", "", 1, do=f'eval "root=\\${{$#}}"; printf "%s%s" "$root" "{said}"'
    )
    with pytest.raises(MergeError) as caught:
        node.check()
    assert str(caught.value) == (
        f"{bad}:5:18: Error in network definition: address '10.0.0.1' is missing /prefixlength: "
        "mend that file first, no address was changed"
    )


@pytest.mark.parametrize("is_there", [True, False])
def test_f13_a_netplan_that_does_not_answer_is_nobodys_file(
    node: Node, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    if is_there:
        node.programs.answer("netplan_generate", "Segmentation fault\n", 139)
    else:
        monkeypatch.setattr(netplan_file, "generate_argv", lambda: [str(node.root / "gone")])
    with pytest.raises(MergeError) as caught:
        node.check()
    assert "mend that file" not in str(caught.value)
    assert ("Segmentation fault" if is_there else "gone is not installed") in str(caught.value)
    assert str(caught.value).endswith("; the files of netplan could not be tried, no address was changed")


def test_f13_edits_that_others_never_applied_are_refused_by_file_and_port(node: Node) -> None:
    edited = node.file("40-office.yaml", "network:\n  ethernets:\n    enP7s7:\n      mtu: 1400\n")
    node.makes(enP7s7=OFFICE + "[Link]\nMTUBytes=1400\n")
    with pytest.raises(MergeError) as caught:
        node.check()
    assert str(caught.value) == (
        f"{edited} has edits of enP7s7 that were never applied and would go live with the rails: apply them "
        "(sudo netplan apply) or take them back, then run this again; no address was changed"
    )


def test_f13_what_is_live_is_read_before_netplan_is_called(node: Node) -> None:
    """`netplan generate` has systemd run it for /etc too, whatever folder it was given."""
    node.file("40-office.yaml", "network:\n  ethernets:\n    enP7s7:\n      mtu: 1400\n")
    node.makes(enP7s7=OFFICE + "[Link]\nMTUBytes=1400\n")
    leaks = f'{GENERATE}; cp "$NODE/without/"* {node.live}'
    node.programs.answer("netplan_generate", do=leaks)
    with pytest.raises(MergeError, match="has edits of enP7s7 that were never applied"):
        node.check()


@pytest.mark.parametrize(
    ("more", "lacks"),
    [
        ("Address=10.0.0.1/24\n", "10.0.0.1/24"),
        ("[Link]\nMTUBytes=1400\n", "MTU 1400"),
        ("Address=fd00::1/64\n", ""),
    ],
)
def test_f13_edits_that_a_reload_of_systemd_brought_to_run_are_seen_at_the_port(
    node: Node, more: str, lacks: str
) -> None:
    edited = node.file("40-office.yaml", "network:\n  ethernets:\n    enP7s7:\n      mtu: 1400\n")
    node.makes(enP7s7=OFFICE + more)
    (node.live / "10-netplan-enP7s7.network").write_text(OFFICE + more)
    if not lacks:
        node.check()
        return
    with pytest.raises(MergeError, match=f"{edited} gives enP7s7 {lacks}, which was never applied"):
        node.check()


def test_netplans_own_program_is_called_where_it_is(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    assert netplan_file.generate_argv() == ["netplan", "generate"]
    monkeypatch.setattr(netplan_file, "GENERATORS", (node.root / "none", node.etc / "01-office.yaml"))
    assert netplan_file.generate_argv() == [str(node.etc / "01-office.yaml")]


def test_f13_a_file_that_others_removed_and_never_applied_is_refused_too(node: Node) -> None:
    (node.live / "10-netplan-eno1.network").write_text("[Match]\nName=eno1\n")
    with pytest.raises(
        MergeError, match="eno1 still has what a netplan file gave it that is no longer there"
    ):
        node.check()
    with pytest.raises(MergeError, match="eno1"):
        node.check(None)


def test_edits_of_our_own_ports_are_what_we_change(node: Node) -> None:
    (node.live / "10-netplan-enp1s0f0np0.network").write_text("[Match]\nName=enp1s0f0np0\n")
    node.check()
    node.check(None)


@pytest.mark.parametrize(
    ("mtu", "address", "lacks"),
    [("1500", "192.168.177.1/24", "MTU 9000"), ("9000", "192.168.177.9/24", "192.168.177.1/24")],
)
def test_f13_a_later_file_that_wins_is_named(node: Node, mtu: str, address: str, lacks: str) -> None:
    later = node.file("90-NM-7.yaml", "network:\n  ethernets:\n    enp1s0f0np0:\n      mtu: 1500\n")
    node.file("40-cx7.yaml", "network:\n  ethernets:\n    enp1s0f0np0: {}\n")
    (node.root / "node/with/10-netplan-enp1s0f0np0.network").write_text(RAIL.format(mtu=mtu, address=address))
    with pytest.raises(
        MergeError, match=f"enp1s0f0np0 would not get {lacks}: {later} names the port too and wins"
    ):
        node.check()


def test_f13_a_file_of_networkd_that_comes_first_is_named(node: Node) -> None:
    (node.networkd / "05-all.network").write_text("[Match]\nName=en*\n")
    with pytest.raises(MergeError, match=f"would not get 192.168.177.1/24: {node.networkd}/05-all.network"):
        node.check()


@pytest.mark.parametrize(
    ("match", "taken"),
    [
        ("Name=enp1s0f0np0", True),
        ("Name=eth* enp*", True),
        ("Name=!enp*", False),
        ("Name=enP*", False),
        ("PermanentMACAddress=4C:BB:47:00:01:10", True),
        ("MACAddress=4c:bb:47:00:01:11", False),
        ("Type=ether", True),
        ("Type=wlan", False),
        ("Driver=mlx5_core", False),
        ("Name=enp*\nType=wlan", False),
        ("", False),
    ],
)
def test_networkd_takes_the_first_file_that_matches(match: str, taken: bool) -> None:
    files = {"10-netplan-enp1s0f0np0.network": GOOD, "05-x.network": f"[Match]\n{match}\n# Name=no\n"}
    name = networkd_match.winner(files, "enp1s0f0np0", "4c:bb:47:00:01:10")
    assert name == ("05-x.network" if taken else "10-netplan-enp1s0f0np0.network")
