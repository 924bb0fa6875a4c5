"""How weights travel: which snapshots, by which program, with which key."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import model_transfer
from ansible_collections.twinserve.pair.plugins.module_utils.model_transfer import (
    checks,
    download_argv,
    download_env,
    download_meanings,
    fetch_argv,
    lacking_words,
    missing,
    source_words,
    verify_argv,
    wanted,
)
from ansible_collections.twinserve.pair.plugins.module_utils.weights.__main__ import parse

RELEASE: dict[str, Any] = {
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
    name = "twinserve-download-o-model"
    assert argv[:6] == ["docker", "run", "--rm", "--init", "--name", name]
    assert argv[6:10] == ["--network", "host", "--user", "1000:1001"]
    assert argv[argv.index("-v") + 1] == "/home/bob/.cache/huggingface:/home/bob/.cache/huggingface"
    assert argv[-7:] == ["--entrypoint", "hf", IMAGE, "download", "o/model", "--revision", "a" * 40]
    assert argv.count("-v") == 1
    passed = {argv[place + 1] for place, word in enumerate(argv) if word == "-e"}
    settings = {"hf_endpoint": "http://hub", "hf_token_given": True}
    assert set(download_env(node(), settings, "/run/token")) <= passed


def test_m16_which_program_it_is_is_told() -> None:
    home = "into /home/bob/.cache/huggingface"
    own = source_words(node("/home/bob/.local/bin/hf"), IMAGE, None)
    assert own == f"downloads with /home/bob/.local/bin/hf as bob {home}"
    assert source_words(node(), IMAGE, None) == f"downloads with the hf program of {IMAGE} as bob {home}"
    assert source_words(node(), IMAGE, "/mnt/disk") == f"takes weights from /mnt/disk {home}"


def test_with_a_bundle_nothing_is_downloaded() -> None:
    argv = fetch_argv(node(), MODEL, ["hf"], {"bundle": "/mnt/disk", "download_stall_s": 300})
    parsed = parse(argv[4:])
    assert (parsed.verb, parsed.bundle, parsed.user) == ("take", "/mnt/disk", "bob")
    assert "hf" not in argv


@pytest.mark.parametrize("program", ["/usr/bin/hf", None])
def test_m10_the_download_is_watched_by_our_program(program: str | None) -> None:
    settings = {"download_stall_s": 300, "prepare": "auto"}
    argv = fetch_argv(node(program), MODEL, ["hf", "download"], settings)
    assert argv[:5] == ["/usr/bin/python3", "-P", "-m", "twinserve.weights", "fetch"]
    assert argv[-3:] == ["--", "hf", "download"]
    parsed = parse(argv[4:])
    assert (parsed.stall, parsed.argv, parsed.offline, parsed.again) == (
        300,
        ["hf", "download"],
        False,
        False,
    )
    # Docker needs root, and drops to the user by itself.
    assert parsed.user == ("bob" if program else None)
    silent = fetch_argv(
        node(program), MODEL, ["hf"], settings | {"prepare": "always"}, [f"o/model@{'a' * 40}"]
    )
    assert (parse(silent[4:]).offline, parse(silent[4:]).again) == (True, True)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Local entry not found. [Errno 111] Connection refused", "does not answer any more"),
        ("OSError: [Errno 28] No space left on device", "the disk of /w is full"),
        ("Access denied. Model 'o/model' requires approval.", "has not accepted the terms of o/model"),
        ("no progress for 300 s, waiting on /x/1117.lock; no process holds it: remove it", None),
        ("Consistency check failed", None),
        ("[Errno 104] Connection reset by peer; trying again\nno progress for 300 s", None),
    ],
)
def test_what_the_client_says_is_explained(said: str, told: str | None) -> None:
    meanings = download_meanings(node(home="/w"), MODEL)
    found = [text for pattern, text in meanings.items() if re.search(pattern, said)]
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


def test_m06_the_check_is_such_a_program_too() -> None:
    parsed = parse(verify_argv(node(), MODEL, "spark-b")[4:])
    assert (parsed.verb, parsed.repo, parsed.host) == ("verify", "o/model", "spark-b")


def test_m12_what_is_there_instead_is_told() -> None:
    other = {"complete": False, "others": ["b" * 40]}
    found = {"hf": {"snapshots": {f"o/model@{'a' * 40}": other, f"o/drafter@{'b' * 40}": {"others": []}}}}
    cure = "run with -e prepare=auto"
    said = lacking_words(found, "spark-b", [MODEL], is_head=False)
    assert said == f"spark-b has {'b' * 40}, head serves {'a' * 40} of o/model; {cure}"
    said = lacking_words(found, "spark-a", [MODEL, DRAFTER], is_head=True)
    assert said == (
        f"spark-a has {'b' * 40} of o/model, and not {'a' * 40}; spark-a lacks o/drafter@{'b' * 40}; {cure}"
    )


def test_what_a_model_must_be_is_data_of_the_catalogue() -> None:
    asked: dict[str, Any] = {"shards": 50}
    release = {"snapshots": [{**entry, "checks": asked} for entry in RELEASE["snapshots"]]}
    both = {f"o/model@{'a' * 40}": asked, f"o/drafter@{'b' * 40}": asked}
    assert checks(SETTINGS, release) == both
    assert list(checks(SETTINGS | {"drafter": "mtp"}, release)) == [f"o/model@{'a' * 40}"]
    assert checks(SETTINGS, RELEASE) == {}
    assert wanted(SETTINGS, release) == [MODEL, DRAFTER]


def test_the_container_reads_the_proxies_itself(tmp_path: Path) -> None:
    argv = download_argv(node(), MODEL, IMAGE, "", "/run/proxies")
    assert "type=bind,source=/run/proxies,target=/run/proxies,readonly" in argv
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
    assert "type=bind,source=/run/twinserve/hf-token,target=/run/twinserve/hf-token,readonly" in argv
    env = download_env(node(), {"hf_token_given": True, "hf_token": "hf_secret"}, "/run/twinserve/hf-token")
    assert env["HF_TOKEN_PATH"] == "/run/twinserve/hf-token"
    assert "hf_secret" not in f"{argv} {env}"
    assert "HF_TOKEN_PATH" not in download_env(node(), {"hf_token_given": False}, "/run/twinserve/hf-token")


def test_each_download_has_a_secret_of_its_own_and_removes_it() -> None:
    token, proxy = (model_transfer.secret_file(MODEL, kind) for kind in ("hf-token", "proxy.env"))
    assert len({token, proxy, model_transfer.secret_file(DRAFTER, "hf-token")}) == 3
    settings: dict[str, Any] = {"download_stall_s": 300, "prepare": "auto"}
    argv = fetch_argv(node(), MODEL, ["hf"], settings, (), [token, ""])
    assert parse(argv[4:]).secret == [token]
    argv = fetch_argv(node(), MODEL, ["hf"], settings | {"bundle": "/mnt/disk"}, (), [token, proxy])
    assert parse(argv[4:]).secret == [token, proxy]


def test_m13_the_download_uses_the_nodes_own_cache() -> None:
    env = download_env(node(home="/models/hf"), {}, "")
    assert (env["HF_HOME"], env["HOME"]) == ("/models/hf", "/home/bob")
    assert "HF_ENDPOINT" not in env
    assert download_env(node(), {"hf_endpoint": "http://hub"}, "")["HF_ENDPOINT"] == "http://hub"


def test_each_worker_and_snapshot_has_its_own_list() -> None:
    lists = {
        model_transfer.list_file(repo, revision, host)
        for repo in ("o/a", "o/b")
        for revision in ("1", "2")
        for host in ("x", "y")
    }
    assert len(lists) == 8
    assert all("/" not in path.removeprefix(model_transfer.LISTS + "/") for path in lists)
