"""How the head speaks ssh to its workers: with which key, whom it believes, and what a refusal means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .shell import last_line

KEYS = "/etc/twinserve/keys"
KNOWN_HOSTS = "/etc/twinserve/known_hosts"
NEXT = ".next"  # what a key's file is called besides, while it is being replaced
FAILED = 255  # ssh's own exit code, when it was not the command that failed
# With a number behind it, it is a file that was refused.
REFUSED = re.compile(r"Permission denied (?=\([a-z])|Host key verification failed")
CURE = "run ansible-playbook playbooks/fabric.yml"


def ssh_options(key: str, known_hosts: str = KNOWN_HOSTS) -> list[str]:
    """Options of every connection from the head: no file of the user or the machine takes part.

    While keys are replaced, there is a moment in which `key` and its public half are not of one pair, and
    ssh then refuses to use it; its successor beside it is whole from before that moment until after it.
    """
    values = {
        "IdentityFile": [key, f"{key}{NEXT}"],
        "IdentitiesOnly": ["yes"],
        "BatchMode": ["yes"],
        "StrictHostKeyChecking": ["yes"],
        "UserKnownHostsFile": [known_hosts],
        "GlobalKnownHostsFile": ["/dev/null"],
    }
    words = [word for name, some in values.items() for value in some for word in ("-o", f"{name}={value}")]
    return ["-F", "none", *words]


def refusal(said: str, user: str, address: str) -> str | None:
    """What to tell people when ssh said that it, or the worker, does not trust the other; else None."""
    if not (found := REFUSED.search(said)):
        return None
    return f"{not_trusted(user, address)} ({found[0].strip()}); {CURE}"


def not_trusted(user: str, address: str) -> str:
    """The sentence for a connection that is refused."""
    return f"head cannot ssh to the worker at {address} as {user}: authorise its key and host key"


def login_argv(name: str, user: str, address: str, words: Sequence[str] = ()) -> list[str]:
    """One connection with the key `name` (`control`, `copy` or `image`)."""
    return ["ssh", *ssh_options(f"{KEYS}/{name}"), "-o", "ConnectTimeout=5", f"{user}@{address}", *words]


def login_fault(name: str, code: int, said: str, user: str, address: str) -> str | None:
    """Why a try to log in did not come through.

    What a forced command answered does not matter, but that of `image`: it says whether it may load.
    """
    if code == FAILED:
        reason = f"head does not reach ssh of the worker at {address} with its {name} key: {last_line(said)}"
        return refusal(said, user, address) or reason
    if name == "image" and code:
        return (
            f"{user} of the worker at {address} cannot run sudo /usr/bin/docker load ({last_line(said)}): "
            "images could not be streamed to it; see whether docker is there and sudo reads /etc/sudoers.d"
        )
    return None
