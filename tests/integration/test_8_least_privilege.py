"""What units, containers, the user `twinserve` and the head's keys may do, tried on a pair that serves."""

from __future__ import annotations

import json
import re

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import jobs
from lab_pair import Lab, Play
from link_setups import shell
from logins import KEYS, attempt, login, on_head
from under_way import wait_for

# What `systemd-analyze security` makes of them, from 0 to 10: a unit that may do more shows here.
# The first two would have 9.6 without what they are denied.
EXPOSURE = {"twinserve.service": 3.4, "twinserve-rank.service": 2.4, "job.service": 7.3}
UNITS = "/etc/systemd/system"


@pytest.mark.parametrize("unit", EXPOSURE)
def test_the_exposure_of_the_units_does_not_rise(lab: Lab, converged: Play, unit: str) -> None:
    place = UNITS
    if unit == "job.service":
        place, lines = "/run", "\\n".join(("[Service]", "ExecStart=/bin/true", *jobs.HARDENED))
        shell(lab, lab.hosts[0], f"printf '{lines}\\n' >/run/job.service")

    said = shell(lab, lab.hosts[0], f"systemd-analyze security --offline=true --no-pager {place}/{unit}")

    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert found and float(found[1]) <= EXPOSURE[unit], said[-200:]


@pytest.mark.parametrize("unit", ["twinserve", "twinserve-rank"])
def test_what_the_units_are_denied_holds_while_they_run(lab: Lab, converged: Play, unit: str) -> None:
    head = lab.hosts[0]
    pid = shell(lab, head, f"systemctl show -P MainPID {unit}").strip()
    status = dict(re.findall(r"^(\w+):\s*(.*)$", lab.root(head, "cat", f"/proc/{pid}/status"), re.MULTILINE))
    inside = f"nsenter -t {pid} -m"

    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    for path in ("/etc/twinserve/probe", "/usr/local/probe", "/var/lib/twinserve/probe"):
        code, said = attempt(lab, head, f"{inside} touch {path}")
        assert code == 1 and "Read-only file system" in said, (path, code, said)
    assert shell(lab, head, f"{inside} ls -A /root /home").split() == ["/home:", "/root:"]


def test_containers_get_what_the_contract_says_and_no_more(lab: Lab, converged: Play) -> None:
    for host in lab.hosts:
        one = lab.inspect(host)
        given = one["HostConfig"]
        may_write = {mount["Destination"] for mount in one["Mounts"] if mount["RW"]}
        assert given["Privileged"] is False
        assert [name.removeprefix("CAP_") for name in given["CapAdd"]] == ["IPC_LOCK"]
        assert [device["PathOnHost"] for device in given["Devices"]] == ["/dev/infiniband"]
        assert (given["PidMode"], given["UsernsMode"]) == ("", "")
        # Docker itself says `label=disable` with the host's IPC.
        assert not [word for word in given["SecurityOpt"] or [] if "unconfined" in word]
        assert may_write - {"/lab"} == {"/cache"}  # the second is of the lab's own
        weights = "touch /root/.cache/huggingface/hub/probe"
        code, said = attempt(lab, host, f"docker exec glm53-flash-tf {weights}")
        assert code == 1 and "Read-only file system" in said, (code, said)


def test_roots_docker_settings_reach_no_container(lab: Lab, converged: Play) -> None:
    """Docker's client hands a proxy of ~/.docker/config.json on to each container that it makes."""
    head = lab.hosts[0]
    proxy = {"proxies": {"default": {"httpsProxy": "http://me:secret@192.0.2.1:3128"}}}
    shell(lab, head, f"mkdir -p /root/.docker && echo '{json.dumps(proxy)}' >/root/.docker/config.json")
    before = lab.containers()[head]
    try:
        shell(lab, head, "systemctl restart twinserve")
        wait_for(lambda: serving(lab) and lab.containers()[head] not in ("", before), 180)
        env = lab.inspect(head)["Config"]["Env"]
    finally:
        shell(lab, head, "rm -r /root/.docker")

    assert not [one for one in env if "secret" in one]


def serving(lab: Lab) -> bool:
    return bool(json.loads(lab.root(lab.hosts[0], "cat", "/run/twinserve/state.json"))["state"] == "serving")


def test_the_user_of_the_wire_owns_its_login_and_may_do_what_its_keys_may(lab: Lab, converged: Play) -> None:
    for host in lab.hosts:
        owned = shell(lab, host, "find / -xdev -ignore_readdir_race -user twinserve")
        login_files = {"/var/lib/twinserve/.ssh", "/var/lib/twinserve/.ssh/authorized_keys"}
        assert set(owned.split()) <= login_files
        assert shell(lab, host, "id -nG twinserve").split() == ["twinserve"]
    worker, as_user = lab.hosts[1], "runuser -u twinserve -- sudo -n"
    # What is refused below is refused for what it is: the same way leads to what is allowed.
    assert attempt(lab, worker, f"{as_user} /usr/local/sbin/twinserve-rank state")[0] == 0
    for words in (
        "/usr/local/sbin/twinserve-rank run",
        "/usr/local/sbin/twinserve-rank unit-clean",
        "/usr/local/sbin/twinserve-rank logs 1000000",
        "/usr/local/sbin/twinserve-rank logs '5 5'",
        "/usr/local/sbin/twinserve-rank",
        "/usr/bin/docker ps",
        "/usr/bin/docker load --input /etc/shadow",
        "/usr/bin/systemctl stop docker",
        "/bin/sh",
    ):
        code, said = attempt(lab, worker, f"{as_user} {words}")
        refused = "a password is required" in said or "not allowed" in said
        assert code == 1 and refused, (words, code, said)
    # Loader variables and Python's own would make another program of an allowed one.
    env = "PYTHONPATH=/tmp LD_PRELOAD=/tmp/x.so"
    code, said = attempt(lab, worker, f"{as_user} {env} /usr/local/sbin/twinserve-rank state")
    assert code == 1 and "not allowed to set" in said, (code, said)


def test_the_image_key_loads_an_image_and_does_nothing_else(lab: Lab, converged: Play) -> None:
    image = login(lab, f"{KEYS}/image")
    images = lab.root(lab.hosts[1], "docker", "images", "--quiet", "--no-trunc")

    for words in ("id", "sh", "'docker ps'", "/usr/local/sbin/twinserve-control", "'load; id'"):
        code, said = on_head(lab, f"{image} {words}")
        assert "uid=" not in said and "CONTAINER" not in said, (words, said)
        assert said.strip() in ("", "/usr/bin/docker load"), (words, code, said)
    code, said = on_head(lab, f"echo no image | {image.replace('ssh -n ', 'ssh ')}")
    assert code != 0 and lab.root(lab.hosts[1], "docker", "images", "--quiet", "--no-trunc") == images, said
    assert on_head(lab, f"{login(lab, f'{KEYS}/image', more='-tt')} id")[1].count("uid=") == 0
    tunnel = on_head(lab, f"{login(lab, f'{KEYS}/image', more='-W 127.0.0.1:22')} </dev/null")
    assert tunnel[0] == 255 and "SSH-2.0" not in tunnel[1]
    assert on_head(lab, f"{login(lab, f'{KEYS}/image', 'nvidia')} id")[0] == 255
    assert on_head(lab, f"{login(lab, f'{KEYS}/copy', 'nvidia', '-W 127.0.0.1:22')} </dev/null")[0] == 255
