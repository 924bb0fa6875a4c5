"""Two bare machines: nothing of ours is there yet, and nothing may come by asking."""

from __future__ import annotations

import pytest
from hosts_state import differences, pair_state
from lab_pair import Lab


def test_check_mode_says_what_it_would_do_and_changes_nothing(lab: Lab) -> None:
    before = pair_state(lab)

    run = lab.play("site.yml", "--check", "--diff").succeeded()

    assert differences(before, pair_state(lab)) == []
    assert run.changed > 10
    assert "RDMA ports are down" in run.output
    assert '+    "serve"' in run.output, "the diff shows the rank's command"


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (
            ["parallel=banana", "paralel=2", "context=2000000", "kv=int8"],
            [
                "paralel is not a setting: did you mean parallel?",
                "parallel is 'banana': it takes a whole number from 1 to 4",
                "context is 2000000: it takes a whole number from 0 to 1048576",
                "kv is 'int8': it takes fp8 or bf16",
            ],
        ),
        (
            ["drafter=mtp", "parallel=4"],
            ["parallel 4 needs drafter dflash2 (mtp serves one request at a time)"],
        ),
        (["release=v1.1"], ["release v1.1 has an image for arm64 only"]),
        (["accept_dflash2_license=false"], ["CC BY-NC-ND 4.0", "drafter: mtp"]),
    ],
)
def test_bad_settings_are_refused_at_once_and_together(
    lab: Lab, words: list[str], messages: list[str]
) -> None:
    before = pair_state(lab)

    run = lab.play("site.yml", *[part for word in words for part in ("-e", word)]).refused()

    text = " ".join(run.output.split())
    assert [message for message in messages if message not in text] == []
    assert differences(before, pair_state(lab)) == []


def test_l15_too_little_memory_is_refused_before_anything_changes(lab: Lab) -> None:
    before = pair_state(lab)
    lab.verb("memory", lab.hosts[1], "71")
    try:
        run = lab.play("site.yml").refused()
    finally:
        lab.verb("memory", lab.hosts[1], "115")

    assert f"{lab.hosts[1]}: 71 GiB available, about 110 needed" in run.output
    assert "allow_low_memory: true" in run.output
    assert differences(before, pair_state(lab)) == []
