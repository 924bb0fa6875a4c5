"""The copy to the worker: over both rails, shown, and right after whatever broke it in the middle."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from copy_setups import (
    MODEL,
    SIZE,
    cached,
    copying_pair,
    counts_as_whole,
    forget,
    forget_progress,
    here,
    kill,
    limit,
    linked,
    moved,
    progress,
    running,
    sent,
    wait_for,
    whole,
)
from lab_pair import Lab
from link_setups import said, shell


@pytest.fixture(scope="module")
def pair(lab: Lab) -> Iterator[Lab]:
    """Two hosts with a link, and a model on the head."""
    with copying_pair(lab, MODEL) as ready:
        yield ready


@pytest.fixture
def bare(pair: Lab) -> Iterator[Lab]:
    """Nothing of it on the worker; afterwards the rails are as fast as they are."""
    forget(pair, pair.hosts[1], MODEL)
    forget_progress(pair)
    yield pair
    limit(pair, None)


def test_m01_m22_the_copy_uses_both_rails_and_is_shown(bare: Lab) -> None:
    lab = bare
    limit(lab, "40mbit")
    shell(lab, lab.hosts[0], f"sync; cat {MODEL.folder}/blobs/* >/dev/null")
    assert cached(lab, lab.hosts[0]) > 0.5 * MODEL.total, "else what follows proves nothing"
    before, began = sent(lab), time.monotonic()

    run = lab.play(*MODEL.copy).succeeded()

    seconds = time.monotonic() - began
    assert max(cached(lab, host) for host in lab.hosts) < 0.05 * MODEL.total, "the GPU needs that memory"
    rails = [after - was for was, after in zip(before, sent(lab), strict=True)]
    assert min(rails) > 0.2 * MODEL.total and sum(rails) < 1.1 * MODEL.total
    numbers = r"0\.\d of 0\.2 GB \(\d+%\), \d+\.\d MB/s on 2 rails"
    lines = re.findall(f"{lab.hosts[1]}: copy of {MODEL.repo}: {numbers}", run.output)
    assert 1 <= len(lines) < seconds / 4, run.output
    report = progress(lab)
    assert report["bytes"] == report["total"] == MODEL.total and report["eta"] == 0
    assert whole(lab)
    assert lab.play(*MODEL.copy).succeeded().changed == 0


def test_m06_a_flipped_byte_is_found_and_a_truncated_blob_is_mended(pair: Lab) -> None:
    worker = pair.hosts[1]
    if not counts_as_whole(pair):
        pair.play(*MODEL.copy).succeeded()
    listed = f"find {MODEL.folder}/blobs -size -5M -type f | sort | head -2"
    first, second = shell(pair, worker, listed).split()
    shell(pair, worker, f"printf x | dd of={first} bs=1 seek=1000000 conv=notrunc")

    run = pair.play(*MODEL.copy, "-e", "model_verify=sha256").refused()

    assert f"sha256 differs: remove {first} and run again" in said(run.output)
    pair.root(worker, "rm", first)
    pair.root(worker, "truncate", "-s", "-1000", second)
    before = sum(sent(pair))
    pair.play(*MODEL.copy, "-e", "model_verify=sha256").succeeded()
    assert sum(sent(pair)) - before < 1.2 * SIZE + (1 << 20), "one file, and the end of another"
    assert whole(pair)


def test_a_rail_that_is_cut_in_the_middle_leaves_the_work_to_the_other(bare: Lab) -> None:
    lab = bare
    limit(lab, "24mbit")
    try:
        with running(lab) as play:
            wait_for(moved(lab, 0.1), play)
            lab.verb("cut-rail", "2")
            wait_for(lambda: progress(lab)["how"] == "on 1 rail", play)
            limit(lab, None)
            output, _ = play.communicate()
    finally:
        lab.verb("mend-rail", "2")

    assert play.returncode == 0, output
    assert re.search(r"warn rail to \S+ (failed \(|is lost \()", said(output)), output
    assert whole(lab)


def test_a_second_run_goes_on_where_controller_and_job_were_killed(bare: Lab) -> None:
    lab = bare
    limit(lab, "40mbit")
    with running(lab) as play:
        wait_for(moved(lab, 0.3), play)
        kill(play)
    shell(lab, lab.hosts[0], "systemctl kill --signal=KILL 'twinserve-job-copy-*'")
    had = here(lab)
    limit(lab, None)
    assert 0.2 * MODEL.total < had < MODEL.total
    assert not linked(lab) and not counts_as_whole(lab)
    before = sum(sent(lab))

    lab.play(*MODEL.copy).succeeded()

    assert sum(sent(lab)) - before < 1.1 * (MODEL.total - had) + (1 << 20)
    assert whole(lab)
