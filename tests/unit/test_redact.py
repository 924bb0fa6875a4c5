"""What leaves a node has no secrets in it, and is still worth reading."""

from __future__ import annotations

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.redact import redact

TOKEN = "hf_" + "aBcD1234" * 4
BEGIN, END = ("-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"login with {TOKEN}", "login with [removed]"),
        ("HF_TOKEN=abcdef1234 done", "HF_TOKEN=[removed] done"),
        ('"HF_TOKEN": "abcdef1234",', '"HF_TOKEN": "[removed]",'),
        ('["-e", "API_KEY=abcdef1234"]', '["-e", "API_KEY=[removed]"]'),
        ("--api-key abcdef1234 --port 8888", "--api-key [removed] --port 8888"),
        ('"--api-key", "abcdef1234"', '"--api-key", "[removed]"'),
        ("Authorization: Bearer abcdef1234", "Authorization: Bearer [removed]"),
        ("https_proxy=http://me:hunter2@proxy:3128", "https_proxy=http://me:[removed]@proxy:3128"),
        ("password: hunter2", "password: [removed]"),
        (f"a\n{BEGIN}\nb3Blb\nAAAA\n{END}\nb", f"a\n{BEGIN} [removed] {END}\nb"),
        (f"{BEGIN}\nb3Blb\nAA", f"{BEGIN} [removed] "),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, left: str) -> None:
    assert redact(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "--max-tokens 16384 --parallel 2",
        "max_tokens: 16384",
        "in one pool of 2684928 tokens",
        '"pool_free_tokens": 2600000',
        "tokenizer: loaded",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 twinserve-control",
        "http://127.0.0.1:8888/v1",
        "error: rank 1 exited (code 1)",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert redact(text) == text


def test_a_known_secret_goes_wherever_it_stands() -> None:
    assert redact("at /x?k=s3cr3t-value&y", ["s3cr3t-value", ""]) == "at /x?k=[removed]&y"
