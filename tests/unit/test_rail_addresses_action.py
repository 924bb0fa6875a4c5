"""The action around rail_addresses: only a new connection keeps a change; what is told when none came."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.twinserve.pair.plugins.action import rail_addresses
from ansible_collections.twinserve.pair.plugins.module_utils.confirming import LIMIT
from ansible_collections.twinserve.pair.plugins.plugin_utils import keeping
from fake_ports import Clock

Answers = list[dict[str, Any] | Exception]

ARMED = {"changed": True, "way_back": "armed", "diff": {"before": "a", "after": "b"}}
KEPT = {"changed": True, "way_back": "kept"}
UNDONE = {"failed": True, "msg": "the node has taken the change of the rails back", "way_back": "undone"}
LOST = AnsibleConnectionFailure("port 22: Connection timed out")
PORTS = [{"netdev": "enp1s0f0np0", "address": "192.168.177.2/24", "mtu": 9000}]


class Changed:
    """A run of the action with the answers of its module, the last one repeated; a lost one takes 10 s."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: Answers, **args: Any) -> None:
        self.clock, self.events, self.shown = Clock(), list[str](), list[str]()
        self.answers = answers
        plugin: Any = keeping
        monkeypatch.setattr(plugin, "time", self.clock)
        monkeypatch.setattr(plugin, "display", SimpleNamespace(display=self.shown.append))
        monkeypatch.setattr(plugin.ActionBase, "run", lambda *_: {})
        task = SimpleNamespace(args=args or {"ports": PORTS}, check_mode=False)
        connection = SimpleNamespace(reset=lambda: self.events.append("reset"))
        action = rail_addresses.ActionModule(task, connection, None, None, None, None)
        monkeypatch.setattr(action, "_execute_module", self._answer)
        self.told: dict[str, Any] = action.run(None, {"inventory_hostname": "spark-b"})

    def _answer(self, module_args: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.events.append(module_args.get("state", "present"))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            self.clock.now += 10
            raise answer
        return dict(answer)


def test_f13_a_change_is_kept_over_a_new_connection_only(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Changed(monkeypatch, [ARMED, KEPT])
    assert change.events == ["present", "reset", "confirmed"]
    assert change.told == {**ARMED, "way_back": "kept"}


def test_f13_a_slow_new_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Changed(monkeypatch, [ARMED, LOST, KEPT])
    assert change.events == ["present", "reset", "confirmed", "reset", "confirmed"]
    assert not change.told.get("failed")


@pytest.mark.parametrize(
    "answer", [{"changed": False, "way_back": "none"}, {"changed": True, "way_back": "none"}]
)
def test_what_needs_no_way_back_needs_no_connection(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    change = Changed(monkeypatch, [answer])
    assert (change.events, change.told) == (["present"], answer)


def test_f13_a_failure_that_the_module_undid_itself_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"failed": True, "msg": "management address 192.0.2.12 did not return", "way_back": "none"}
    change = Changed(monkeypatch, [failed])
    assert (change.events, change.told) == (["present"], failed)


def test_f13_where_no_new_connection_comes_through_the_node_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change = Changed(monkeypatch, [ARMED, LOST, LOST, UNDONE])
    assert change.told["failed"]
    assert change.told["msg"] == (
        "spark-b: its rails were being addressed (192.168.177.2/24 to enp1s0f0np0): no new connection came "
        "through in time (port 22: Connection timed out); it took the change back by itself and is reachable "
        "again. journalctl -u 'twinserve-way-back-*' there tells more; then run playbooks/fabric.yml again"
    )


def test_a_change_that_is_kept_but_left_something_behind_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = {
        "failed": True,
        "msg": "the change is kept, but nmcli con delete: no (exit 1)",
        "way_back": "kept",
    }
    change = Changed(monkeypatch, [ARMED, answer])
    assert change.told == {**ARMED, **answer, "msg": f"spark-b: {answer['msg']}"}


def test_f13_no_connection_is_blamed_where_one_came_through(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"failed": True, "msg": "no change of the rails waits to be confirmed", "way_back": "none"}
    unclear = {"failed": True, "msg": "systemctl show: Connection refused (exit 1)", "invocation": {}}
    for answer, reason in (
        (UNDONE, "it was not confirmed in time; it took the change back"),
        (nothing, "it could not be confirmed (no change of the rails waits to be confirmed)"),
        (unclear, "it could not be confirmed (systemctl show: Connection refused (exit 1))"),
    ):
        told = Changed(monkeypatch, [ARMED, answer]).told["msg"]
        assert f"to enp1s0f0np0): {reason}" in told
        assert "no new connection" not in told


def test_f13_a_node_that_stays_away_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Changed(monkeypatch, [ARMED, LOST], state="absent")
    assert "spark-b: its link was being put back as it was before Twinserve: no new" in change.told["msg"]
    assert "it is not reachable after 90 s either" in change.told["msg"]
    assert "look at its console" in change.told["msg"]
    assert 90 < change.clock.now < 120


@pytest.mark.parametrize("death", [{"failed": True, "msg": "MODULE FAILURE\nKilled"}, LOST])
def test_f13_a_module_that_was_killed_is_never_confirmed_in_time(
    monkeypatch: pytest.MonkeyPatch, death: dict[str, Any] | Exception
) -> None:
    change = Changed(monkeypatch, [death, UNDONE])
    assert change.events == ["present", "reset", "confirmed"]
    seen = 10 if isinstance(death, Exception) else 0
    assert change.clock.now - seen > LIMIT, "asked earlier, the question would keep the change"
    assert "it took the change back by itself and is reachable again" in change.told["msg"]
    assert len(change.shown) == 1 and "waiting for the node to go back by itself" in change.shown[0]


def test_f13_a_node_that_was_restarted_meanwhile_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"failed": True, "msg": "no change waits", "way_back": "none"}
    change = Changed(monkeypatch, [ARMED, nothing])
    assert "no change waits there any more" in change.told["msg"]
    refused = Changed(monkeypatch, [ARMED, {"failed": True, "msg": "no sudo", "invocation": {}}])
    assert "(no sudo); it is reachable again, but does not say what became of it." in refused.told["msg"]


def test_a_module_that_was_called_wrongly_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"failed": True, "msg": "Unsupported parameters", "invocation": {}}
    change = Changed(monkeypatch, [wrong])
    assert (change.told, change.clock.now) == (wrong, 0.0)


def test_f13_a_question_that_was_killed_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Changed(monkeypatch, [ARMED, {"failed": True, "msg": "Killed"}, KEPT])
    assert change.told == {**ARMED, "way_back": "kept"}
