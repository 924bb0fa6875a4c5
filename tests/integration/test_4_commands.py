"""The commands that look: logs.yml and doctor.yml, on a pair that serves."""

from __future__ import annotations

import tarfile
from pathlib import Path

from hosts_state import differences, pair_state
from lab_pair import Lab, Play
from link_setups import said

TOKEN = "hf_" + "aBcD1234" * 4


def archived(folder: Path, host: str) -> dict[str, bytes]:
    """Files of a host's archive, by their path below the host's folder."""
    (path,) = folder.glob(f"*/{host}.tar.gz")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name.partition("/")[2]: file.read() for name, file in files.items() if file}


def test_o08_the_logs_of_both_ranks_come_to_the_controller_without_secrets(
    lab: Lab, converged: Play, tmp_path: Path
) -> None:
    before, cache = pair_state(lab), "/run/twinserve/jobs/twinserve-job-said.log"
    for host in lab.hosts:
        lab.root(host, "sh", "-c", f"mkdir -p /run/twinserve/jobs && echo HF_TOKEN={TOKEN} >{cache}")
    try:
        run = lab.play(
            "playbooks/logs.yml", "-e", f"logs_to={tmp_path}", "-e", f"hf_token={TOKEN}"
        ).succeeded()
    finally:
        for host in lab.hosts:
            lab.root(host, "rm", cache)

    for rank, host in enumerate(lab.hosts):
        found = archived(tmp_path, host)
        assert b"[tensorfold]" in found["rank.log"]
        assert b'"digest"' in found["state/rank.json"]
        assert b"[removed]" in found["jobs/twinserve-job-said.log"]
        assert not [name for name, content in found.items() if TOKEN.encode() in content]
        assert f"rank {rank} | " in run.output
        assert lab.root(host, "sh", "-c", "ls -d /var/tmp/twinserve-diagnosis-* 2>/dev/null; true") == ""
    assert b"serving" in archived(tmp_path, lab.hosts[0])["supervisor.log"]
    assert differences(before, pair_state(lab)) == []


def test_a_dry_run_of_the_logs_brings_nothing(lab: Lab, converged: Play, tmp_path: Path) -> None:
    run = lab.play("playbooks/logs.yml", "--check", "-e", f"logs_to={tmp_path / 'logs'}").succeeded()

    assert "would gather" in run.output
    assert not (tmp_path / "logs").exists()


def test_o06_one_node_of_a_pair_is_not_stopped_alone(lab: Lab, converged: Play) -> None:
    before = lab.containers()
    for host in lab.hosts:
        refused = lab.play("playbooks/stop.yml", "--limit", host).refused()
        assert "what changes a pair acts on all of its ranks" in " ".join(refused.output.split())
    assert lab.containers() == before


def test_the_doctor_finds_nothing_to_mend_on_a_pair_that_serves(lab: Lab, converged: Play) -> None:
    before = pair_state(lab)

    run = lab.play("playbooks/doctor.yml").succeeded()

    assert (run.changed, "to be mended:" in run.output) == (0, False)
    assert differences(before, pair_state(lab)) == []


def test_the_doctor_goes_on_over_settings_that_are_refused(lab: Lab, converged: Play) -> None:
    run = lab.play("playbooks/doctor.yml", "-e", "parallel=99").refused()

    assert "to be mended" in run.output
    assert "parallel" in run.output
    assert "healthy" in run.output


def test_o08_the_doctor_finds_a_known_failure_of_rank_1_with_its_cure(lab: Lab, converged: Play) -> None:
    worker, log = lab.hosts[1], "/var/log/twinserve/20260101-000000-rank1.log.gz"
    line = "2026-01-01T00:00:00+00:00 x[1]: NCCL error 2: unhandled system error"
    lab.root(worker, "sh", "-c", f"mkdir -p /var/log/twinserve && echo '{line}' | gzip >{log}")
    try:
        run = lab.play("playbooks/doctor.yml", "--check").succeeded()
    finally:
        lab.root(worker, "rm", log)

    assert f"{worker}: {line}" in said(run.output)
    assert "set split: false" in said(run.output)
