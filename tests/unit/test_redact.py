"""What leaves a node has no secrets in it, and is still worth reading."""

from __future__ import annotations

import pytest
from ansible_collections.twinserve.pair.plugins.filter.pairs import proxy_passwords
from ansible_collections.twinserve.pair.plugins.module_utils.redact import passwords, redact

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
        ("http_proxy=http://bob:p@ss@proxy:3128/x", "http_proxy=http://bob:[removed]@proxy:3128/x"),
        ("http_proxy=http://bob:p:a@s@s@proxy", "http_proxy=http://bob:[removed]@proxy"),
        ("HTTPS://bob:pass@proxy", "HTTPS://bob:[removed]@proxy"),
        ("cloning https://ghx0123456@example.org/x.git", "cloning https://[removed]@example.org/x.git"),
        ("password=2024-winter!", "password=[removed]"),
        ("password: 12345678", "password: [removed]"),
        ("token=12345678-aaaa", "token=[removed]"),
        ("token=123456789012", "token=[removed]"),
        ("AWS_SECRET_ACCESS_KEY=abc/def+1", "AWS_SECRET_ACCESS_KEY=[removed]"),
        ("SECRET_KEY=abc", "SECRET_KEY=[removed]"),
        ("OPENAI_KEY=abc", "OPENAI_KEY=[removed]"),
        ("export PRIVATE_KEY=abc", "export PRIVATE_KEY=[removed]"),
        ("privateKey: abc", "privateKey: [removed]"),
        ("DB_PASS=abc DB=x", "DB_PASS=[removed] DB=x"),
        ("DB_PWD=abc", "DB_PWD=[removed]"),
        ("passphrase=abc", "passphrase=[removed]"),
        ("wpa psk=abc", "wpa psk=[removed]"),
        ('password="two words" x', 'password="[removed]" x'),
        ("password='two words' x", "password='[removed]' x"),
        (r'password="two \" words" x', 'password="[removed]" x'),
        (r'"{\"password\": \"two words\", \"n\": 1}"', r'"{\"password\": \"[removed]\", \"n\": 1}"'),
        ('password="two words that are cut', 'password="[removed]'),
        ("password=a,b;c x", "password=[removed] x"),
        ("password=ab'cd x", "password=[removed] x"),
        ("{password: abc}", "{password: [removed]}"),
        ('{"password":12345678,"n":1}', '{"password":[removed],"n":1}'),
        ("--db-pass 12345678 --port 8888", "--db-pass [removed] --port 8888"),
        ("--password 'two words' --port 8888", "--password '[removed]' --port 8888"),
        ("--password=12345678 --port 8888", "--password=[removed] --port 8888"),
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
        "prompt_tokens=12 completion_tokens: 7",
        "time per output token: 12 ms, per input token: 0.5 ms",
        '"bytes_per_token": 4608}',
        "tokenizer: loaded",
        '["--max-tokens", "16384", "--prefill-pass", "512"]',
        "forward pass: 12 ms, --pass-cache-gib 2",
        "PWD=/root",
        '"host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"',
        '"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"',
        "ssh://you@spark-a",
        '["http://127.0.0.1:8888","you@spark-a"]',
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 twinserve-control",
        "http://127.0.0.1:8888/v1",
        "error: rank 1 exited (code 1)",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert redact(text) == text


def test_a_known_secret_goes_wherever_it_stands() -> None:
    assert redact("at /x?k=s3cr3t-value&y", ["s3cr3t-value", ""]) == "at /x?k=[removed]&y"


def test_the_secrets_of_a_proxy_are_known_as_they_stand_and_as_they_are_meant() -> None:
    assert passwords(
        ["http://bob:p%40ssword@proxy:3128", "http://proxy:3128", "https://tok3n@mirror/x", ""]
    ) == [
        "p%40ssword",
        "tok3n",
        "p@ssword",
    ]


@pytest.mark.parametrize("given", [{}, {"https_proxy": None, "no_proxy": "a,b"}, "a word", 7])
def test_proxies_without_a_secret_have_none(given: object) -> None:
    assert proxy_passwords(given) == []


def test_the_secrets_of_proxies_are_found() -> None:
    assert proxy_passwords({"https_proxy": "http://bob:hunter22@proxy"}) == ["hunter22"]
