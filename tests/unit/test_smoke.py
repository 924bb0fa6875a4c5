"""What counts as a reply of a working model."""

from __future__ import annotations

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.supervisor.smoke import Reply, collapsed, judge


@pytest.mark.parametrize(
    "text",
    [
        "!!!!!!!!!!!!",
        "!!?!!?!!?!!?",
        "the the the the the the",
        "The the THE the. the the",
        "<|x|><|x|><|x|>",
        "<|endoftext|>",
        "",
        "\n\n",
        "   ",
        "abcabcabcabcabc",
        "0000000000000000",
        "好好好好好好好好好",
        "ok ok ok ok ok ok ok ok",
        "yes no yes no yes no yes no yes no",
        "...",
    ],
)
def test_l04_collapsed_output_is_rejected(text: str) -> None:
    verdict = judge(Reply(200, text))
    assert not verdict.ok
    assert verdict.hopeless
    assert verdict.detail.startswith("rank pair answers")
    assert verdict.detail.endswith("verify the model files (model_verify: sha256)")


@pytest.mark.parametrize(
    "text",
    [
        "OK",
        "OK.",
        "ok",
        "Ok!",
        "OK!!!",
        "Sure, OK.",
        "好的",
        "OK OK",
        "1",
        "**OK**",
        "The cat and the dog and the bird are OK.",
    ],
)
def test_l04_short_and_plain_replies_pass(text: str) -> None:
    assert collapsed(text) is None
    assert judge(Reply(200, text)).ok


def test_l04_message_shows_the_reply_in_short() -> None:
    assert 'answers "!!!!!!!!" (collapsed output)' in judge(Reply(200, "!" * 8)).detail
    assert f'"{"!" * 40}..."' in judge(Reply(200, "!" * 500)).detail


@pytest.mark.parametrize(
    ("status", "busy", "hopeless", "detail"),
    [
        (429, True, False, "busy (HTTP 429)"),
        (503, True, False, "busy (HTTP 503)"),
        (401, False, True, "the API rejects the configured key"),
        (500, False, False, "HTTP 500: out of step"),
    ],
)
def test_l08_a03_errors_of_the_server(status: int, busy: bool, hopeless: bool, detail: str) -> None:
    verdict = judge(Reply(status, "out of step"))
    assert (verdict.ok, verdict.busy, verdict.hopeless, verdict.detail) == (False, busy, hopeless, detail)
