"""Long work as a transient unit: its states, its log, and what is asked of systemd."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import jobs, progress
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError
from ansible_collections.twinserve.pair.plugins.modules import job
from fake_programs import Programs
from module_run import run_module

UNIT = "twinserve-job-pull-image.service"


def shown(active: str, sub: str, status: int = 0) -> str:
    return (
        f"ActiveState={active}\nSubState={sub}\nExecMainStatus={status}\nExecMainPID=77\n"
        "ExecMainStartTimestamp=Sun 2026-11-29 16:00:00 UTC\n"
    )


RUNNING, DONE = shown("active", "running"), shown("active", "exited")
FAILED, ABSENT = shown("failed", "failed", 1), "ActiveState=inactive\nSubState=dead\nExecMainStatus=0\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(tmp_path, monkeypatch, "systemctl", "systemd-run")
    monkeypatch.setattr(jobs, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(progress, "FOLDER", tmp_path / "progress")
    programs.answer("systemctl_show", ABSENT)
    return programs


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("pull image", UNIT),
        ("copy spark-b Org/Model_X 9eaebb7c", "twinserve-job-copy-spark-b-org-model-x-9eaebb7c.service"),
        ("--odd//", "twinserve-job-odd.service"),
        ("v1.1", "twinserve-job-v1.1.service"),
    ],
)
def test_any_name_becomes_a_unit_name(name: str, unit: str) -> None:
    assert jobs.unit_name(name) == unit


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (RUNNING, "running"),
        (shown("activating", "start"), "running"),
        (shown("deactivating", "stop-sigterm"), "running"),
        (DONE, "done"),
        (FAILED, "failed"),
        (ABSENT, "absent"),
        ("", "absent"),
    ],
)
def test_states(programs: Programs, text: str, status: str) -> None:
    programs.answer("systemctl_show", text)
    assert jobs.read("pull image").status == status


def test_a_state_has_what_people_want_to_know(tmp_path: Path, programs: Programs) -> None:
    programs.answer("systemctl_show", FAILED)
    (tmp_path / "logs").mkdir()
    lines = "".join(f"line {number}\n\n" for number in range(30))
    (tmp_path / f"logs/{UNIT}.log").write_text(lines + "10%\r99%\rno space left\n")
    (tmp_path / "store").mkdir()
    (tmp_path / "store/layer").write_bytes(b"x" * 5000)
    state = jobs.read("pull image", [str(tmp_path / "store"), str(tmp_path / "absent")])
    assert (state.exit_code, state.pid, state.since) == (1, 77, "Sun 2026-11-29 16:00:00 UTC")
    assert state.log[-3:] == ["10%", "99%", "no space left"]
    assert len(state.log) == 25
    assert state.size >= 5000


def test_a_link_to_elsewhere_adds_no_size(tmp_path: Path) -> None:
    big = tmp_path / "elsewhere"
    big.write_bytes(b"x" * 1_000_000)
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched/link").symlink_to(big)
    assert jobs.folder_size(tmp_path / "watched") < 100_000


def test_start_is_detached_and_has_its_own_log(tmp_path: Path, programs: Programs) -> None:
    log = tmp_path / f"logs/{UNIT}.log"
    jobs.start("pull image", ["docker", "pull", "x y"], user="nvidia", env={"B": "2", "A": "1"})
    assert programs.calls[-1].startswith(
        f"systemd-run --quiet --unit={UNIT} --property=RemainAfterExit=yes --property=Type=exec "
    )
    assert programs.calls[-1].endswith(
        f"--property=StandardOutput=truncate:{log} --property=StandardError=inherit "
        f"--setenv=A=1 --setenv=B=2 --setenv=TWINSERVE_PROGRESS={tmp_path}/progress/pull-image.json "
        "--uid=nvidia -- docker pull x y"
    )


def test_what_the_programs_shell_fills_in_passes_systemd_by(programs: Programs) -> None:
    jobs.start("pull image", ["sh", "-c", 'echo "${HOME} $1"', "sh", "$x"])
    assert programs.calls[-1].endswith('-- sh -c echo "$${HOME} $$1" sh $$x')


def test_what_is_secret_is_read_from_a_file_and_not_seen_in_the_unit(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    run_module(job, capsys, name="pull image", argv=["true"], env_file="/run/proxy.env", wait=0)
    call = next(call for call in programs.calls if call.startswith("systemd-run"))
    assert "--property=EnvironmentFile=/run/proxy.env -- true" in call
    run_module(job, capsys, name="pull image", argv=["true"], wait=0)
    starts = [call for call in programs.calls if call.startswith("systemd-run")]
    assert [("EnvironmentFile" in call) for call in starts] == [True, False]


def test_a_unit_gets_the_properties_that_its_job_asks_for(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = ["OOMScoreAdjust=1000", "MemoryMax=6G"]
    run_module(job, capsys, name="pull image", argv=["true"], properties=limits, wait=0)
    call = next(call for call in programs.calls if call.startswith("systemd-run"))
    assert call.endswith("--property=OOMScoreAdjust=1000 --property=MemoryMax=6G -- true")


def test_the_numbers_of_the_jobs_own_program_are_reported(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = {"bytes": 5, "total": 10, "rate": 1.0, "eta": 5.0, "updated": 1.5e9}
    path = jobs.progress_path("pull image")
    progress.note(numbers, str(path))
    programs.answer("systemctl_show", RUNNING)
    answer = run_module(job, capsys, name="pull image", argv=["true"], start=False, wait=0)
    assert answer["progress"] == numbers
    programs.answer("systemctl_show", ABSENT)
    run_module(job, capsys, name="pull image", argv=["true"], wait=0)
    assert not path.exists(), "what an earlier job noted says nothing of a new one"


@pytest.mark.parametrize(
    ("text", "asked"),
    [(DONE, [f"systemctl stop {UNIT}"]), (FAILED, [f"systemctl reset-failed {UNIT}"]), (RUNNING, [])],
)
def test_what_an_earlier_job_left_is_cleared(programs: Programs, text: str, asked: list[str]) -> None:
    programs.answer("systemctl_show", text)
    jobs.collect("pull image")
    assert [call for call in programs.calls if not call.startswith("systemctl show")] == asked


@pytest.mark.parametrize(("text", "verb"), [(DONE, "stop"), (FAILED, "reset-failed")])
def test_two_runs_that_collect_at_once(programs: Programs, text: str, verb: str) -> None:
    answer = programs.folder / "answers/systemctl_show"
    programs.answer("systemctl_show", text)
    programs.answer(f"systemctl_{verb}", "Unit not loaded\n", 5, do=f"echo ActiveState=inactive > {answer}")
    jobs.collect("pull image")
    programs.answer("systemctl_show", text)
    programs.answer(f"systemctl_{verb}", "Access denied\n", 4)
    with pytest.raises(CommandError, match="Access denied"):
        jobs.collect("pull image")


def test_m20_a_running_job_is_attached_to(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.answer("systemctl_show", RUNNING)
    answer = run_module(job, capsys, name="pull image", argv=["docker", "pull", "x"], wait=0)
    assert (answer["attached"], answer["status"]) == (True, "running")
    assert not [call for call in programs.calls if call.startswith("systemd-run")]


def test_m12_a_running_job_of_something_else_is_neither_followed_nor_doubled(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {"name": "download o/n", "argv": ["true"], "wait": 0}
    run_module(job, capsys, **given, what="1111")
    start = next(call for call in programs.calls if call.startswith("systemd-run"))
    assert "--description=1111" in start
    programs.answer("systemctl_show", f"{RUNNING}Description=1111\n")
    assert run_module(job, capsys, **given, what="1111")["attached"]
    assert run_module(job, capsys, **given)["attached"]
    assert run_module(job, capsys, **given, what="2222")["msg"] == (
        "download o/n of 1111 runs already (pid 77, since Sun 2026-11-29 16:00:00 UTC): let it end, or "
        "end it with: systemctl stop twinserve-job-download-o-n.service"
    )


def test_two_runs_that_start_at_once_follow_one_job(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other run's job appears between our look and our start; its log stays."""
    jobs.LOGS.mkdir()
    log = jobs.LOGS / f"{UNIT}.log"
    log.write_text("of the other's job\n")
    answer = programs.folder / "answers/systemctl_show"
    programs.answer("systemd-run", "Unit was already loaded\n", 1, do=f"echo ActiveState=active > {answer}")
    found = run_module(job, capsys, name="pull image", argv=["true"], wait=0)
    assert (found["failed"], found["attached"], found["status"]) == (False, True, "running")
    assert found["log"] == ["of the other's job"]
    programs.answer("systemctl_show", ABSENT)
    programs.answer("systemd-run", "no such file\n", 1)
    assert "no such file" in run_module(job, capsys, name="pull image", argv=["true"], wait=0)["msg"]


