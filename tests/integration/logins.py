"""The head's keys as whoever had them might use them."""

from __future__ import annotations

import json

from lab_pair import Lab

KEYS = "/etc/twinserve/keys"
# As the supervisor logs in, but always anew.
LOGIN = (
    "ssh -n -F none -o IdentityFile={key} -o IdentityFile={key}.next -o IdentitiesOnly=yes -o BatchMode=yes "
    "-o StrictHostKeyChecking=yes -o UserKnownHostsFile=/etc/twinserve/known_hosts "
    "-o GlobalKnownHostsFile=/dev/null -o LogLevel=ERROR {more} {target}"
)


def worker_address(lab: Lab) -> str:
    """Where the head's supervisor reaches the worker."""
    pair = json.loads(lab.root(lab.hosts[0], "cat", "/etc/twinserve/pair.json"))
    return next(str(one["address"]) for one in pair["ranks"] if one["address"])


def login(lab: Lab, key: str = f"{KEYS}/control", user: str = "twinserve", more: str = "") -> str:
    """A command line that logs in to the worker from the head."""
    return LOGIN.format(key=key, more=more, target=f"{user}@{worker_address(lab)}")


def on_head(lab: Lab, script: str) -> tuple[int, str]:
    """Exit code and output of a script of the shell, as root on the head."""
    return attempt(lab, lab.hosts[0], script)


def attempt(lab: Lab, host: str, script: str) -> tuple[int, str]:
    """Exit code and output of a script of the shell that may fail, as root on a host."""
    said = lab.root(host, "sh", "-c", f"( {script} ) 2>&1; code=$?; echo; echo $code").strip().splitlines()
    return int(said[-1]), "\n".join(said[:-1])
