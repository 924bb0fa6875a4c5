"""Programs of the node: what they print, and one line of why they failed."""

from __future__ import annotations

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.shell import CommandError, last_line, run


def test_output_is_returned_and_input_is_given() -> None:
    assert run(["cat"], stdin="hello") == "hello"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["no-such-program", "x"], "no-such-program is not installed"),
        (["sh", "-c", "echo one; echo two >&2; exit 3"], "two (exit 3)"),
        (["sh", "-c", "echo only out; exit 4"], "only out (exit 4)"),
        (["false"], "false: no output (exit 1)"),
    ],
)
def test_failure_says_the_program_and_its_last_line(argv: list[str], said: str) -> None:
    with pytest.raises(CommandError) as caught:
        run(argv)
    assert str(caught.value).endswith(said)


def test_a_program_that_hangs_is_given_up() -> None:
    with pytest.raises(CommandError, match="sleep did not answer within 0 s"):
        run(["sleep", "30"], timeout=0.05)


@pytest.mark.parametrize(("text", "line"), [("a\n b \n\n \n", "b"), ("", "no output"), ("\n", "no output")])
def test_last_line_skips_empty_ones(text: str, line: str) -> None:
    assert last_line(text) == line


@pytest.mark.parametrize("hint", ["See 'docker run --help'.", "Run 'docker run --help' for more information"])
def test_c09_what_docker_run_says_last_is_no_reason(hint: str) -> None:
    reason = (
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]'
    )
    assert last_line(f"{reason}\n\n{hint}\n") == reason
