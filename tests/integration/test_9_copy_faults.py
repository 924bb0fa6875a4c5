"""Whatever befalls a copy in the middle: a second run ends right, and no half copy is taken for whole."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from copy_setups import (
    LARGE,
    MODEL,
    SIZE,
    Model,
    copying_pair,
    counts_as_whole,
    forget,
    forget_progress,
    here,
    kill,
    limit,
    linked,
    make,
    moved,
    running,
    sent,
    wait_for,
    whole,
)
from lab_pair import Lab
from link_setups import said, shell

pytestmark = pytest.mark.slow
OLD = Model({0: LARGE, **dict.fromkeys(range(1, 6), SIZE)}, repo="test/pinned", revision="a" * 40)
NEW = replace(OLD, contents={0: LARGE, **dict.fromkeys(range(4, 9), SIZE)}, revision="b" * 40)


@pytest.fixture(scope="module")
def pair(lab: Lab) -> Iterator[Lab]:
    """Two hosts with a link, and a model on the head."""
    with copying_pair(lab, MODEL) as ready:
        yield ready


@pytest.fixture
def bare(pair: Lab) -> Iterator[Lab]:
    """Nothing of it on the worker, and rails that are slow; afterwards they are as fast as they are."""
    forget(pair, pair.hosts[1], MODEL)
    forget_progress(pair)
    limit(pair, "40mbit")
    yield pair
    limit(pair, None)


def ends_right(lab: Lab) -> None:
    """A second run brings what is missing, and little more."""
    had, before = here(lab), sum(sent(lab))
    assert 0.2 * MODEL.total < had < MODEL.total
    assert not linked(lab) and not counts_as_whole(lab)
    limit(lab, None)

    lab.play(*MODEL.copy).succeeded()

    assert sum(sent(lab)) - before < 1.1 * (MODEL.total - had) + (2 << 20)
    assert whole(lab) and counts_as_whole(lab)


def test_m20_a_killed_controller_alone_stops_nothing_and_the_next_run_attaches(bare: Lab) -> None:
    """The next run has a terminal."""
    before = sum(sent(bare))
    with running(bare) as play:
        wait_for(moved(bare, 0.2), play)
        kill(play)
    limit(bare, "2mbit")  # so that it still runs when the next run comes to it
    (ours, theirs), output = pty.openpty(), ""

    with running(bare, terminal=theirs) as play:
        os.close(theirs)
        for piece in pieces(ours):
            shown = "on 2 rails" in output
            output += piece.decode()
            if "on 2 rails" in output and not shown:
                limit(bare, None)
    os.close(ours)

    assert play.returncode == 0, output
    title = f"{bare.hosts[1]}: copy of {MODEL.repo}"
    assert re.search(rf"{title} already running since .+\(pid \d+\): waiting", output), output
    assert re.search(rf"{title}: 0\.\d of 0\.2 GB \(\d+%\), \d+(\.\d)? MB/s on 2 rails", output), output
    assert sum(sent(bare)) - before < 1.1 * MODEL.total
    assert whole(bare)


def pieces(terminal: int) -> Iterator[bytes]:
    """What is written to a terminal, until nobody has it open any more."""
    while True:
        try:
            yield os.read(terminal, 65536)
        except OSError:  # how Linux tells that
            return


# Says how many there were; between two questions there may be none.
KILL_SESSIONS = "pkill --count --signal KILL sshd-session || [ $? = 1 ]"


def test_m20_a_killed_ssh_session_of_the_controller_costs_a_question(bare: Lab) -> None:
    before = sum(sent(bare))
    with running(bare) as play:
        for part in (0.2, 0.5):
            wait_for(moved(bare, part), play)
            wait_for(lambda: int(shell(bare, bare.hosts[0], KILL_SESSIONS)) > 0, play)
        output, _ = play.communicate()

    assert play.returncode == 0, output
    assert sum(sent(bare)) - before < 1.1 * MODEL.total
    assert whole(bare)


def test_two_controllers_at_once_make_one_copy(bare: Lab) -> None:
    before = sum(sent(bare))
    with running(bare) as first, running(bare) as second:
        outputs = [play.communicate()[0] for play in (first, second)]

    assert [first.returncode, second.returncode] == [0, 0], "\n".join(outputs)
    assert sum(sent(bare)) - before < 1.1 * MODEL.total
    assert whole(bare)
    assert bare.play(*MODEL.copy).succeeded().changed == 0


def test_the_workers_power_goes_in_the_middle(bare: Lab) -> None:
    worker = bare.hosts[1]
    with running(bare) as play:
        wait_for(moved(bare, 0.3), play)
        bare.root(worker, "sync")
        bare.verb("power-cut", worker)
        output, _ = play.communicate()
    assert play.returncode != 0, output
    bare.verb("power-on", worker)
    ends_right(bare)


def test_the_heads_power_goes_in_the_middle(bare: Lab) -> None:
    head = bare.hosts[0]
    with running(bare) as play:
        wait_for(moved(bare, 0.3), play)
        bare.verb("power-cut", head)
        output, _ = play.communicate()
    assert play.returncode != 0, output
    bare.verb("power-on", head)
    ends_right(bare)


def test_the_workers_disk_fills_in_the_middle(bare: Lab) -> None:
    worker = bare.hosts[1]
    with running(bare) as play:
        wait_for(moved(bare, 0.3), play)
        limit(bare, "8mbit")  # little comes while the disk is measured and filled
        try:
            bare.verb("disk", worker, "0.03")
            limit(bare, None)
            output, _ = play.communicate()
        finally:
            bare.verb("disk", worker, "900")
    assert play.returncode != 0, output
    text = f"copy of {MODEL.repo} failed (exit 1): no space is left on the worker: make room and run it again"
    assert text in said(output), output
    ends_right(bare)


@pytest.mark.parametrize("shared", [False, True])
def test_another_revision_brings_only_what_the_first_had_not(pair: Lab, shared: bool) -> None:
    """Both layouts of the cache: payloads in the repository's own folder, and in the store that all share."""
    old, new = (replace(model, shared=shared) for model in (OLD, NEW))
    worker = pair.hosts[1]
    try:
        make(pair, old)
        pair.play(*old.copy).succeeded()
        assert whole(pair, old)
        make(pair, new)
        before = sum(sent(pair))

        pair.play(*new.copy).succeeded()

        assert sum(sent(pair)) - before < 1.1 * 3 * SIZE + (1 << 20)
        assert whole(pair, new) and whole(pair, old)
        hops = shell(pair, worker, f"readlink -f {new.snapshot}/*; readlink -f {old.snapshot}/*").split()
        assert len(set(hops)) == 9 and all(("/hub/blobs/" in hop) == shared for hop in hops)
        assert pair.play(*old.copy).succeeded().changed == 0
    finally:
        for host in pair.hosts:
            forget(pair, host, new, old)


