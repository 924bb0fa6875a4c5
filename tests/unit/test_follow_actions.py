"""Actions that follow long work: what people read meanwhile, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.twinserve.pair.plugins.action import job, pair_service
from ansible_collections.twinserve.pair.plugins.plugin_utils import patience

Answers = list[dict[str, Any] | Exception]


class Clock:
    """Time that passes while somebody sleeps, or is asked something."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Followed:
    """An action with the answers of its module; the last answer repeats."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, plugin: Any, answers: Answers, **args: Any) -> None:
        self.clock, self.shown, self.asked = Clock(), list[str](), list[dict[str, Any]]()
        self.answers = answers
        for module in (plugin, patience):
            if hasattr(module, "time"):  # a start is waited for on the node alone
                monkeypatch.setattr(module, "time", self.clock)
        monkeypatch.setattr(plugin, "display", SimpleNamespace(display=self.shown.append))
        monkeypatch.setattr(plugin.ActionBase, "run", lambda *_: {})
        self.task = SimpleNamespace(args=args, check_mode=False)
        self.action = plugin.ActionModule(self.task, None, None, None, None, None)
        monkeypatch.setattr(self.action, "_execute_module", self._answer)

    def _answer(self, module_args: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.asked.append(module_args)
        self.clock.now += float(module_args.get("wait", 5))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    def run(self) -> dict[str, Any]:
        found: dict[str, Any] = self.action.run(None, {"inventory_hostname": "spark-a"})
        return found


Follow = Callable[..., Followed]


@pytest.fixture
def follow(monkeypatch: pytest.MonkeyPatch) -> Follow:
    return lambda plugin, answers, **args: Followed(monkeypatch, plugin, answers, **args)


LOST = AnsibleConnectionFailure("Connection timed out")
DONE = {"status": "done", "changed": True, "log": ["all"], "size": 5}
PULL: dict[str, Any] = {"name": "pull", "title": "pull of the image", "argv": ["x"], "watch": ["/s"]}


def running(size: int, *log: str, **more: Any) -> dict[str, Any]:
    return {"status": "running", "changed": True, "size": size, "log": list(log), **more}


def test_m20_a_job_is_started_once_and_then_only_asked_for(follow: Follow) -> None:
    pull = follow(job, [running(1), running(2), DONE], **PULL)
    assert pull.run()["status"] == "done"
    assert [(asked.get("start", True), asked.get("stop", False)) for asked in pull.asked] == [
        (True, False),
        (False, False),
        (False, False),
    ]
    assert pull.shown == []


def test_m20_progress_is_shown_with_size_and_time(follow: Follow) -> None:
    pull = follow(job, [running(n * 10**9, f"layer {n}") for n in range(4)] + [DONE], **PULL, total_gb=25)
    pull.run()
    assert pull.shown == ["    spark-a: pull of the image: 2.0 of 25.0 GB, 20 s  layer 2"]


def test_m20_numbers_of_the_node_are_shown_with_rate_and_time_to_go(follow: Follow) -> None:
    numbers = [{"bytes": n * 10**9, "total": 25 * 10**9, "rate": 1e8, "eta": 230.0 - n} for n in range(4)]
    fetch = follow(job, [running(0, progress=one) for one in numbers] + [DONE], **PULL)
    fetch.run()
    assert fetch.shown == [
        f"    spark-a: pull of the image: {done}, 100 MB/s, 4 min left"
        for done in ("0.0 of 25.0 GB (0%)", "2.0 of 25.0 GB (8%)")
    ]


def test_m10_the_nodes_own_count_is_progress(follow: Follow) -> None:
    counts: Answers = [running(0, progress={"bytes": n, "total": None}) for n in range(30)]
    assert follow(job, [*counts, DONE], **PULL, stall_seconds=15).run()["status"] == "done"


def report(done: int, *warnings: str) -> dict[str, Any]:
    eta = (176 - done) / 2.9
    numbers = {"bytes": done * 10**9, "total": 176 * 10**9, "rate": 2.9e9, "eta": eta}
    return {**numbers, "how": "on 2 rails", "warnings": list(warnings)}


def test_what_the_work_reports_is_shown_instead(follow: Follow) -> None:
    copy = {"name": "copy", "title": "copy of o/n", "argv": ["x"]}
    answers: Answers = [running(0, "words", progress=report(60 + n)) for n in range(4)]
    followed = follow(job, [*answers, DONE], **copy)
    followed.run()
    assert followed.shown == [
        "    spark-a: copy of o/n: 60.0 of 176.0 GB (34%), 2.9 GB/s on 2 rails, 40 s left",
        "    spark-a: copy of o/n: 62.0 of 176.0 GB (35%), 2.9 GB/s on 2 rails, 39 s left",
    ]


def test_m22_a_warning_of_the_work_is_shown_once_and_also_of_its_end(follow: Follow) -> None:
    lan = "copying over the LAN (192.0.2.12): ssh to 198.51.100.2 failed"
    answers: Answers = [running(0, progress=report(1)), running(0, progress=report(2, lan))]
    followed = follow(job, [*answers, running(0, progress=report(3, lan)), DONE], **PULL)
    followed.run()
    assert [line for line in followed.shown if "warn" in line] == [f"    spark-a: warn {lan}"]
    quick = follow(job, [{**DONE, "progress": report(176, "a rail is lost")}], **PULL)
    quick.run()
    assert quick.shown == ["    spark-a: warn a rail is lost"]


def test_a_rate_that_changes_is_no_progress(follow: Follow) -> None:
    stuck: Answers = [running(0, "same", progress={**report(1), "rate": n}) for n in range(30)]
    assert follow(job, [*stuck, DONE], **PULL, stall_seconds=15).run()["msg"].endswith("no progress for 15 s")


def test_m20_a_lost_session_costs_a_question_and_not_the_work(follow: Follow) -> None:
    pull = follow(job, [running(1), LOST, LOST, DONE], **PULL)
    assert pull.run()["status"] == "done"


def test_m20_a_session_that_is_lost_at_the_start_costs_no_more(follow: Follow) -> None:
    pull = follow(job, [LOST, running(1, attached=True, since="16:00", pid=77), DONE], **PULL)
    assert pull.run()["status"] == "done"
    assert [asked.get("start", True) for asked in pull.asked] == [True, True, False]


def test_a_node_that_stays_away_is_given_up(follow: Follow) -> None:
    pull = follow(job, [running(1), LOST], **PULL)
    with pytest.raises(AnsibleConnectionFailure):
        pull.run()
    assert len(pull.asked) == 7


def test_m20_a_running_job_is_announced(follow: Follow) -> None:
    attached = running(1, attached=True, since="16:00", pid=77)
    pull = follow(job, [attached, DONE], **PULL)
    pull.run()
    assert pull.shown == ["    spark-a: pull of the image already running since 16:00 (pid 77): waiting"]


def test_m10_a_job_that_stands_still_is_stopped(follow: Follow) -> None:
    pull = follow(job, [running(1, "waiting for lock x")], **PULL, stall_seconds=60)
    answer = pull.run()
    assert answer["failed"]
    assert answer["msg"] == "pull of the image was stopped: no progress for 60 s"
    assert answer["log"] == ["waiting for lock x", "no progress for 60 s"]
    assert (pull.asked[-1]["stop"], pull.asked[-1]["start"]) == (True, False)
    assert 60 < pull.clock.now < 90


@pytest.mark.parametrize("moves", [{"size": True}, {"log": True}])
def test_bytes_or_words_are_progress(follow: Follow, moves: dict[str, bool]) -> None:
    answers: Answers = [
        running(n if "size" in moves else 0, f"line {n}" if "log" in moves else "same") for n in range(30)
    ]
    assert follow(job, [*answers, DONE], **PULL, stall_seconds=15).run()["status"] == "done"


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (
            {"status": "failed", "exit_code": 1, "log": ["x", "no space left"]},
            "failed (exit 1): no space left",
        ),
        ({"status": "failed", "exit_code": 1, "log": []}, "failed (exit 1): no output"),
        (
            {"status": "failed", "exit_code": 255, "log": ["unexplained"], "meaning": "authorise it"},
            "failed (exit 255): authorise it",
        ),
        ({"status": "running", "failed": True, "msg": "no systemd"}, "cannot be followed: no systemd"),
    ],
)
def test_a_job_that_ends_badly_says_how(follow: Follow, last: dict[str, Any], said: str) -> None:
    answer = follow(job, [running(1), last], **PULL).run()
    assert (answer["failed"], answer["msg"]) == (True, f"pull of the image {said}")


def test_a_job_whose_end_another_run_took_is_over(follow: Follow) -> None:
    pull = follow(
        job, [running(1, attached=True, since="16:00", pid=77), {"status": "absent", "log": []}], **PULL
    )
    assert not pull.run().get("failed")
    assert pull.shown[-1].endswith("is over; another run took its result, or the node restarted")


def test_m06_a_check_of_which_nobody_saw_the_end_does_not_pass(follow: Follow) -> None:
    over = [running(1, attached=True, since="16:00", pid=77), {"status": "absent", "log": []}]
    answer = follow(job, over, **PULL, must_end=True).run()
    assert answer["failed"]
    assert answer["msg"] == (
        "pull of the image is over; another run took its result, or the node restarted: run this again"
    )


@pytest.mark.parametrize("plugin", [job, pair_service])
def test_check_mode_and_failures_are_passed_on(follow: Follow, plugin: Any) -> None:
    predicted = follow(plugin, [{"changed": True}], **PULL)
    predicted.task.check_mode = True
    assert predicted.run() == {"changed": True}
    assert follow(plugin, [{"failed": True, "msg": "no"}], **PULL).run()["msg"] == "no"


def pair(state: str, detail: str, settled: bool = False, **more: Any) -> dict[str, Any]:
    return {"pair": {"state": state, "detail": detail}, "settled": settled, "changed": False, **more}


def test_a_start_is_followed_and_each_step_is_told_once(follow: Follow) -> None:
    answers: Answers = [
        {"pair": {}, "settled": False, "changed": True, "diff": {"before": "a", "after": "b"}},
        pair("loading", "loading: 10 GiB"),
        pair("loading", "loading: 10 GiB"),
        LOST,
        pair("smoke", "asking"),
        pair("serving", "serving", settled=True),
    ]
    start = follow(pair_service, answers, state="started", digest="new")
    answer = start.run()
    assert start.shown == [
        f"    spark-a: {text}" for text in ("waiting for the supervisor", "loading: 10 GiB", "asking")
    ]
    assert (answer["changed"], answer["diff"], answer.get("failed")) == (
        True,
        {"before": "a", "after": "b"},
        None,
    )
    assert {asked["state"] for asked in start.asked[1:]} == {"followed"}
    assert start.clock.now == 6 * 5 + 5, "each call waits on the node; only a lost one is put off"


def test_a_pair_that_is_down_fails_with_the_reason(follow: Follow) -> None:
    down = pair("down", "rank 1 exited (code 1) before the server was ready", settled=True)
    answer = follow(pair_service, [pair("loading", "x"), down], state="started").run()
    assert answer["failed"]
    assert answer["msg"] == (
        "the pair is down: rank 1 exited (code 1) before the server was ready."
        " journalctl -u twinserve on the head has both ranks' last lines"
    )
    assert "pair" not in answer


def test_a_dead_supervisor_ends_the_waiting(follow: Follow) -> None:
    gone = {"failed": True, "msg": "twinserve.service is failed: no pair.json"}
    answer = follow(pair_service, [pair("loading", "x", changed=True), gone], state="started").run()
    assert (answer["failed"], answer["msg"]) == (True, gone["msg"])


def test_a_stop_is_not_followed(follow: Follow) -> None:
    stop = follow(pair_service, [{"changed": True, "pair": {}, "settled": False}], state="stopped")
    assert stop.run()["changed"]
    assert len(stop.asked) == 1
