"""Who reaches the API, whom the API reaches, and who reads what users sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import container_limits
from ansible_collections.twinserve.pair.plugins.module_utils.private_folders import faults as open_to_others
from ansible_collections.twinserve.pair.plugins.module_utils.private_folders import read, wanted
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product
from engine_data import LICENCE, PRODUCT, faults, settings


def warnings(**raw: Any) -> list[str]:
    return resolve(PRODUCT.specs, PRODUCT.rules, PRODUCT.release("v1.1"), {**LICENCE, **raw}).warnings


def test_x01_the_api_is_for_the_head_alone_unless_that_is_asked_for_by_name() -> None:
    assert (settings()["expose"], settings(expose="loopback")["api_host"]) == ("gateway", "127.0.0.1")
    assert faults(expose="loopback", api_host="0.0.0.0") == [
        "api_host 0.0.0.0 serves without authentication to every network of the head: set expose: direct to "
        "accept that"
    ]
    assert faults(expose="loopback", api_host="192.0.2.11") and not faults(
        api_host="0.0.0.0", expose="direct"
    )
    (told,) = warnings(expose="direct")
    assert "serves everyone who reaches it, without authentication" in told


def test_x05_clients_make_the_head_fetch_nothing_unless_that_is_asked_for() -> None:
    urls = "vision_urls lets API clients make the head fetch URLs"
    assert settings()["vision_urls"] is False
    assert urls in warnings(vision_urls=True, expose="direct")
    assert urls in warnings(vision_urls=True)
    assert urls not in warnings(vision_urls=True, expose="loopback")
    assert faults(vision_urls=1, vision=0) == ["vision_urls needs vision"]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o755, "spill_dir is readable by others (0755)"),
        (0o750, "spill_dir is readable by others (0750)"),
        (0o701, "spill_dir is readable by others (0701)"),
        (0o700, None),
    ],
)
def test_x06_a_folder_of_prompts_that_others_may_enter_is_refused(
    tmp_path: Path, mode: int, said: str | None
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(mode)
    own = settings("v1.9", spill_gib=64, spill_dir=str(tmp_path / "kept"))

    folders = wanted(own, PRODUCT.release("v1.9"))
    found = open_to_others({"private": read(folders)}, own)

    assert [text.partition(":")[0] for text in found] == ([said] if said else [])


def test_x06_a_folder_that_is_not_there_or_not_used_is_no_fault(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    absent = settings("v1.9", spill_gib=64, spill_dir=str(tmp_path / "absent"))
    unused = settings("v1.9", spill_dir=str(tmp_path))
    for own in (absent, unused):
        assert read(wanted(own, PRODUCT.release("v1.9"))) == {}


# What the contracts say; SYS_NICE is SGLang's, which binds itself to memory that is near its GPU.
CAPABILITIES = {"tensorfold": {"IPC_LOCK"}, "vllm": {"IPC_LOCK"}, "sglang": {"IPC_LOCK", "SYS_NICE"}}


@pytest.mark.parametrize("engine", engine_names())
def test_no_release_gives_its_containers_more_than_the_contract_says(engine: str) -> None:
    product = load_product(engine)
    for name in product.releases():
        release = product.release(name)
        words = [str(word) for part in release["docker"] for word in part["words"]]
        after = dict(zip(words, words[1:], strict=False))
        given = {new for option, new in zip(words, words[1:], strict=False) if option == "--cap-add"}
        assert given == CAPABILITIES[engine]
        assert not {"--privileged", "--security-opt", "--pid", "--volume", "-v", "--mount"} & set(words)
        assert after["--device"] == "/dev/infiniband"
        assert [one["source"] for one in release["mounts"] if one["read_only"]] == ["${hf_cache}"]
        assert container_limits.faults(release) == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--privileged"], "--privileged"),
        (["--privileged=true"], "--privileged"),
        (["--cap-add", "ALL"], "--cap-add ALL"),
        (["--cap-add=all"], "--cap-add=all"),
        (["--gpus", "all", "--cap-add", "SYS_NICE", "--privileged=false"], None),
    ],
)
def test_a_release_file_that_gives_a_container_the_whole_node_is_refused(
    words: list[str], named: str | None
) -> None:
    instead = "gives a container the whole node: name what it needs with --cap-add and --device"
    found = container_limits.faults({"docker": [{"words": words}]})
    assert found == ([f"docker: {named} {instead}"] if named else [])
