"""Starting and stopping the pair through its supervisor, and when waiting longer brings nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.twinserve.pair.plugins.module_utils import pair_state
from ansible_collections.twinserve.pair.plugins.module_utils.meminfo import Memory
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor import act, memory
from ansible_collections.twinserve.pair.plugins.modules import pair_service
from engine_data import PRODUCT
from fake_programs import Programs
from module_run import run_module

ENABLE = ["systemctl", "--quiet", "enable", "twinserve.service"]
START, RESTART, STOP, RELOAD = (
    ["systemctl", verb, "twinserve.service"] for verb in ("start", "restart", "stop", "reload")
)
DISABLE = ["systemctl", "--quiet", "disable", "twinserve.service"]
UP, OFF = {"ActiveState": "active", "UnitFileState": "enabled"}, {"ActiveState": "inactive"}


@pytest.mark.parametrize(
    ("wanted", "unit", "state", "commands"),
    [
        ("started", OFF, None, [ENABLE, START]),
        ("started", {"ActiveState": "inactive", "UnitFileState": "enabled"}, None, [START]),
        ("started", UP, {"state": "serving", "digest": "new"}, []),
        ("started", UP, {"state": "loading", "digest": "new"}, []),
        ("started", UP, {"state": "serving", "digest": "old"}, [RESTART]),
        ("started", UP, {"state": "down", "digest": "new"}, [RESTART]),
        ("started", UP, None, [RELOAD]),
        ("started", {"ActiveState": "active"}, None, [ENABLE, RELOAD]),
        ("started", {"ActiveState": "activating", "UnitFileState": "enabled"}, None, []),
        ("reloaded", UP, {"state": "serving", "digest": "new"}, [RELOAD]),
        ("reloaded", {"ActiveState": "activating"}, {"state": "serving", "digest": "new"}, []),
        ("reloaded", OFF, None, []),
        ("started", {"ActiveState": "active"}, {"state": "serving", "digest": "new"}, [ENABLE]),
        ("started", {"ActiveState": "failed"}, {"state": "serving", "digest": "new"}, [ENABLE, START]),
        ("stopped", UP, {"state": "serving", "digest": "new"}, [DISABLE, STOP]),
        ("stopped", {"ActiveState": "activating"}, None, [STOP]),
        ("stopped", OFF, None, []),
        ("followed", OFF, None, []),
    ],
)
def test_commands(
    wanted: str, unit: dict[str, str], state: dict[str, object] | None, commands: list[list[str]]
) -> None:
    assert pair_service.plan(wanted, unit, state, "new") == commands


def test_a_stop_in_the_middle_of_a_change_leaves_the_pair_to_the_next_boot() -> None:
    assert pair_service.plan("stopped", UP, {"state": "serving"}, None, keep=True) == [STOP]


@pytest.mark.parametrize(
    ("state", "digest", "settled"),
    [
        ({"state": "serving", "digest": "new"}, "new", True),
        ({"state": "down", "digest": "new"}, "new", True),
        ({"state": "serving", "digest": "old"}, "new", False),
        ({"state": "loading", "digest": "new"}, "new", False),
        ({"state": "serving", "digest": "old"}, None, True),
        ({}, None, False),
        (None, None, False),
    ],
)
def test_settled(state: dict[str, Any] | None, digest: str | None, settled: bool) -> None:
    assert pair_state.is_settled(state, digest) is settled


class Head:
    """A head with a supervisor's state file and answers of systemd."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs = Programs(folder, monkeypatch, "systemctl")
        self.path = folder / "state.json"
        monkeypatch.setattr(pair_service, "read_state", lambda: pair_state.read_state(self.path))
        monkeypatch.setattr(
            pair_service,
            "wait_successor",
            lambda pid, _seconds: pair_state.wait_successor(pid, 0.3, self.path),
        )
        monkeypatch.setattr(
            pair_service,
            "wait_state",
            lambda digest, seconds: pair_state.wait_state(digest, seconds, self.path),
        )

    def units(self, supervisor: str, rank: str, enabled: str = "enabled") -> None:
        self.programs.answer("systemctl_show", self.shown(supervisor, rank, enabled))

    @staticmethod
    def shown(supervisor: str, rank: str, enabled: str = "enabled") -> str:
        """What systemd prints of both units."""
        blocks = (("twinserve", supervisor, enabled), ("twinserve-rank", rank, "static"))
        return "\n".join(
            f"Id={name}.service\nActiveState={active}\nUnitFileState={file}\n"
            for name, active, file in blocks
        )

    def brings(self, verb: str, then: str, state: dict[str, Any] | None = None) -> None:
        """What a verb brings about: the supervisor's unit is `then`, and it writes `state`."""
        after = self.programs.folder / "after"
        after.write_text(self.shown(then, "active"))
        write = f"; echo '{json.dumps(state)}' > {self.path}" if state else ""
        self.programs.answer(f"systemctl_{verb}", do=f'cp "{after}" "$NODE/answers/systemctl_show"{write}')

    def state(self, state: str, digest: str, pid: int = 1) -> str:
        text = json.dumps({"state": state, "digest": digest, "pid": pid})
        self.path.write_text(text)
        return text

    @property
    def acts(self) -> list[str]:
        return [call for call in self.programs.calls if not call.startswith("systemctl show")]


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Head:
    return Head(tmp_path, monkeypatch)


