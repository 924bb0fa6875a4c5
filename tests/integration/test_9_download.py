"""The download on the head: one job for all who ask, what the hub refuses, what must not be seen of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hub_model import FAST, LAST, MIB, NONE, Model, fresh_model, users_client
from lab_pair import Lab, Play
from under_way import one_line, running, wait_for

PLAY = "playbooks/model.yml"


@pytest.fixture(scope="module")
def pair(lab: Lab, converged: Play) -> Lab:
    """The pair, stopped: what is broken here is not its business."""
    lab.play("playbooks/stop.yml").succeeded()
    return lab


@pytest.fixture
def model(pair: Lab) -> Iterator[Model]:
    """A model that only the hub has."""
    with fresh_model(pair) as model:
        yield model


def test_m20_a_killed_controller_stops_nothing_and_the_next_two_attach(model: Model) -> None:
    model.serve(slow=NONE, only=[LAST])
    with running(model.lab, PLAY, *model.words) as play:
        wait_for(model.in_the_middle)
        play.kill()

    with running(model.lab, PLAY, *model.words) as first, running(model.lab, PLAY, *model.words) as second:
        attached = f"{model.lab.hosts[0]}: {model.name}: download already running since"
        wait_for(lambda: first.said(attached) and second.said(attached))
        assert len(model.jobs()) == 1
        model.serve()
        for one in (first, second):
            one.end().succeeded()

    assert model.is_right()
    assert set(model.fetched().values()) == {1}


def test_m20_two_controllers_that_begin_at_once_share_one_job(model: Model) -> None:
    with running(model.lab, PLAY, *model.words) as first, running(model.lab, PLAY, *model.words) as second:
        for one in (first, second):
            one.end().succeeded()

    assert model.is_right()
    assert set(model.fetched().values()) == {1}


def test_m06_wrong_bytes_from_the_hub_reach_no_worker(model: Model) -> None:
    head, worker = model.lab.hosts
    model.serve(corrupt=True, only=[LAST])

    run = model.lab.play(PLAY, *model.words, "-e", "model_verify=sha256").refused()

    path = model.lab.root(head, "readlink", "-f", f"{model.folder}/snapshots/{model.revision}/{LAST}").strip()
    assert f"{head}: {LAST} sha256 differs: remove {path} and run again" in one_line(run.output)
    assert model.lab.root(worker, "find", f"{model.folder}", "-name", "*.safetensors") == ""
    model.lab.root(head, "rm", path)
    model.serve()
    model.lab.play(PLAY, *model.words, "-e", "model_verify=sha256").succeeded()
    assert model.is_right()
    assert {model.fetched()[name] for name in FAST} == {1}


def test_m12_another_pin_brings_only_what_is_new(model: Model) -> None:
    model.lab.play(PLAY, *model.words).succeeded()
    later = Model(model.lab, model.name, "e" * 40)
    later.publish({LAST: MIB})

    refused = model.lab.play(PLAY, *later.words, "-e", "prepare=never").refused()
    later.lab.play(PLAY, *later.words).succeeded()

    assert f"has {model.revision} of {model.name}, and not {later.revision}" in one_line(refused.output)
    assert later.is_right()
    assert set(later.fetched()) == {LAST, "config.json"}


def test_m08_each_refusal_of_the_hub_has_its_text_before_anything_is_done(
    model: Model, tmp_path: Path
) -> None:
    token = tmp_path / "token.yml"
    token.write_text("hf_token: hf_not_for_this\n")
    with_token = ("-e", f"@{token}")

    def refusal(*words: str) -> str:
        run = model.lab.play("playbooks/preflight.yml", *model.words, *words).refused()
        assert run.changed == 0
        return one_line(run.output)

    model.serve(gated=True)
    assert f"{model.name} needs a token: set hf_token" in refusal()
    model.serve(error={"status": 401})
    assert "Hugging Face does not accept the token (hf_token)" in refusal(*with_token)
    model.serve(gated="denied")
    terms = f"the token's account has not accepted the terms of {model.name} (or lacks gated read access)"
    assert terms in refusal(*with_token)
    model.serve()
    absent = f"no {model.name} at revision {'f' * 40} (or it is private, and not for the account of hf_token)"
    assert absent in refusal("-e", f"model_revision={'f' * 40}")
    model.lab.verb("service", "hub", "off")
    assert "no answer from http://" in refusal()
    assert not model.begun()


# Where a secret could lie on a node: what processes are told, units, containers, logs, files.
LOOK = """
secret=$1
grep -ls -- "$secret" /proc/[0-9]*/cmdline /proc/[0-9]*/environ
{ systemctl show 'twinserve-job-*'; journalctl --no-pager; docker inspect $(docker ps -aq); } 2>&1 |
  grep -- "$secret"
grep -rls -- "$secret" /run /etc /home /root /tmp /var/tmp /var/lib/twinserve /var/log
true
"""


@pytest.mark.parametrize("client", ["image", "user"])
def test_the_token_is_in_one_file_of_the_download_and_nowhere_else(
    model: Model, tmp_path: Path, client: str
) -> None:
    token, given = "hf_Nm3kQ9vT7sX2", tmp_path / "token.yml"
    given.write_text(f"hf_token: {token}\n")
    model.serve(gated=True, slow=NONE, only=[LAST])
    # The words are put together on the node, so that those of the search are not found.
    look = ("sh", "-c", LOOK.replace("$1", f"$(printf %s%s {token[:7]} {token[7:]})"))

    with (
        users_client(model.lab) if client == "user" else nullcontext(),
        running(model.lab, PLAY, *model.words, "-e", f"@{given}", "-vvv", "--diff") as play,
    ):
        wait_for(model.in_the_middle)
        meanwhile = [model.lab.root(host, *look) for host in model.lab.hosts]
        model.serve(gated=True)
        run = play.end()

    run.succeeded()
    assert meanwhile == ["/run/twinserve.models--test--weights.hf-token\n", ""]
    assert [model.lab.root(host, *look) for host in model.lab.hosts] == ["", ""]
    assert token not in run.output
    assert model.is_right()
    log = (model.lab.folder / "logs/hub-requests.log").read_text().splitlines()
    asked = [one for one in map(json.loads, log) if "/resolve/" in one["path"]]
    assert asked and all(one["with_token"] for one in asked)