def test_m20_the_follow_up_calls_start_nothing(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run_module(job, capsys, name="pull image", argv=["true"], start=False, wait=0)
    assert (answer["status"], answer["attached"]) == ("absent", False)
    assert not [call for call in programs.calls if call.startswith("systemd-run")]


def test_m10_a_job_that_stands_still_can_be_stopped_with_all_that_it_started(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    programs.answer("systemctl_show", RUNNING)
    assert not run_module(job, capsys, name="pull image", argv=["true"], stop=True, start=False, wait=0)[
        "failed"
    ]
    assert f"systemctl stop {UNIT}" in programs.calls
    programs.answer("systemctl_show", ABSENT)
    before = programs.calls.count(f"systemctl stop {UNIT}")
    run_module(job, capsys, name="pull image", argv=["true"], stop=True, start=False, wait=0)
    assert programs.calls.count(f"systemctl stop {UNIT}") == before


@pytest.mark.parametrize(("after", "status"), [(DONE, "done"), (FAILED, "failed")])
def test_a_new_job_is_started_followed_and_cleared(
    tmp_path: Path, programs: Programs, capsys: pytest.CaptureFixture[str], after: str, status: str
) -> None:
    (tmp_path / "after").write_text(after)
    swap = f'cp "{tmp_path}/after" "$NODE/answers/systemctl_show"'
    programs.answer("systemd-run", do=swap)
    answer = run_module(job, capsys, name="pull image", argv=["true"], env={"N": 1}, wait=5)
    assert (answer["failed"], answer["changed"], answer["status"]) == (False, True, status)
    assert "--setenv=N=1" in next(call for call in programs.calls if call.startswith("systemd-run"))
    assert programs.calls[-1].split()[1] in ("stop", "reset-failed")


def test_a_job_that_cannot_start_says_why(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    programs.answer("systemd-run", "Failed to start transient service unit: no such user\n", 1)
    answer = run_module(job, capsys, name="pull image", argv=["true"], user="nobody-there")
    assert answer["failed"]
    assert "pull image: systemd-run" in answer["msg"]
    assert "no such user" in answer["msg"]


def test_check_mode_asks_nothing(programs: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_module(job, capsys, check=True, name="pull image", argv=["true"])["changed"]
    assert programs.calls == []


def test_a_call_waits_for_the_end_and_not_longer_than_asked(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.answer("systemctl_show", RUNNING)
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            programs.answer("systemctl_show", DONE)

    monkeypatch.setattr(jobs, "time", SimpleNamespace(sleep=nap, monotonic=lambda: 0.0))
    assert jobs.wait("pull image", 600).status == "done"
    assert len(naps) == 3
    programs.answer("systemctl_show", RUNNING)
    assert jobs.wait("pull image", 0).status == "running"
    assert len(naps) == 3


def test_the_store_is_measured_once_a_call(
    tmp_path: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.answer("systemctl_show", RUNNING)
    measured: list[Path] = []

    def measure(path: Path) -> int:
        measured.append(path)
        return 0

    monkeypatch.setattr(jobs, "folder_size", measure)
    jobs.wait("pull image", 0.5, [os.fspath(tmp_path)])
    assert measured == [tmp_path]


def test_f19_what_a_failure_is_known_to_mean_is_told(
    programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    meanings = {"no such thing": "x", "Host key .* failed": "authorise it"}
    jobs.LOGS.mkdir()
    (jobs.LOGS / UNIT).with_suffix(".service.log").write_text("Host key verification failed.\nrsync error\n")
    asked: dict[str, Any] = {"name": "pull image", "argv": ["true"], "start": False, "wait": 0}
    asked["meanings"] = meanings
    programs.answer("systemctl_show", FAILED)
    assert run_module(job, capsys, **asked)["meaning"] == "authorise it"
    assert run_module(job, capsys, **{**asked, "meanings": {}})["meaning"] == ""
    programs.answer("systemctl_show", RUNNING)
    assert run_module(job, capsys, **asked)["meaning"] == ""
