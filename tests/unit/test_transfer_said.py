"""What rsync and ssh print, and what it means for a copy."""

from __future__ import annotations

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.transfer.said import (
    Fault,
    Result,
    beside_progress,
    bytes_moved,
    fault,
    lacking,
)

CLOSED = "rsync: connection unexpectedly closed (0 bytes received so far) [sender]"
LAST = "rsync error: error in rsync protocol data stream (code 12) at io.c(285) [sender=3.5.0]"
NO_ROUTE = "ssh: connect to host 198.51.100.2 port 22: No route to host"
CURE = "run ansible-playbook playbooks/fabric.yml"
NOT_TRUSTED = "head cannot ssh to the worker at 198.51.100.2 as bob: authorise its key and host key"


def meaning(code: int, *tail: str) -> Fault | None:
    return fault(Result(code, tail), "bob", "198.51.100.2")


@pytest.mark.parametrize(
    ("line", "moved", "beside"),
    [
        ("          32768   0%    0.00kB/s    0:00:00  ", 32768, ""),
        ("      209715200  33%   88.41MB/s    0:00:02 (xfr#1, to-chk=2/5)", 209715200, ""),
        (
            "11206656  34%    9.80MB/s    0:00:02  rsync error: x (code 20)",
            11206656,
            "rsync error: x (code 20)",
        ),
        ("sent 408080325 bytes  received 147321 bytes", None, "sent 408080325 bytes  received 147321 bytes"),
    ],
)
def test_progress_is_told_from_words(line: str, moved: int | None, beside: str) -> None:
    assert bytes_moved(line) == moved
    assert beside_progress(line) == beside


def test_the_list_of_a_dry_run_tells_new_from_damaged_files_and_links() -> None:
    found = lacking(
        [
            ".d..t...... models--o--n/",
            "cd+++++++++ models--o--n/blobs/",
            "<f+++++++++ models--o--n/blobs/aa",
            "<f.s....... models--o--n/blobs/bb",
            ".f...p..... models--o--n/blobs/cc",
            "<f+++++++++ models--o--n/snapshots/x/a name.txt",
            "cL+++++++++ models--o--n/snapshots/x/f -> ../../blobs/aa",
        ]
    )
    assert found.new == {"models--o--n/blobs/aa", "models--o--n/snapshots/x/a name.txt"}
    assert found.other == {"models--o--n/blobs/bb"}
    assert found.links
    assert not lacking([".L..t...... models--o--n/snapshots/x/f -> ../../blobs/aa"]).links


@pytest.mark.parametrize(
    ("code", "tail"),
    [
        (255, (NO_ROUTE, "rsync error: unexplained error (code 255) at io.c(285) [sender=3.5.0]")),
        (12, (NO_ROUTE, CLOSED, LAST)),
        (30, (NO_ROUTE,)),
        (20, (NO_ROUTE, "rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20)")),
        (-9, (NO_ROUTE,)),
    ],
)
def test_a_connection_that_broke_is_the_rails_fault(code: int, tail: tuple[str, ...]) -> None:
    assert meaning(code, *tail) == Fault(NO_ROUTE, hopeless=False)


def test_m21_an_unknown_host_key_has_its_own_text_and_ends_the_copy() -> None:
    said = "No ED25519 host key is known for 198.51.100.2 and you have requested strict checking."
    assert meaning(255, said, "Host key verification failed.", CLOSED, LAST) == Fault(
        "head does not know the worker's host key: run the fabric play (it records it)", hopeless=True
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bob@198.51.100.2: Permission denied (publickey,password).", "Permission denied"),
        ("Host key verification failed.", "Host key verification failed"),
    ],
)
def test_f19_a_copy_that_is_not_let_in_says_what_to_do(line: str, said: str) -> None:
    assert meaning(255, line, CLOSED) == Fault(f"{NOT_TRUSTED} ({said}); {CURE}", hopeless=True)


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ('rsync: [receiver] mkdir "/x" failed: Read-only file system (30)', ""),
        ('rsync: [receiver] mkstemp "/x" failed: Permission denied (13)', ""),
        (
            "/usr/bin/rrsync error: Another instance of rrsync is already accessing this directory.",
            f"; {CURE}",
        ),
    ],
)
@pytest.mark.parametrize("code", [11, 12, 23])
def test_what_no_other_rail_would_mend_ends_the_copy(line: str, more: str, code: int) -> None:
    assert meaning(code, line, CLOSED, LAST) == Fault(f"{line}{more}", hopeless=True)


@pytest.mark.parametrize("reason", ["No space left on device (28)", "Disk quota exceeded (122)"])
def test_a_full_worker_says_what_to_do(reason: str) -> None:
    line = f'rsync: [receiver] write failed on "/x/hub/y": {reason}'
    text = f"no space is left on the worker: make room and run it again ({line})"
    assert meaning(11, line, CLOSED, LAST) == Fault(text, hopeless=True)


def test_a_failure_without_words_has_its_code() -> None:
    assert meaning(3) == Fault("exit 3", hopeless=False)
    assert meaning(3, "any words") == Fault("any words", hopeless=True)
    assert meaning(12, CLOSED, LAST) == Fault(LAST, hopeless=False)
    assert meaning(0, "any words") is None