def test_a_start_waits_for_the_new_answer_and_not_for_the_old(
    head: Head, capsys: pytest.CaptureFixture[str]
) -> None:
    head.units("inactive", "inactive", "disabled")
    head.state("serving", "new")
    loading = {"state": "loading", "digest": "new", "pid": 2}
    head.brings("start", "active", loading)
    asked = run_module(pair_service, capsys, state="started", digest="new", wait=0)
    assert (asked["changed"], asked["settled"], asked["pair"]) == (True, False, loading)
    assert head.acts == ["systemctl --quiet enable twinserve.service", "systemctl start twinserve.service"]
    assert asked["diff"] == {"before": "pair: stopped\n", "after": "pair: serving\n"}
    head.units("inactive", "inactive")
    head.brings("start", "active", {"state": "serving", "digest": "new", "pid": 3})
    assert run_module(pair_service, capsys, state="started", digest="new", wait=5)["settled"]


def test_a_reload_waits_for_the_next_supervisor_and_leaves_it_what_this_one_knew(
    head: Head, capsys: pytest.CaptureFixture[str]
) -> None:
    head.units("active", "active")
    before = head.state("serving", "new")
    head.programs.answer("systemctl_reload", do=f'cp "{head.path}" "$NODE/seen"')
    stays = run_module(pair_service, capsys, state="reloaded", digest="new", wait=0)
    assert "wrote no state within 60 s" in stays["msg"]
    assert (head.programs.folder / "seen").read_text() == before
    head.brings("reload", "active", {"state": "serving", "digest": "new", "pid": 2})
    answer = run_module(pair_service, capsys, state="reloaded", digest="new", wait=0)
    assert (answer["changed"], answer["settled"], answer["pair"]["pid"]) == (True, True, 2)


def test_a_pair_without_a_state_file_is_looked_at_and_not_stopped(
    head: Head, capsys: pytest.CaptureFixture[str]
) -> None:
    head.units("active", "active")
    head.brings("reload", "active", {"state": "serving", "digest": "new", "pid": 2})
    answer = run_module(pair_service, capsys, state="started", digest="new", wait=0)
    assert (answer["settled"], head.acts) == (True, ["systemctl reload twinserve.service"])


def test_memory_that_did_not_come_back_is_told(
    head: Head, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ansible keeps warnings of a process once and for all.
    warned: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _self, text, **_more: warned.append(text))
    head.units("active", "active")
    head.state("serving", "new")
    detail = "stopped; memory did not come back within 60 s"
    head.brings("stop", "inactive", {"state": "down", "detail": detail})
    assert run_module(pair_service, capsys, state="stopped")["changed"]
    assert warned == [f"the pair is {detail}"]


@pytest.mark.parametrize(
    ("cut", "said"),
    [
        (0, []),
        (1, ["1 running request was cut off by the stop"]),
        (3, ["3 running requests were cut off by the stop"]),
    ],
)
def test_requests_that_a_stop_cut_off_are_counted(
    head: Head, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, cut: int, said: list[str]
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _self, text, **_more: warned.append(text))
    head.units("active", "active")
    head.state("serving", "new")
    head.brings("stop", "inactive", {"state": "down", "detail": "stopped", "cut": cut})
    assert run_module(pair_service, capsys, state="stopped", enabled=True)["changed"]
    assert warned == said


