"""How weights travel: which snapshots, by which program, with which key."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import jobs, model_transfer
from ansible_collections.twinserve.pair.plugins.module_utils.model_transfer import (
    copy_job,
    download_argv,
    download_env,
    missing,
    rail_ways,
    wanted,
)
from ansible_collections.twinserve.pair.plugins.module_utils.transfer import plan as transfer_plan

RELEASE = {
    "snapshots": [
        {"repo": "${model_id}", "revision": "${model_revision}"},
        {"repo": "${drafter_id}", "revision": "${drafter_revision}", "when": {"drafter": "dflash2"}},
    ]
}
SETTINGS = {
    "model_id": "o/model",
    "model_revision": "a" * 40,
    "drafter_id": "o/drafter",
    "drafter_revision": "b" * 40,
    "drafter": "dflash2",
}
MODEL = {"repo": "o/model", "revision": "a" * 40}
DRAFTER = {"repo": "o/drafter", "revision": "b" * 40}
IMAGE = "ghcr.io/example/engine@sha256:0123"


def node(program: str | None = None, home: str = "/home/bob/.cache/huggingface") -> dict[str, Any]:
    return {
        "user": {"name": "bob", "uid": 1000, "gid": 1001, "home": "/home/bob"},
        "hf": {"home": home, "program": program},
    }


@pytest.mark.parametrize(("drafter", "snapshots"), [("dflash2", [MODEL, DRAFTER]), ("mtp", [MODEL])])
def test_only_what_the_engine_loads_is_wanted(drafter: str, snapshots: list[dict[str, str]]) -> None:
    assert wanted(SETTINGS | {"drafter": drafter}, RELEASE) == snapshots


def test_m12_a_snapshot_of_another_revision_does_not_count() -> None:
    found = {f"o/model@{'c' * 40}": {"complete": True}, f"o/drafter@{'b' * 40}": {"complete": True}}
    assert missing([MODEL, DRAFTER], found, "auto") == [MODEL]
    assert missing([MODEL], {f"o/model@{'a' * 40}": {"complete": False}}, "auto") == [MODEL]
    assert missing([DRAFTER], found, "always") == [DRAFTER]


def test_m16_the_users_own_program_downloads() -> None:
    argv = download_argv(node("/home/bob/.local/bin/hf"), MODEL, IMAGE, "/run/token")
    assert argv == ["/home/bob/.local/bin/hf", "download", "o/model", "--revision", "a" * 40]


def test_m16_without_it_the_images_program_does_as_that_user() -> None:
    argv = download_argv(node(), MODEL, IMAGE)
    assert argv[:7] == ["docker", "run", "--rm", "--network", "host", "--user", "1000:1001"]
    assert argv[argv.index("-v") + 1] == "/home/bob/.cache/huggingface:/home/bob/.cache/huggingface"
    assert argv[-7:] == ["--entrypoint", "hf", IMAGE, "download", "o/model", "--revision", "a" * 40]
    assert argv.count("-v") == 1
    passed = {argv[place + 1] for place, word in enumerate(argv) if word == "-e"}
    settings = {"hf_endpoint": "http://hub", "hf_token_given": True}
    assert set(download_env(node(), settings, "/run/token")) <= passed


def test_the_container_reads_the_proxies_itself(tmp_path: Path) -> None:
    argv = download_argv(node(), MODEL, IMAGE, "", "/run/proxies")
    assert "/run/proxies:/run/proxies:ro" in argv
    assert not [word for word in argv if "https_proxy" in word]
    # What runs inside: the file's variables are the program's, and its words arrive as they are.
    (tmp_path / "proxies").write_text("https_proxy='http://bob:p w@proxy'\n")
    program = tmp_path / "hf"
    program.write_text('#!/bin/sh\necho "$https_proxy|$*"\n')
    program.chmod(0o755)
    command = [word.replace("/run/proxies", f"{tmp_path}/proxies") for word in argv[argv.index(IMAGE) + 1 :]]
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    said = subprocess.run(["sh", *command], env=env, capture_output=True, text=True, check=True).stdout
    assert said == f"http://bob:p w@proxy|download o/model --revision {'a' * 40}\n"


def test_the_token_goes_by_file_and_only_its_path_is_seen() -> None:
    argv = download_argv(node(), MODEL, IMAGE, "/run/twinserve/hf-token")
    assert "/run/twinserve/hf-token:/run/twinserve/hf-token:ro" in argv
    env = download_env(node(), {"hf_token_given": True, "hf_token": "hf_secret"}, "/run/twinserve/hf-token")
    assert env["HF_TOKEN_PATH"] == "/run/twinserve/hf-token"
    assert "hf_secret" not in f"{argv} {env}"
    assert "HF_TOKEN_PATH" not in download_env(node(), {"hf_token_given": False}, "/run/twinserve/hf-token")


def test_m13_the_download_uses_the_nodes_own_cache() -> None:
    env = download_env(node(home="/models/hf"), {}, "")
    assert (env["HF_HOME"], env["HOME"]) == ("/models/hf", "/home/bob")
    assert "HF_ENDPOINT" not in env
    assert download_env(node(), {"hf_endpoint": "http://hub"}, "")["HF_ENDPOINT"] == "http://hub"


RAIL = ("198.51.100.1/24", "198.51.100.2/24", "enp1s0f1np1")
TWIN = ("203.0.113.1/24", "203.0.113.2/24", "enP2p1s0f1np1")
SAME_SUBNET = ("198.51.100.101/24", "198.51.100.102/24", "enP2p1s0f1np1")


def ports(*rails: tuple[str, str, str]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    head = [{"address": own, "netdev": netdev} for own, _, netdev in rails]
    worker = [{"address": peer, "netdev": "enp1s0f0np0"} for _, peer, _ in rails]
    return head, worker


def job(repo: dict[str, str] = MODEL, lan: str = "192.0.2.12") -> dict[str, Any]:
    ways = {"rails": rail_ways(*ports(RAIL, TWIN)), "lan": lan}
    nodes = [node(home="/models/hf"), node()]
    return copy_job(repo, nodes, "spark-b", ways, ["--bwlimit=1g"], "0123abcd")


def test_m22_the_copy_goes_over_all_rails_each_from_its_own_address() -> None:
    plan = job()["plan"]
    assert plan["rails"] == [
        {"address": "198.51.100.2", "source": "198.51.100.1", "netdev": ""},
        {"address": "203.0.113.2", "source": "203.0.113.1", "netdev": ""},
    ]
    assert plan["lan"] == {"address": "192.0.2.12"}
    assert job(lan="")["plan"]["lan"] is None


def test_f10_a_rail_in_the_subnet_of_another_is_bound_to_its_port() -> None:
    ways = rail_ways(*ports(RAIL, SAME_SUBNET))
    assert [way["netdev"] for way in ways] == ["", "enP2p1s0f1np1"]


def test_a_rail_without_address_is_no_way_yet() -> None:
    assert rail_ways(*ports(("", "", "enp1s0f1np1"), TWIN)) == rail_ways(*ports(TWIN))


def test_the_job_runs_the_program_of_one_version_whatever_is_current() -> None:
    found = job()
    assert found["argv"] == ["/usr/bin/python3", "-P", "-m", "twinserve.transfer", found["plan_file"]]
    assert found["env"] == {"PYTHONPATH": "/usr/local/lib/twinserve/0123abcd"}
    assert found["name"] == "copy spark-b o/model aaaaaaaaaaaa"
    assert found["title"] == "copy of o/model"


def test_the_plan_is_what_the_program_reads() -> None:
    found = job()
    plan = transfer_plan.parse(json.dumps(found["plan"]))
    assert (plan.worker, plan.user, plan.options) == ("spark-b", "bob", ("--bwlimit=1g",))
    assert (plan.source, plan.target) == (Path("/models/hf/hub"), "hub/")
    assert plan.files == Path(model_transfer.list_file("o/model", "spark-b"))
    assert plan.progress == jobs.progress_file(found["name"])
    assert plan.rails[0] == transfer_plan.Way("198.51.100.2", source="198.51.100.1")


def test_each_worker_and_repository_has_its_own_list() -> None:
    lists = {model_transfer.list_file(repo, host) for repo in ("o/a", "o/b") for host in ("x", "y")}
    assert len(lists) == 4
    assert all("/" not in path.removeprefix(model_transfer.LISTS + "/") for path in lists)
