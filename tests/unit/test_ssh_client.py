"""How the head logs in to its workers, and what it says when it is not let in."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import ssh_client
from ansible_collections.twinserve.pair.plugins.modules import wire_proof
from fake_programs import Programs
from module_run import run_module

SENTENCE = "head cannot ssh to the worker at 198.51.100.2 as bob: authorise its key and host key"
COPY = {"key": "copy", "user": "bob", "address": "198.51.100.2"}


@pytest.mark.parametrize(
    ("code", "said", "fault"),
    [
        (0, "", None),
        (1, "rrsync: not an rsync command", None),
        (127, "sh: 1: /usr/local/sbin/twinserve-control: not found", None),
        (
            255,
            "bob@198.51.100.2: Permission denied (publickey).",
            f"{SENTENCE} (Permission denied); {ssh_client.CURE}",
        ),
        (
            255,
            "No ED25519 host key is known for 198.51.100.2\nHost key verification failed.",
            f"{SENTENCE} (Host key verification failed); {ssh_client.CURE}",
        ),
        (
            255,
            "ssh: connect to host 198.51.100.2 port 22: Connection refused",
            "head does not reach ssh of the worker at 198.51.100.2 with its copy key: "
            "ssh: connect to host 198.51.100.2 port 22: Connection refused",
        ),
    ],
)
def test_f19_what_a_login_says(code: int, said: str, fault: str | None) -> None:
    assert ssh_client.login_fault("copy", code, said, "bob", "198.51.100.2") == fault


@pytest.mark.parametrize(
    ("code", "said"), [(1, "sudo: a password is required"), (127, "sh: 1: sudo: not found")]
)
def test_f19_the_image_keys_login_says_whether_it_may_load(code: int, said: str) -> None:
    address = "198.51.100.2"
    assert ssh_client.login_fault("image", 0, "", "twinserve", address) is None
    assert ssh_client.login_fault("image", code, said, "twinserve", address) == (
        f"twinserve of the worker at {address} cannot run sudo /usr/bin/docker load ({said}): "
        "images could not be streamed to it; see whether docker is there and sudo reads /etc/sudoers.d"
    )


def test_f19_every_login_is_tried_and_every_refusal_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = Programs(tmp_path, monkeypatch, "ssh")
    programs.answer("ssh", "sh: not found\n", 127)
    control = {"key": "control", "user": "twinserve", "address": "192.0.2.12"}
    answer = run_module(wire_proof, capsys, logins=[control, COPY])
    assert (answer["failed"], answer["changed"]) == (False, False)
    assert [call.split()[-2:] for call in sorted(programs.calls)] == [
        ["twinserve@192.0.2.12", "true"],
        ["bob@198.51.100.2", "true"],
    ]
    programs.answer("ssh", "x@y: Permission denied (publickey).\n", 255)
    message = run_module(wire_proof, capsys, logins=[control, COPY])["msg"].splitlines()
    assert message[1] == f"{SENTENCE} (Permission denied); {ssh_client.CURE}"
    assert len(message) == 2 and "192.0.2.12 as twinserve" in message[0]


def test_a_head_without_ssh_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "openssh-client" in run_module(wire_proof, capsys, logins=[COPY])["msg"]
