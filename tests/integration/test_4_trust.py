"""Keys between the nodes: what each may do, how they are replaced under a serving pair, what repairs them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab_pair import ROOT, Lab, Play
from logins import KEYS, login, on_head, worker_address

CACHE = "/home/nvidia/.cache/huggingface"
# Writes one line a login to /tmp/logins, its exit code, until it is told to stop.
WATCH = """rm -f /tmp/stop /tmp/logins
until [ -e /tmp/stop ]; do {login} state >/dev/null; echo $? >>/tmp/logins; done"""


@contextmanager
def watched(lab: Lab) -> Iterator[list[str]]:
    """Log in without a pause meanwhile; the exit codes are there afterwards."""
    codes: list[str] = []
    script = WATCH.format(login=login(lab))
    argv = [
        str(ROOT / "lab/lab"),
        "exec",
        "--name",
        lab.name,
        lab.hosts[0],
        "timeout",
        "120",
        "sh",
        "-c",
        script,
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as watcher:
        try:
            yield codes
        finally:
            lab.root(lab.hosts[0], "touch", "/tmp/stop")
            watcher.wait(timeout=30)
    codes += lab.root(lab.hosts[0], "cat", "/tmp/logins").split()


def test_the_control_key_gives_no_shell_no_terminal_and_no_tunnel(lab: Lab, converged: Play) -> None:
    control = login(lab)

    assert on_head(lab, f"{control} state")[0] == 0
    for words in ("id", "'state; id'", "'logs 10 20'", "'start -x'", "sh", "/usr/bin/rsync", ""):
        code, said = on_head(lab, f"{control} {words}")
        assert (code, "uid=" in said) == (126, False), (words, said)
    code, said = on_head(lab, f"{login(lab, more='-tt')} id")
    assert (code, "PTY allocation request failed" in said) == (255, True), said
    refused = on_head(lab, f"{login(lab, more='-W 127.0.0.1:22')} </dev/null")
    assert refused[0] == 255 and "stdio forwarding failed" in refused[1]
    assert "SSH-2.0" not in refused[1]
    assert on_head(lab, f"{login(lab, more='-s')} sftp")[0] == 126
    forwarded = login(lab, more="-o ExitOnForwardFailure=yes -R 40999:127.0.0.1:22")
    assert on_head(lab, f"timeout 10 {forwarded} state")[0] == 255
    assert on_head(lab, f"{login(lab, user='nvidia')} state")[0] == 255, (
        "the other user's door is the other key's"
    )


def test_m21_the_copy_key_writes_below_the_cache_and_does_nothing_else(lab: Lab, converged: Play) -> None:
    copy = login(lab, f"{KEYS}/copy", "nvidia")
    shell, target = copy.rsplit(" ", 1)
    rsync = f"rsync -rR -e {shlex.quote(shell.replace('ssh -n ', 'ssh '))}"
    head, worker = lab.hosts
    lab.root(head, "sh", "-c", "mkdir -p /tmp/probe && cd /tmp/probe && echo probe >probe.txt")

    allowed = on_head(lab, f"cd /tmp/probe && {rsync} probe.txt {target}:hub/")
    above = on_head(lab, f"cd /tmp/probe && {rsync} probe.txt {target}:../../")
    absolute = on_head(lab, f"cd /tmp/probe && {rsync} probe.txt {target}:/tmp/")
    reading = on_head(lab, f"cd /tmp/probe && {rsync} {target}:hub/probe.txt out/")
    commands = [on_head(lab, f"{copy} {words}") for words in ("id", "sh", "'rsync --version; id'", "")]

    assert allowed[0] == 0, allowed
    assert lab.root(worker, "cat", f"{CACHE}/hub/probe.txt") == "probe\n"
    assert above[0] != 0 and reading[0] != 0, (above, reading)
    for path in ("/home/nvidia/probe.txt", "/home/nvidia/.ssh/probe.txt", "/tmp/probe.txt"):
        assert not lab.node(worker).file(path).exists, (path, absolute)
    assert not lab.node(head).file("/tmp/probe/out").exists
    assert all(code != 0 and "uid=" not in said for code, said in commands), commands
    assert on_head(lab, f"{login(lab, f'{KEYS}/copy', 'nvidia', '-tt')} id")[0] != 0
    assert on_head(lab, f"{login(lab, f'{KEYS}/copy')} state")[0] == 255
    lab.root(worker, "sh", "-c", f"rm -rf {CACHE}/hub/probe.txt {CACHE}/tmp")
    lab.root(head, "rm", "-rf", "/tmp/probe")


def test_keys_are_replaced_under_a_pair_that_serves(lab: Lab, converged: Play) -> None:
    head, worker = lab.hosts
    containers = lab.containers()
    before = lab.root(head, "sh", "-c", f"cat {KEYS}/*.pub")
    lab.root(head, "cp", "-a", KEYS, "/root/old-keys")
    foreign = lab.root(worker, "grep", "-v", "twinserve-copy", "/home/nvidia/.ssh/authorized_keys")

    with watched(lab) as codes:
        lab.play("playbooks/fabric.yml", "-e", "rotate_keys=true").succeeded()

    assert len(codes) > 10 and set(codes) == {"0"}, codes
    after = lab.root(head, "sh", "-c", f"cat {KEYS}/*.pub")
    assert not set(before.split()[1::3]) & set(after.split()[1::3])
    assert sorted(lab.root(head, "ls", KEYS).split()) == sorted(
        f"{name}{half}" for name in ("control", "copy", "image") for half in ("", ".pub")
    )
    assert on_head(lab, f"{login(lab, '/root/old-keys/control')} state")[0] == 255
    assert on_head(lab, login(lab, "/root/old-keys/copy", "nvidia"))[0] == 255
    assert lab.root(worker, "grep", "-v", "twinserve-copy", "/home/nvidia/.ssh/authorized_keys") == foreign
    assert lab.containers() == containers
    assert "OK" in lab.chat("Reply with OK.")
    assert lab.play("playbooks/fabric.yml").succeeded().changed == 0
    lab.root(head, "rm", "-rf", "/root/old-keys")


def test_f19_a_reinstalled_worker_and_a_head_without_keys_are_repaired(lab: Lab, converged: Play) -> None:
    """At first the worker lets nobody in either: the run says so, and the next one repairs."""
    head, worker = lab.hosts
    containers, address = lab.containers(), worker_address(lab)
    with_new_host_key(lab)
    lab.root(head, "rm", "-r", KEYS)
    deny = "echo 'DenyUsers twinserve' >/etc/ssh/sshd_config.d/deny.conf; systemctl reload ssh"
    lab.root(worker, "sh", "-c", deny)

    refused = lab.play("playbooks/fabric.yml").refused()

    sentence = f"head cannot ssh to the worker at {address} as twinserve: authorise its key and host key"
    assert sentence in " ".join(refused.output.split())
    lab.root(worker, "sh", "-c", "rm /etc/ssh/sshd_config.d/deny.conf; systemctl reload ssh")
    lab.play("playbooks/fabric.yml").succeeded()
    assert on_head(lab, f"{login(lab)} state")[0] == 0
    for path, count in (("/var/lib/twinserve", "2"), ("/home/nvidia", "1")):
        ours = lab.root(
            worker, "grep", "-cE", "^restrict.* twinserve-[a-z]+$", f"{path}/.ssh/authorized_keys"
        )
        assert ours.strip() == count, "lines of the lost keys went"
    assert lab.containers() == containers


def with_new_host_key(lab: Lab) -> None:
    """What a reinstalled worker is to others; its owner puts the controller's own file right."""
    worker, file = lab.hosts[1], "/etc/ssh/ssh_host_ed25519_key"
    old = lab.root(worker, "cat", f"{file}.pub").split()[1]
    lab.root(worker, "sh", "-c", f"rm {file} {file}.pub; ssh-keygen -q -A; systemctl reload ssh")
    new = lab.root(worker, "cat", f"{file}.pub").split()[1]
    known = Path(lab.folder, "known_hosts")
    known.write_text(known.read_text().replace(old, new))
