"""The wire between the nodes: who may do what with which key, whom the head knows, how keys are replaced."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.twinserve.pair.plugins.filter import nodes as filters
from ansible_collections.twinserve.pair.plugins.module_utils import managed_files, ssh_wire
from ansible_collections.twinserve.pair.plugins.module_utils.ssh_client import KNOWN_HOSTS

ALIASES = (("spark-a", "192.0.2.11"), ("spark-b", "192.0.2.12"))
PLANS = [
    {"ports": [{"address": "198.51.100.1/24"}, {"address": "203.0.113.1/24"}]},
    {"ports": [{"address": "198.51.100.2/24"}, {"address": "203.0.113.2/24"}]},
]
KNOWN = "spark-b,192.0.2.12,198.51.100.2,203.0.113.2 ssh-ed25519 HOSTB\n"
FILES = {KNOWN_HOSTS: managed_files.fingerprint(KNOWN, "0644")}
MAY_LOAD = {
    one["path"]: managed_files.fingerprint(one["content"], one["mode"]) for one in ssh_wire.IMAGE_FILES
}
CONTROL = 'restrict,command="/usr/local/sbin/twinserve-control" ssh-ed25519 CONTROL twinserve-control'
COPY = 'restrict,command="rrsync -no-lock -wo /home/bob/.cache/huggingface" ssh-ed25519 COPY twinserve-copy'
IMAGE = 'restrict,command="/usr/local/sbin/twinserve-image" ssh-ed25519 IMAGE twinserve-image'
NAMES = ("control", "copy", "image")
MADE = {name: f"ssh-ed25519 {name.upper()}" for name in NAMES}
NEW = {f"{name}.next": f"ssh-ed25519 NEW{name.upper()}" for name in NAMES}


def node(
    host_key: str,
    keys: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    user: bool = True,
    **lines: list[str],
) -> dict[str, Any]:
    return {
        "host_key": f"ssh-ed25519 {host_key}" if host_key else None,
        "public_keys": dict.fromkeys((*MADE, *NEW)) | (keys or {}),
        "authorized": {"control": [], "copy": [], "image": []} | lines,
        "files": files or {},
        "tools": {"twinserve_user": user},
        "hf": {"home": "/home/bob/.cache/huggingface"},
        "user": {"name": "bob"},
    }


def plan(head: dict[str, Any], *workers: dict[str, Any], rotate: bool = False) -> list[dict[str, Any]]:
    return ssh_wire.plan([head, *workers], ALIASES, PLANS, rotate)


def test_f19_the_head_knows_its_workers_by_every_address_that_it_may_use() -> None:
    assert plan(node("HOSTA"), node("HOSTB"))[0]["known_hosts"] == KNOWN


def test_f19_the_head_still_knows_a_rail_that_waits_for_the_pair_to_be_stopped() -> None:
    short = {"ports": PLANS[1]["ports"][:1], "waiting": [{"hca": "r1", "address": "203.0.113.2/24"}]}
    entry = ssh_wire.plan([node("HOSTA"), node("HOSTB")], ALIASES, [PLANS[0], short])[0]
    assert entry["known_hosts"] == KNOWN


def test_f19_the_connections_that_the_head_needs() -> None:
    assert ssh_wire.logins([node("HOSTA"), node("HOSTB")], ["192.0.2.11", "192.0.2.12"], PLANS) == [
        {"key": "control", "user": "twinserve", "address": "192.0.2.12"},
        {"key": "copy", "user": "bob", "address": "198.51.100.2"},
        {"key": "copy", "user": "bob", "address": "203.0.113.2"},
        {"key": "image", "user": "twinserve", "address": "198.51.100.2"},
        {"key": "image", "user": "twinserve", "address": "203.0.113.2"},
    ]


def test_a_name_that_is_its_own_address_is_written_once() -> None:
    names = [["spark-a", "spark-a"], ["spark-b", "spark-b"]]
    entry = ssh_wire.plan([node("HOSTA"), node("HOSTB")], names, [{"ports": []}] * 2)[0]
    assert entry["known_hosts"] == "spark-b ssh-ed25519 HOSTB\n"


def test_a_worker_that_cannot_be_recognised_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="^spark-b has no ssh host key .*ssh-keygen -A"):
        filters.plan_wire([node("HOSTA"), node("")], ALIASES, PLANS)


def test_before_the_head_has_keys_no_worker_gets_a_line() -> None:
    head, worker = plan(node("HOSTA"), node("HOSTB", control=[CONTROL]))
    assert head["make"] == ["control", "copy", "image"]
    assert (worker["control"]["lines"], worker["control"]["differ"]) == ([], False), "it knows no better"
    assert (head["lacks"], worker["lacks"]) == (True, False)


def test_each_key_may_do_one_thing() -> None:
    _, worker = plan(node("HOSTA", MADE), node("HOSTB"))
    assert [worker[name]["lines"] for name in NAMES] == [[CONTROL], [COPY], [IMAGE]]
    assert worker["control_file"]["lines"] == [CONTROL, IMAGE], "the same user's"
    assert (worker["lines_differ"], worker["lacks"]) == (True, True)


@pytest.mark.parametrize(
    ("control", "copy", "differ"),
    [
        ([CONTROL], [COPY], []),
        ([], [COPY], ["control"]),
        ([CONTROL], [COPY.replace("-wo /home", "-wo /other")], ["copy"]),
        ([CONTROL.replace("restrict,", "")], [COPY], ["control"]),
        ([CONTROL.replace("CONTROL t", "OLDKEY t")], [COPY], ["control"]),
        ([CONTROL], [COPY, COPY.replace("COPY t", "OLD t")], ["copy"]),
        ([CONTROL, CONTROL], [COPY], ["control"]),
    ],
)
def test_lines_count_only_when_they_say_exactly_that(
    control: list[str], copy: list[str], differ: list[str]
) -> None:
    _, worker = plan(
        node("HOSTA", MADE), node("HOSTB", files=MAY_LOAD, control=control, copy=copy, image=[IMAGE])
    )
    assert [name for name in NAMES if worker[name]["differ"]] == differ
    assert worker["control_file"]["differ"] is ("control" in differ)
    assert worker["lacks"] is bool(differ)


def test_a_wire_that_stands_lacks_nothing() -> None:
    stands = plan(node("HOSTA", MADE, FILES), standing()[1])
    assert [entry["lacks"] for entry in stands] == [False, False]
    nobody = plan(node("HOSTA", MADE, FILES, user=False), node("HOSTB"))
    assert nobody[0]["lacks"]


def test_a_reinstalled_worker_is_known_by_its_new_key_and_gets_its_lines_again() -> None:
    head, worker = plan(node("HOSTA", MADE, FILES), node("NEWKEY"))
    assert head["known_hosts"] == KNOWN.replace("HOSTB", "NEWKEY")
    assert (head["known_hosts_differ"], head["lacks"], worker["lines_differ"]) == (True, True, True)


def test_a_head_that_was_made_anew_takes_the_earlier_ones_lines_away() -> None:
    old: dict[str, Any] = {
        name: [line.replace(f"{name.upper()} t", "OLD t")]
        for name, line in zip(NAMES, (CONTROL, COPY, IMAGE), strict=True)
    }
    _, worker = plan(node("HOSTA", MADE, FILES), node("HOSTB", files=MAY_LOAD, **old))
    assert [worker[name]["lines"] for name in NAMES] == [[CONTROL], [COPY], [IMAGE]]
    assert worker["lines_differ"]


def rotation(head: dict[str, Any], worker: dict[str, Any], rotate: bool) -> list[str]:
    """One run of the role after the first look; what the nodes hold changes as its tasks change them."""
    steps = []

    def wire() -> list[dict[str, Any]]:
        return plan(head, worker, rotate=rotate)

    keys, lines = head["public_keys"], worker["authorized"]
    for name in wire()[0]["make"]:
        keys[name] = f"ssh-ed25519 MADE{next(SERIAL)}"
        steps.append(f"make {name}")
        yield_point(steps, keys, lines)
    for step in ("authorize", "promote", "take", "drop"):
        entry, wanted = wire()
        if step in ("authorize", "take"):
            for name in NAMES:
                if wanted[name]["differ"]:
                    lines[name] = list(wanted[name]["lines"])
                    steps.append(f"{step} {name}")
                    yield_point(steps, keys, lines)
        elif step == "promote":
            for name, key in entry["promote"].items():
                keys[name] = key
                steps.append(f"promote {name}")
                yield_point(steps, keys, lines)
        else:
            for name in entry["drop"]:
                keys[f"{name}.next"] = None
                steps.append(f"drop {name}")
                yield_point(steps, keys, lines)
    return steps


SERIAL = itertools.count()
LIMIT = [100]


class Interrupted(Exception):
    """The run ends here."""


def yield_point(steps: list[str], keys: dict[str, str | None], lines: dict[str, list[str]]) -> None:
    """After each step the head can use its keys; a run may end here."""
    for name in NAMES:
        assert any(str(keys[name]) in line for line in lines[name]), steps
    if len(steps) >= LIMIT[0]:
        raise Interrupted


def standing() -> tuple[dict[str, Any], dict[str, Any]]:
    return node("HOSTA", dict(MADE), FILES), node(
        "HOSTB", files=MAY_LOAD, control=[CONTROL], copy=[COPY], image=[IMAGE]
    )


def test_new_keys_come_beside_the_old_ones_and_take_their_place() -> None:
    head, worker = standing()
    assert rotation(head, worker, rotate=True) == [
        f"{step} {name}"
        for step in ("make", "authorize", "promote", "take", "drop")
        for name in (NEW if step == "make" else NAMES)
    ]
    assert not {*MADE.values()} & {*head["public_keys"].values()}
    assert [entry["lacks"] for entry in plan(head, worker)] == [False, False]
    assert rotation(head, worker, rotate=False) == []


@pytest.mark.parametrize("rotate", [True, False])
@pytest.mark.parametrize("after", range(1, 16))
def test_a_rotation_that_was_interrupted_anywhere_ends_right(
    after: int, rotate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, worker = standing()
    monkeypatch.setattr("test_ssh_wire.LIMIT", [after])
    with pytest.raises(Interrupted):
        rotation(head, worker, rotate=True)
    monkeypatch.setattr("test_ssh_wire.LIMIT", [100])

    rotation(head, worker, rotate)

    keys = head["public_keys"]
    assert [keys[name] for name in NEW] == [None] * 3
    assert [entry["lacks"] for entry in plan(head, worker)] == [False, False]
    assert [len(lines) for lines in worker["authorized"].values()] == [1, 1, 1]


def test_a_new_key_waits_until_every_worker_lets_it_in() -> None:
    head = node("HOSTA", MADE | NEW, FILES)
    both: dict[str, Any] = {
        "control": [CONTROL, CONTROL.replace("CONTROL t", "NEWCONTROL t")],
        "copy": [COPY, COPY.replace("COPY t", "NEWCOPY t")],
    }
    aliases: list[tuple[str, ...]] = [*ALIASES, ("spark-c",)]
    plans: list[dict[str, Any]] = [*PLANS, {"ports": []}]
    both["image"] = [IMAGE, IMAGE.replace("IMAGE t", "NEWIMAGE t")]
    waits = ssh_wire.plan([head, node("HOSTB", **both), node("HOSTC", copy=both["copy"])], aliases, plans)
    assert waits[0]["promote"] == {"copy": "ssh-ed25519 NEWCOPY"}
    assert waits[2]["control"]["differ"]


def test_a_successor_in_its_place_is_not_put_there_again() -> None:
    head = node("HOSTA", MADE | {"control.next": MADE["control"]}, FILES)
    entry = plan(head, standing()[1])[0]
    assert (entry["promote"], entry["drop"]) == ({}, ["control"])


def test_half_a_successor_is_cleared_away_or_made_whole() -> None:
    head, worker = node("HOSTA", MADE | {"control.next": ""}, FILES), standing()[1]
    entry = plan(head, worker)[0]
    assert (entry["make"], entry["promote"], entry["drop"], entry["lacks"]) == ([], {}, ["control"], True)
    assert plan(head, worker, rotate=True)[0]["make"] == ["control.next", "copy.next", "image.next"]


def test_a_head_without_keys_makes_them_and_does_not_replace_them() -> None:
    assert plan(node("HOSTA"), node("HOSTB"), rotate=True)[0]["make"] == ["control", "copy", "image"]


@pytest.mark.parametrize("path", ["/usr/local/sbin/twinserve-image", "/etc/sudoers.d/twinserve-image"])
@pytest.mark.parametrize("there", [None, "0644 sha256:00"])
def test_the_image_key_needs_its_program_and_the_right_to_load_images(path: str, there: str | None) -> None:
    files = {one: known for one, known in MAY_LOAD.items() if one != path}
    files |= {path: there} if there else {}
    _, worker = plan(
        node("HOSTA", MADE, FILES), node("HOSTB", files=files, control=[CONTROL], copy=[COPY], image=[IMAGE])
    )
    assert (worker["lines_differ"], worker["lacks"]) == (False, True)
    assert [one["path"] for one in worker["image_files"]] == [path]


def test_the_image_keys_user_may_load_images_as_root_and_nothing_else() -> None:
    assert [one["content"].splitlines()[1:] for one in ssh_wire.IMAGE_FILES if "sudoers" in one["path"]] == [
        ["twinserve ALL=(root) NOPASSWD: /usr/bin/docker load"]
    ]
