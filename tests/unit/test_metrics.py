"""What supervisor and node tell in Prometheus's text format."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import node_metrics
from ansible_collections.twinserve.pair.plugins.module_utils.exposition import Metric, single, text
from ansible_collections.twinserve.pair.plugins.module_utils.gateway.traffic import Traffic
from ansible_collections.twinserve.pair.plugins.module_utils.gids import Gid
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.beat import Beat
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.metrics import metrics, write
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.state import Phase
from ansible_collections.twinserve.pair.plugins.module_utils.sysfs import Device
from fake_programs import Programs
from fake_world import World


def values(told: str) -> dict[str, float]:
    """Each sample of a file by its name and labels."""
    lines = [line.rpartition(" ") for line in told.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def pair(world: World) -> dict[str, float]:
    return values(text(metrics(world.loop.state, world.now, "1")))


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        (single("a", "Says.", 1790000000.0), "# HELP a Says.\n# TYPE a gauge\na 1790000000.0\n"),
        (single("a", "Says.", True), "# HELP a Says.\n# TYPE a gauge\na 1.0\n"),
        (single("a", "Says.", None), ""),
        (
            Metric("a_total", "Says.", [({"b": 'c"\\\n', "d": 1}, 2)], kind="counter"),
            '# HELP a_total Says.\n# TYPE a_total counter\na_total{b="c\\"\\\\\\n",d="1"} 2.0\n',
        ),
    ],
)
def test_the_format(metric: Metric, told: str) -> None:
    assert text([metric]) == told


def test_a_serving_pair_tells_all_of_itself() -> None:
    world = World()
    world.until("serving")
    world.run(90)
    told = pair(world)
    assert told['twinserve_state{state="serving"}'] == told["twinserve_serving"] == 1
    assert (told["twinserve_rails_used"], told["twinserve_rails_expected"]) == (2, 0)
    assert told["twinserve_canary_ok"] == 1
    assert told["twinserve_canary_age_seconds"] <= 61
    assert told['twinserve_rank_seen{rank="1",name="spark-b"}'] == 1
    assert told["twinserve_pool_tokens"] > 0


def test_a_start_tells_no_canary_yet() -> None:
    world = World()
    world.api.load_time = 200
    world.until("loading")
    told = pair(world)
    assert told["twinserve_serving"] == 0
    assert 'twinserve_state{state="loading"}' in told
    assert "twinserve_canary_ok" not in told


def test_restarts_are_forgotten_after_their_window() -> None:
    world = World()
    world.until("serving")
    state = replace(world.loop.state, restarts=(world.now - 3700, world.now - 10), restarts_at=("", ""))
    assert values(text(metrics(state, world.now, "1")))["twinserve_restarts"] == 1


def test_stopped_on_purpose_is_another_state_than_down() -> None:
    world = World()
    world.until("serving")
    world.terminate()
    world.run(60)
    assert 'twinserve_state{state="stopped"}' in pair(world)


def test_the_file_is_written_only_while_its_folder_is_there(tmp_path: Path) -> None:
    world, folder = World(), tmp_path / "metrics"
    world.until("serving")
    write(world.loop.state, "1", world.now, folder)
    assert not folder.exists()
    folder.mkdir()
    write(world.loop.state, "1", world.now, folder)
    assert [path.name for path in folder.iterdir()] == ["pair.prom"]


def test_what_changes_all_the_time_is_written_now_and_then_and_news_at_once() -> None:
    world, beat = World(), Beat()
    world.until("serving")
    assert beat.due(world.loop.state, world.now)
    assert not beat.due(world.loop.state, world.now + 1), "nothing happened"
    assert beat.due(world.loop.state, world.now + 6), "time went on"
    stopping = replace(world.loop.state, phase=Phase.HALT)
    assert beat.due(stopping, world.now + 6), "something happened"


DEVICE = Device(
    "r0", "n0", "0", "ACTIVE", "up", True, 9000, 200000, gids=(Gid(3, "0::ffff:c633:6401", "RoCE v2"),)
)
RAIL = {"hca": "r0", "netdev": "n0", "address": "198.51.100.1", "gid_index": 3}


@pytest.mark.parametrize(
    ("devices", "up", "moved"),
    [
        ([DEVICE], 1, 0),
        ([replace(DEVICE, carrier=False)], 0, 0),
        ([replace(DEVICE, gids=(Gid(5, "0::ffff:c633:6401", "RoCE v2"),))], 1, 1),
        ([replace(DEVICE, gids=())], 1, 1),
        ([], 0, 0),
    ],
    ids=["as it was", "dark", "moved", "no GID", "device gone"],
)
def test_the_rails_in_use(devices: list[Device], up: int, moved: int) -> None:
    told = values(text(node_metrics.link([RAIL], devices)))
    labels = '{hca="r0",netdev="n0"}'
    assert told == {f"twinserve_rail_up{labels}": up, f"twinserve_gid_moved{labels}": moved}


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ({"LoadState": "not-found"}, {}),
        ({"LoadState": "loaded", "ActiveState": "active", "UnitFileState": "enabled"}, {"yes": 1}),
        ({"LoadState": "loaded", "ActiveState": "failed", "UnitFileState": "enabled"}, {"yes": 0}),
        ({"LoadState": "loaded", "ActiveState": "inactive", "UnitFileState": "disabled"}, {"no": 0}),
    ],
)
def test_the_supervisors_unit(unit: dict[str, str], told: dict[str, int]) -> None:
    found = values(text(node_metrics.supervisor({"twinserve.service": unit})))
    wanted = {f'twinserve_supervisor_active{{should="{word}"}}': value for word, value in told.items()}
    assert found == wanted


def test_a_node_with_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "programs", monkeypatch, "systemctl", "openssl")
    programs.answer("systemctl_show", "Id=twinserve.service\nLoadState=loaded\nActiveState=active\n")
    programs.answer("openssl_x509", "notBefore=Oct  2 09:34:43 2027 GMT\nnotAfter=Jan  5 09:34:43 2030 GMT\n")
    gateway = tmp_path / "run/twinserve-gateway"
    gateway.mkdir(parents=True)
    (gateway / "certificate.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "etc/twinserve").mkdir(parents=True)
    plan = {"rank": 0, "image": "x@sha256:0", "digest": "d"}
    (tmp_path / "etc/twinserve/rank.json").write_text(json.dumps(plan))

    told = values(text(node_metrics.metrics(tmp_path, "7")))

    (end,) = [value for name, value in told.items() if name.startswith("twinserve_certificate")]
    assert time.gmtime(end)[:6] == (2030, 1, 5, 9, 34, 43)
    assert told['twinserve_rank_info{rank="0",image="x@sha256:0",digest="d",runtime="7"}'] == 1


def on_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], nft: str = ""
) -> dict[str, float]:
    """What a node with these files of ours tells; `nft` is what it lists, or says when there is no table."""
    programs = Programs(tmp_path / "programs", monkeypatch, "systemctl", "nft")
    programs.answer("systemctl_show", "Id=twinserve.service\nLoadState=loaded\nActiveState=active\n")
    programs.answer("nft", nft, code=1 if nft.startswith("Error") else None)
    folder = tmp_path / "etc/twinserve"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return values(text(node_metrics.metrics(tmp_path, "7")))


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, {}),
        ({"pair.json": '{"api": {"gateway": false}}'}, {}),
        ({"pair.json": '{"api": {"gateway": true}}'}, {"twinserve_gateway_up": 0}),
    ],
    ids=["worker", "another way in", "a gateway that is away"],
)
def test_only_a_pair_with_a_gateway_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], told: dict[str, float]
) -> None:
    found = on_node(tmp_path, monkeypatch, files)
    assert {name: value for name, value in found.items() if "gateway" in name} == told


def test_a_gateway_that_answers_tells_what_it_counts() -> None:
    counted = Traffic(requests=9, dropped=1, connections={"active": 2, "waiting": 1})
    assert values(text(node_metrics.gateway(counted))) == {
        "twinserve_gateway_up": 1,
        "twinserve_gateway_requests_total": 9,
        "twinserve_gateway_dropped_total": 1,
        'twinserve_gateway_connections{state="active"}': 2,
        'twinserve_gateway_connections{state="waiting"}': 1,
    }


RULES = (
    'table inet twinserve {\n\tchain input {\n\t\tudp dport 4791 counter drop comment "RoCE (1)"\n\t}\n}\n'
)


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        (RULES.replace("counter", "counter packets 7 bytes 420"), 1),
        (RULES.replace("\t\tudp", "\t\tudp dport 4791 accept\n\t\tudp"), 0),
        ("Error: No such file or directory\n", 0),
    ],
    ids=["loaded", "changed", "flushed"],
)
def test_the_firewall_is_loaded_as_it_was_written_or_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str, told: int
) -> None:
    found = on_node(tmp_path, monkeypatch, {"firewall.nft": RULES}, listed)
    assert found["twinserve_firewall_loaded"] == told


def test_a_node_without_a_firewall_of_ours_tells_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "twinserve_firewall_loaded" not in on_node(tmp_path, monkeypatch, {}, RULES)


def test_a_table_that_cannot_be_listed_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="Operation not permitted"):
        on_node(tmp_path, monkeypatch, {"firewall.nft": RULES}, "Error: Operation not permitted\n")


def test_every_name_is_told_once_with_its_sentence() -> None:
    world = World()
    world.until("serving")
    told = text(metrics(world.loop.state, world.now, "1"))
    helps = re.findall(r"^# HELP (\S+) \S.*\.$", told, re.MULTILINE)
    assert len(set(helps)) == len(helps) == told.count("# TYPE")