def test_a_pair_that_is_down_shows_what_its_supervisor_wrote_since_its_start(
    head: Head, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head.programs = Programs(tmp_path, monkeypatch, "systemctl", "journalctl")
    head.units("active", "inactive")
    head.state("down", "new")
    text = head.shown("active", "inactive")
    head.programs.answer("systemctl_show", text)
    head.programs.answer("systemctl_show_twinserve.service", "InvocationID=abc\n")
    head.programs.answer("journalctl", "starting\nrank 1: ValueError\n")
    answer = run_module(pair_service, capsys, state="followed", digest="new", wait=0)
    assert answer["log"] == ["starting", "rank 1: ValueError"]
    (asked,) = [call for call in head.programs.calls if call.startswith("journalctl")]
    assert asked.endswith("_SYSTEMD_UNIT=twinserve.service _SYSTEMD_INVOCATION_ID=abc")


def test_the_longest_stop_that_the_settings_allow_is_waited_for() -> None:
    limits = PRODUCT.specs
    longest = (limits["drain_timeout"].max or 0) + (limits["stop_timeout"].max or 0)
    assert longest + act._STOP_EXTRA + memory._LIMIT < pair_service.LONGEST_STOP


@pytest.mark.parametrize(("status", "said"), [("no pair.json", "no pair.json"), ("", "see journalctl -u")])
def test_a_supervisor_that_systemd_gave_up_is_not_waited_for(
    head: Head, capsys: pytest.CaptureFixture[str], status: str, said: str
) -> None:
    head.units("failed", "inactive")
    text = head.shown("failed", "inactive").replace("UnitFileState=enabled", f"StatusText={status}")
    head.programs.answer("systemctl_show", text)
    answer = run_module(pair_service, capsys, state="followed", digest="new", wait=0)
    assert answer["failed"]
    assert answer["msg"].startswith(f"twinserve.service is failed: {said}")
    head.units("activating", "inactive")
    assert not run_module(pair_service, capsys, state="followed", digest="new", wait=0)["failed"]


def test_a_pair_that_serves_this_is_left_alone(head: Head, capsys: pytest.CaptureFixture[str]) -> None:
    head.units("active", "active")
    head.state("serving", "new")
    answer = run_module(pair_service, capsys, state="started", digest="new", wait=0)
    assert (answer["changed"], answer["settled"], head.acts) == (False, True, [])


def test_check_mode_predicts_and_touches_nothing(head: Head, capsys: pytest.CaptureFixture[str]) -> None:
    head.units("active", "active")
    before = head.state("serving", "old")
    answer = run_module(pair_service, capsys, check=True, state="started", digest="new", wait=0)
    assert (answer["changed"], head.acts, head.path.read_text()) == (True, [], before)
    assert answer["diff"] == {"before": "pair: serving\n", "after": "pair: serving\n"}


@pytest.mark.parametrize(
    ("supervisor", "rank", "acts"),
    [
        ("active", "active", ["--quiet disable twinserve.service", "stop twinserve.service"]),
        ("failed", "active", ["--quiet disable twinserve.service", "stop twinserve-rank.service"]),
        ("inactive", "inactive", ["--quiet disable twinserve.service"]),
    ],
)
def test_l01_stopped_leaves_no_rank_behind_a_dead_supervisor(
    head: Head,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    supervisor: str,
    rank: str,
    acts: list[str],
) -> None:
    head.units(supervisor, rank)
    free = iter([20.0, 60.0, 110.0, 110.2])
    monkeypatch.setattr(pair_service, "read_memory", lambda: Memory(120.0, next(free), 1.0))
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    answer = run_module(pair_service, capsys, state="stopped")
    assert answer["changed"]
    # An orphan's memory is waited for here, that of a pair by its supervisor.
    assert len(list(free)) == (0 if rank == "active" and supervisor != "active" else 4)
    assert head.acts == [f"systemctl {act}" for act in acts]


def test_a_unit_that_does_not_start_is_told(head: Head, capsys: pytest.CaptureFixture[str]) -> None:
    head.units("inactive", "inactive")
    head.programs.answer("systemctl_start", "Job for twinserve.service failed.\n", 1)
    answer = run_module(pair_service, capsys, state="started", digest="new", wait=0)
    assert answer["failed"]
    assert "Job for twinserve.service failed." in answer["msg"]


def test_waiting_ends_when_the_state_settles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        path.write_text(json.dumps({"state": "serving" if len(naps) > 2 else "loading", "digest": "new"}))

    monkeypatch.setattr("time.sleep", nap)
    assert pair_state.wait_state("new", 600, path) == {"state": "serving", "digest": "new"}
    assert len(naps) == 3