def test_m21_an_unknown_host_key_is_refused_with_the_play_that_records_it(bare: Lab) -> None:
    known = "/etc/twinserve/known_hosts"
    shell(bare, bare.hosts[0], f"mv {known} {known}.away; touch {known}")
    try:
        run = bare.play(*MODEL.copy).refused()
    finally:
        bare.root(bare.hosts[0], "mv", f"{known}.away", known)

    text = "head does not know the worker's host key: run the fabric play (it records it)"
    assert text in said(run.output)
    assert here(bare) == 0


def test_m22_over_the_lan_only_when_no_rail_answers(bare: Lab) -> None:
    worker = bare.hosts[1]
    address = bare.node(worker).interface("enP7s7").addresses[0]
    setting = "/etc/ssh/sshd_config.d/only-lan.conf"
    shell(bare, worker, f"echo ListenAddress {address} > {setting} && systemctl restart ssh")
    before = sum(sent(bare))
    try:
        run = bare.play(*MODEL.copy).succeeded()
    finally:
        shell(bare, worker, f"rm {setting} && systemctl restart ssh")

    assert re.search(rf"warn copying over the LAN \({address}\): ssh to \S+ and \S+ failed", said(run.output))
    assert sum(sent(bare)) - before < MODEL.total // 10
    assert whole(bare)
