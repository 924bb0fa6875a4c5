"""clean.yml takes away what is ours: all of it, nothing else, and what is dear only when somebody said so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils import clean_text, cleaning
from ansible_collections.twinserve.pair.plugins.module_utils.cleaning import Unclean
from ansible_collections.twinserve.pair.plugins.modules import clean_node
from fake_programs import Programs
from module_run import run_module
from plays import ROOT, Ran, play
from test_hf_removal import FOLDER, OLD, put

IMAGE = "ghcr.io/example/engine@sha256:" + "0" * 64


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Docker has the rank's image and one of our names; nothing runs."""
    made = Programs(tmp_path / "programs", monkeypatch, "docker", "systemctl", "userdel")
    made.answer("docker_image_ls", "localhost/twinserve/tensorfold:build-1\n")
    made.answer("docker_image_inspect", "25000000000\n")
    return made


def mounted(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    (folder / "mounts").write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.setattr(cleaning, "MOUNTS", folder / "mounts")


@pytest.fixture
def root(tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node as we leave it, below a folder."""
    root, home, kernels = tmp_path / "root", tmp_path / "hf", tmp_path / "kernels"
    mounted(tmp_path, monkeypatch, "/dev/sda / ext4 rw 0 0")
    put(home / "hub", FOLDER, OLD, config="c1")
    kernels.mkdir()
    (kernels / "kernel.so").write_text("x" * 5000)
    mounts = [
        {"source": str(home), "target": "/root/.cache/huggingface", "read_only": True},
        {"source": str(kernels), "target": "/cache", "read_only": False},
    ]
    for name, text in {
        "etc/twinserve/rank.json": json.dumps({"image": IMAGE, "mounts": mounts}),
        "etc/systemd/system/twinserve.service": "[Unit]",
        "usr/local/sbin/twinserve-rank": "#!/bin/sh",
        "usr/local/lib/twinserve/1/x.py": "",
        f"var/lib/twinserve/manifests/org--name@{OLD}.json": "{}",
        "var/log/twinserve/1-rank0.log.gz": "",
        "etc/hosts": "127.0.0.1 localhost",
        "usr/local/sbin/mine": "#!/bin/sh",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_all_that_is_ours_is_found_with_its_kind(root: Path, tmp_path: Path) -> None:
    found = cleaning.find([], root)
    names = {(item.kind, item.name.removeprefix(str(root))) for item in found if item.how != "user"}
    assert names == {
        ("weights", str(tmp_path / "hf/hub" / FOLDER / "snapshots" / OLD)),
        ("images", "localhost/twinserve/tensorfold:build-1"),
        ("images", IMAGE),
        ("caches", str(tmp_path / "kernels")),
        ("installed", "/etc/systemd/system/twinserve.service"),
        ("installed", "/usr/local/sbin/twinserve-rank"),
        ("installed", "/etc/twinserve"),
        ("installed", "/usr/local/lib/twinserve"),
        ("installed", "/var/log/twinserve"),
        ("installed", "/var/lib/twinserve"),
    }
    assert [item.kind for item in found].index("installed") > 3, "what says which weights are ours goes last"


def test_all_goes_and_a_second_look_finds_nothing(root: Path, programs: Programs, tmp_path: Path) -> None:
    for item in cleaning.find([], root):
        if item.how != "user":
            cleaning.remove(item)

    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert left == {"etc/hosts", "usr/local/sbin/mine"}
    assert not (tmp_path / "hf/hub" / FOLDER).exists()
    assert f"docker image rm {IMAGE}" in programs.calls
    assert "systemctl --quiet disable --now twinserve.service" in programs.calls
    programs.answer("docker_image_ls", "")
    assert [item for item in cleaning.find([], root) if item.how != "user"] == []


@pytest.mark.parametrize(("state", "times"), [("failed", 1), ("inactive", 0)])
def test_a_unit_that_failed_is_forgotten_once_it_is_stopped(
    root: Path, programs: Programs, state: str, times: int
) -> None:
    programs.answer("systemctl_show_twinserve.service", f"ActiveState={state}\n")
    unit = root / "etc/systemd/system/twinserve.service"

    cleaning.remove(cleaning.Item("installed", "unit", str(unit)))

    words = [call.split()[1:] for call in programs.calls]
    assert words[0] == ["--quiet", "disable", "--now", "twinserve.service"]
    assert words.count(["reset-failed", "twinserve.service"]) == times
    assert not unit.exists()


def test_nothing_is_removed_through_a_mount() -> None:
    mounts = "proc /proc proc rw 0 0\nhead:/hub /var/lib/twinserve/weights/hub nfs4 ro 0 0\n"
    with pytest.raises(Unclean, match="/var/lib/twinserve/weights/hub is a mount: umount it"):
        cleaning.refuse_mounts(Path("/var/lib/twinserve"), mounts)
    cleaning.refuse_mounts(Path("/var/lib/twin"), mounts)


def test_without_docker_there_are_no_images(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "images" not in {item.kind for item in cleaning.find([], root)}


@pytest.mark.parametrize("call", ["docker_image_ls", "docker_image_inspect"])
def test_a_docker_that_does_not_answer_is_no_docker_without_images(
    root: Path, programs: Programs, call: str
) -> None:
    programs.answer(call, "Cannot connect to the Docker daemon", 1)
    with pytest.raises(Unclean, match="Cannot connect to the Docker daemon .*; systemctl restart docker"):
        cleaning.find([], root)


def test_an_image_that_is_gone_hides_no_other(root: Path, programs: Programs) -> None:
    programs.answer("docker_image_inspect", "Error response from daemon: No such image: x", 1)
    assert "images" not in {item.kind for item in cleaning.find([], root)}


def test_what_a_broken_copy_has_left_in_a_cache_goes(root: Path, tmp_path: Path) -> None:
    places = [
        tmp_path / "hf" / place / ".twinserve-partial"
        for place in (".", f"hub/{FOLDER}/blobs", "hub/blobs/ab")
    ]
    for place in places:
        place.mkdir(parents=True)
        (place / "blob").write_text("x")

    # Two names of one cache.
    (tmp_path / "other").mkdir()
    (tmp_path / "other/hub").symlink_to(tmp_path / "hf/hub")

    found = cleaning.find([str(tmp_path / "hf"), str(tmp_path / "other")], root)

    begun = [item for item in found if item.name.endswith(".twinserve-partial")]
    assert {(item.kind, item.name) for item in begun} == {("installed", str(place)) for place in places}
    assert cleaning.remove_all(item for item in found if item.how != "user") == []
    assert not any(place.exists() for place in places)


def test_a_folder_that_somebody_named_for_kept_prompts_stays(root: Path, tmp_path: Path) -> None:
    data, plan = tmp_path / "data", root / "etc/twinserve/rank.json"
    data.mkdir()
    mount = {"source": str(data), "target": "/spill", "read_only": False}
    plan.write_text(json.dumps({"mounts": [mount], "folders": [str(data)]}))

    (item,) = [item for item in cleaning.find([], root) if item.kind == "caches"]

    assert item.name == str(data)
    assert item.stays == f"it may hold more than kept prompts: look, then rm -r {data}"


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("nas:/x {0}/hf nfs4 rw 0 0", {"weights"}),
        ("//nas/x {0}/hf/hub cifs rw 0 0", {"weights"}),
        ("me@nas: {0} fuse.sshfs rw 0 0", {"weights", "caches"}),
        ("/dev/sdb {0}/hf xfs rw 0 0", set()),
        ("nas:/x /mnt nfs4 rw 0 0", set()),
    ],
)
def test_what_other_machines_have_too_stays(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, stays: set[str]
) -> None:
    mounted(tmp_path, monkeypatch, "/dev/sda / ext4 rw 0 0", line.format(tmp_path))
    found = cleaning.find([], root)
    assert {item.kind for item in found if item.stays} == stays
    assert all("remove it where it is kept" in item.stays for item in found if item.stays)


def test_one_that_cannot_go_is_named_and_keeps_only_what_says_that_it_is_ours(
    root: Path, programs: Programs, tmp_path: Path
) -> None:
    programs.answer("docker_image_rm", "conflict: container 4f2 is using its referenced image", 1)

    faults = cleaning.remove_all(item for item in cleaning.find([], root) if item.how != "user")

    assert len(faults) == 2
    assert faults[1].startswith(f"{IMAGE}: docker image rm: conflict: container 4f2 is using")
    assert "docker rm CONTAINER" in faults[1]
    assert "-e clean_images=false" in faults[1]
    assert not (tmp_path / "hf/hub" / FOLDER).exists()
    assert not (root / "usr/local/lib/twinserve").exists()
    assert IMAGE in {item.name for item in cleaning.find([], root)}, "the next run knows it still"


def test_a_torn_plan_is_named(root: Path) -> None:
    path = root / "etc/twinserve/rank.json"
    path.write_text('{"image": ')
    with pytest.raises(Unclean, match=f"^{path}, which says what is ours, cannot be read: .*; rm {path}"):
        cleaning.find([], root)


@pytest.mark.parametrize(
    ("unit", "advice"),
    [
        ("twinserve.service", "run playbooks/stop.yml first"),
        ("twinserve-job-download.service", "wait for it, or systemctl stop twinserve-job-download.service"),
    ],
)
def test_a_node_that_serves_or_loads_something_is_refused(programs: Programs, unit: str, advice: str) -> None:
    programs.answer("systemctl_list-units", "twinserve-job-download.service loaded active running x\n")
    programs.answer(f"systemctl_show_{unit}", f"Id={unit}\nActiveState=active\nSubState=running\n")
    with pytest.raises(Unclean, match=advice):
        cleaning.refuse_running()


def test_a_job_that_has_ended_keeps_nothing_up(programs: Programs) -> None:
    unit = "twinserve-job-download.service"
    programs.answer("systemctl_list-units", f"{unit} loaded active exited x\n")
    programs.answer(f"systemctl_show_{unit}", f"Id={unit}\nActiveState=active\nSubState=exited\n")
    cleaning.refuse_running()


LISTED = [
    {"kind": "weights", "how": "snapshot", "name": "/hf/x", "size": 176_200_000_000, "goes": False},
    {"kind": "installed", "how": "tree", "name": "/etc/twinserve", "size": 0, "goes": True},
]
PAIR = {"ranks": [{"rank": 0, "name": "a"}, {"rank": 1, "name": "b"}, {"rank": 2, "name": "c"}]}
HOSTS = [
    {"inventory_hostname": "a", **{f"__operate_{step}": {"items": LISTED} for step in ("listed", "cleaned")}},
    {"inventory_hostname": "b", "__operate_listed": {"items": []}},
]  # fmt: skip


def test_the_list_names_each_thing_on_each_node() -> None:
    assert clean_text.screen(HOSTS, PAIR).splitlines() == [
        "a:",
        "  weights   /hf/x (176.2 GB)",
        "  installed /etc/twinserve",
        "b: nothing is left of Twinserve",
        "c: not looked at, so it keeps all",
    ]


def test_what_stays_is_named() -> None:
    assert clean_text.rest(HOSTS, PAIR).splitlines() == [
        "a keeps:",
        "  weights   /hf/x (176.2 GB)",
        "packages stay: others may have come to need them",
    ]


@pytest.mark.parametrize(
    ("given", "asked"), [(None, ["weights"]), ("false", []), (True, [])], ids=["open", "no", "yes"]
)
def test_only_what_is_there_and_was_not_said_is_asked(given: object, asked: list[str]) -> None:
    assert clean_text.questions(HOSTS, {"weights": given, "images": None}) == asked


@pytest.mark.parametrize(
    ("answers", "given", "goes"),
    [
        ({"results": [{"__operate_kind": "weights", "user_input": "yes"}]}, None, True),
        ({"results": [{"__operate_kind": "weights", "user_input": ""}]}, None, False),
        ({"results": [{"__operate_kind": "weights", "user_input": "no"}]}, None, False),
        ({"skipped": True}, None, False),
        ({"results": []}, "true", True),
        ({"results": [{"__operate_kind": "weights", "user_input": "yes"}]}, False, False),
    ],
)
def test_what_nobody_agreed_to_stays(answers: dict[str, object], given: object, goes: bool) -> None:
    assert clean_text.choice(answers, {"weights": given}) == {
        "weights": goes,
        "images": False,
        "caches": False,
    }


def test_what_stays_whatever_is_asked_is_listed_with_the_reason_and_not_asked_about() -> None:
    kept = [{**LISTED[0], "stays": "it is on /hf (nfs4)"}]
    hosts = [{"inventory_hostname": "a", "__operate_listed": {"items": kept}}]
    assert "  weights   /hf/x (176.2 GB): stays, it is on /hf (nfs4)" in clean_text.screen(hosts, PAIR)
    assert clean_text.questions(hosts, {}) == []


NODES = ("spark-a", "spark-b", "spark-c", "spark-d")


def refused(folder: Path, busy: dict[str, str], lost: str = "") -> Ran:
    """The refusals of clean.yml, and nothing else of it: this machine is every host."""
    known = yaml.safe_load((ROOT / "roles/operate/tasks/clean.yml").read_text())
    asserts = [task for task in known if "ansible.builtin.assert" in task]
    before: list[dict[str, Any]] = [
        {"ansible.builtin.include_vars": str(ROOT / "roles/operate/vars/main.yml")},
        {
            "ansible.builtin.set_fact": {
                "__operate_listed": {
                    "items": [],
                    "running": "{{ busy[inventory_hostname] | default('') }}",
                }
            },
            "vars": {"busy": busy},
        },
        {"ansible.builtin.fail": {"msg": "lost"}, "when": f"inventory_hostname == '{lost}'"},
    ]
    goes_on = {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }} is cleared"}}
    return play(folder, [*before, *asserts, goes_on], {name: {} for name in NODES})


def cleared(ran: Ran) -> set[str]:
    return {name for name in NODES if f"{name} is cleared" in ran.output}


@pytest.mark.parametrize("busy", ["spark-a", "spark-b"])
def test_what_runs_on_one_node_keeps_its_pair_and_no_other(tmp_path: Path, busy: str) -> None:
    ran = refused(tmp_path, {busy: "twinserve.service runs: run playbooks/stop.yml first, then this again"})
    assert cleared(ran) == {"spark-c", "spark-d"}, ran.output
    assert f"{busy}: twinserve.service runs: run playbooks/stop.yml first" in ran.output


def test_a_node_that_was_lost_on_the_way_keeps_its_pair(tmp_path: Path) -> None:
    ran = refused(tmp_path, {}, lost="spark-b")
    assert cleared(ran) == {"spark-c", "spark-d"}, ran.output
    assert "spark-b failed: nothing is removed from spark-a" in ran.output


def test_a_look_tells_what_runs(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    unit = "twinserve-job-download.service"
    programs.answer("systemctl_list-units", f"{unit} loaded active running x\n")
    programs.answer(f"systemctl_show_{unit}", f"Id={unit}\nActiveState=active\nSubState=running\n")
    answer = run_module(clean_node, capsys, check=True)
    assert answer["running"] == f"{unit} runs: wait for it, or systemctl stop {unit}; then run this again"


# The module itself only so: without check mode it would clear the machine that the tests run on.
def test_a_dry_run_lists_and_takes_nothing(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    answer = run_module(clean_node, capsys, check=True, images=True)
    assert {item["name"] for item in answer["items"] if item["kind"] == "images"} == {
        "localhost/twinserve/tensorfold:build-1"
    }
    assert not [call for call in programs.calls if " rm " in call]
