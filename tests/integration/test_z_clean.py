"""The end of the story: clean.yml lists, keeps what nobody gave away, and leaves nothing else of ours."""

from __future__ import annotations

import pytest
from hosts_state import differences, pair_state
from lab_pair import Lab, Play
from link_setups import said
from under_way import running

OURS = r"""
for place in /etc/twinserve /usr/local/lib/twinserve /var/lib/twinserve /var/log/twinserve /run/twinserve \
  /usr/local/sbin/twinserve* /etc/sudoers.d/twinserve* /etc/exports.d/twinserve* /etc/netplan/*twinserve* \
  /etc/systemd/system/twinserve*
do if [ -e "$place" ]; then echo "$place"; fi; done
systemctl list-units --all --plain --no-legend 'twinserve*'
getent passwd | grep ^twinserve:
grep -sl ' twinserve-' /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys
exit 0
"""


def test_a_pair_that_serves_is_listed_and_not_cleared(lab: Lab, converged: Play) -> None:
    lab.play("site.yml").succeeded()
    before = pair_state(lab)

    listed = lab.play("playbooks/clean.yml", "--check").succeeded()
    refused = lab.play("playbooks/clean.yml", "-e", "clean_weights=true").refused()

    for text in ("/etc/twinserve", "weights", "images", "models--"):
        assert text in listed.output
    assert "run playbooks/stop.yml first" in said(refused.output)
    assert differences(before, pair_state(lab)) == []


def test_a_dry_run_of_a_stop_says_what_the_stop_then_does(lab: Lab, converged: Play) -> None:
    before = pair_state(lab)
    listed = lab.play("playbooks/stop.yml", "--check", "--diff").succeeded()
    assert differences(before, pair_state(lab)) == []

    done = lab.play("playbooks/stop.yml").succeeded()

    assert "+pair: stopped" in listed.output
    assert listed.changed == done.changed == 1
    assert lab.play("playbooks/stop.yml", "--check").succeeded().changed == 0


def test_a_dry_run_on_a_stopped_pair_lists_and_removes_nothing(lab: Lab, converged: Play) -> None:
    lab.play("playbooks/stop.yml").succeeded()
    before = pair_state(lab)

    listed = lab.play("playbooks/clean.yml", "--check", "-e", "clean_weights=true").succeeded()

    for text in ("/etc/twinserve", "models--"):
        assert text in listed.output
    assert differences(before, pair_state(lab)) == []


def test_a_job_on_one_node_keeps_the_whole_pair(lab: Lab, converged: Play) -> None:
    lab.play("playbooks/stop.yml").succeeded()
    before, worker = pair_state(lab), lab.hosts[1]
    lab.root(worker, "systemd-run", "--quiet", "--unit=twinserve-job-said", "sleep", "600")
    try:
        refused = lab.play("playbooks/clean.yml", "-e", "clean_weights=true").refused()
    finally:
        lab.root(worker, "systemctl", "stop", "twinserve-job-said")

    assert f"{worker}: twinserve-job-said.service runs: wait for it" in said(refused.output)
    assert differences(before, pair_state(lab)) == []


def test_what_nobody_gave_away_stays_and_all_else_of_ours_goes(lab: Lab, converged: Play) -> None:
    lab.play("playbooks/stop.yml").succeeded()
    images = {host: lab.root(host, "docker", "images", "--quiet", "--no-trunc") for host in lab.hosts}

    # Nobody is there to answer.
    with running(lab, "playbooks/clean.yml", "-e", "clean_caches=true") as play:
        run = play.end().succeeded()

    assert "keeps:" in run.output
    for host in lab.hosts:
        assert lab.root(host, "sh", "-c", OURS) == ""
        assert lab.root(host, "docker", "images", "--quiet", "--no-trunc") == images[host]
        assert "models--" in lab.root(host, "sh", "-c", "ls /home/*/.cache/huggingface/hub")
    with running(lab, "playbooks/clean.yml") as play:
        assert play.end().succeeded().changed == 0


@pytest.mark.slow
def test_a_pair_can_be_deployed_again_and_cleared_with_all_it_has(lab: Lab, converged: Play) -> None:
    lab.play("site.yml").succeeded()
    lab.play("playbooks/stop.yml").succeeded()

    yes = [f"-eclean_{kind}=true" for kind in ("weights", "images", "caches")]
    lab.play("playbooks/clean.yml", *yes).succeeded()

    for host in lab.hosts:
        assert lab.root(host, "sh", "-c", OURS) == ""
        assert lab.root(host, "docker", "images", "--quiet") == ""
        assert "models--" not in lab.root(host, "sh", "-c", "ls /home/*/.cache/huggingface/hub; true")
