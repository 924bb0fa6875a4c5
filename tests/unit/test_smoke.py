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


THOUGHT = "The user wants one word. I say OK, and nothing else."


@pytest.mark.parametrize(
    ("text", "thought", "cut", "detail"),
    [
        pytest.param("OK", THOUGHT, False, None, id="thought, then said"),
        pytest.param("OK", "Hm...", False, None, id="thought little"),
        pytest.param(f"OK{'!' * 23}", f"Hm{'.' * 23}", False, None, id="emphasis"),
        pytest.param("OK", f"Hm{'.' * 24}", False, "(collapsed output)", id="too much of it"),
        pytest.param("", THOUGHT, True, None, id="still thinking"),
        pytest.param("", f"{THOUGHT}\n|{'---|' * 9}", True, None, id="cut in a table"),
        pytest.param("", f"{THOUGHT}\n{'-' * 40}", True, None, id="cut in a ruler"),
        pytest.param("", f"{THOUGHT} 1{'0' * 30}", True, None, id="cut in a large number"),
        pytest.param("", THOUGHT * 40, True, None, id="thinks long, in few words"),
        pytest.param(
            "", "," * 1024, True, '"' + "," * 40 + '..." (collapsed output)', id="commas as thought"
        ),
        pytest.param("", f"{THOUGHT} {', ' * 500}", True, "(collapsed output)", id="commas after a while"),
        pytest.param("OK", f"The user{',' * 24}", False, "(collapsed output)", id="said OK all the same"),
        pytest.param(f"OK{',' * 24}", THOUGHT, False, "(collapsed output)", id="commas after the answer"),
        pytest.param("OK, the, the, the, the" + ", the" * 20, "", False, "(collapsed output)", id="a word"),
        pytest.param("", THOUGHT, False, '"" (empty output)', id="thought, then nothing"),
        pytest.param("", "", True, '"" (empty output)', id="nothing at all"),
        pytest.param("", " \n", True, '"" (empty output)', id="blanks"),
        pytest.param("", ",", True, '"" (empty output)', id="no word"),
    ],
)
def test_l04_what_a_model_thinks_counts_too(text: str, thought: str, cut: bool, detail: str | None) -> None:
    verdict = judge(Reply(200, text, thought, cut))
    assert verdict.ok is (detail is None)
    if detail:
        assert (verdict.hopeless, detail in verdict.detail) == (True, True), verdict.detail


def test_l04_a_long_reply_is_judged_as_fast_as_a_short_one() -> None:
    # Without a limit this takes minutes.
    assert judge(Reply(200, "OK", "word " * 100_000 + "end.", cut=False)).ok


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
