"""The engine's parts that need no process: tokens, memory, prompt reuse, fixed forms, media, answers."""

from __future__ import annotations

import base64
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from engine_support import ENVIRONMENT
from tensorfold import answers, tokens
from tensorfold.api.errors import ApiError
from tensorfold.api.media import collect, image_size
from tensorfold.api.toolcalls import decide
from tensorfold.cli import build_parser
from tensorfold.fabric import gid_index
from tensorfold.grammar import sentence
from tensorfold.memory import Need, available_gib, need_of, pool_tokens, window_refusal
from tensorfold.pattern import example
from tensorfold.prefix import BLOCK, KeptPrompts
from tensorfold.schema import Hints, instance
from tensorfold.settings import Settings, read_settings
from tensorfold.switches import Switches

NO_SWITCHES = Switches(Path("/nowhere"), 0)


@pytest.mark.parametrize(
    "text", ["", "a", "Reply with OK.", "naïve café\n\t", "漢字 and 😀!", "x" * 100, '{"a": [1, 2]}']
)
def test_tokens_make_the_round_trip(text: str) -> None:
    ids = tokens.encode(text)
    assert tokens.decode(ids) == text
    assert all(0 <= token < tokens.VOCABULARY for token in ids)


def test_a_token_is_about_three_characters_of_english() -> None:
    text = "the quick brown fox jumps over the lazy dog and runs away from all the others " * 10
    assert 2.5 < len(text) / len(tokens.encode(text)) <= 3


@pytest.mark.parametrize("token", [-1, tokens.VOCABULARY])
def test_a_token_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match="outside the vocabulary"):
        tokens.decode([token])


@pytest.mark.parametrize("text", ["one two  three\n", " lead", "single", "", "a b"])
def test_pieces_join_to_the_text(text: str) -> None:
    found = list(tokens.pieces(text))
    assert "".join(piece for piece, _ in found) == text
    assert all(tokens.decode(ids) == piece for piece, ids in found)


def test_pieces_are_words_with_the_space_before_them() -> None:
    assert [piece for piece, _ in tokens.pieces("one two  three\n")] == ["one", " two", "  three", "\n"]


def _settings(*words: str, drafts: bool = True, **env: str) -> Settings:
    arguments = build_parser().parse_args(["serve", "/m", "--tp", "2", "--master", "h", *words])
    return read_settings(arguments, {**ENVIRONMENT, **env}, "m", drafts)


WHOLE = 1_048_576


@pytest.mark.parametrize(
    ("words", "env", "drafts", "window", "gib"),
    [
        ("--parallel 4 --vision", {}, True, WHOLE, 88.09),
        ("--parallel 4 --vision --rank 1", {}, True, WHOLE, 86.29),
        ("--parallel 4", {}, True, WHOLE, 86.29),
        ("--parallel 4", {"TF_GLM_KV": "bf16"}, True, 196_608, 86.29),
        ("", {"TF_GLM_KV": "bf16"}, False, 524_288, 84.29),
        ("--parallel 4", {"TF_GLM_DENSE": "bf16"}, True, WHOLE, 87.85),
    ],
)
def test_startup_estimates(words: str, env: dict[str, str], drafts: bool, window: int, gib: float) -> None:
    need = need_of(_settings(*words.split(), drafts=drafts, **env), 115)
    assert need.estimate(window) == pytest.approx(gib, abs=0.01)


@pytest.mark.parametrize(
    ("available", "window"),
    [(115, WHOLE), (102.6, WHOLE), (102.58, 1_046_528), (95, 198_656), (93, 0), (10, 0)],
)
def test_the_window_that_fits_shrinks_with_memory(available: float, window: int) -> None:
    assert need_of(_settings("--parallel", "4", "--vision"), available).largest_window() == window


def test_a_window_that_was_said_to_fit_does_fit() -> None:
    for tenth in range(900, 1030):
        need = need_of(_settings("--vision"), tenth / 10)
        fits = need.largest_window()
        assert fits == 0 or need.estimate(fits) <= need.budget + 1e-4


@pytest.mark.parametrize(("gib", "tokens_held"), [("11", 2_684_928), ("12.5", 2_852_864)])
def test_the_pool_is_what_was_measured_where_memory_allows(gib: str, tokens_held: int) -> None:
    settings = _settings("--parallel", "4", TF_GLM_CACHE_GIB=gib)
    assert pool_tokens(settings, Need(70, 1e-6, 200), WHOLE) == tokens_held
    assert pool_tokens(settings, need_of(settings, 100.8), WHOLE) == WHOLE


def test_the_refusal_names_both_windows() -> None:
    assert window_refusal(1048576, 786432).startswith(
        "CUDA startup memory budget cannot fit requested context 1048576; estimated largest fitting "
        "prompt-plus-reply window: 786432 tokens across the ranks. "
    )
    assert window_refusal(1048576, 0).endswith("0 tokens across the ranks. Please free memory.")


def test_available_memory_is_read_in_gib(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1 kB\nMemAvailable:   120586240 kB\n")
    assert available_gib(tmp_path) == 115.0


@pytest.mark.parametrize(
    ("env", "index"),
    [
        ({}, 3),
        ({"NCCL_IB_GID_INDEX": "5"}, 5),
        ({"NCCL_IB_GID_INDEX": ""}, 0),
        ({"NCCL_IB_GID_INDEX": "5", "TF_ROCE_GID_INDEX": "4"}, 4),
    ],
)
def test_an_empty_gid_index_is_zero_and_a_missing_one_three(env: dict[str, str], index: int) -> None:
    assert gid_index(env) == index


def test_a_kept_prompt_is_reused_in_whole_blocks() -> None:
    kept = KeptPrompts(2)
    first = list(range(300))
    kept.keep(first)
    assert kept.cached(first) == 300 // BLOCK * BLOCK
    assert kept.cached([*first[:200], *range(9000, 9200)]) == 200 // BLOCK * BLOCK
    assert kept.cached([9999, *first]) == 0
    for start in (1000, 2000):
        kept.keep(list(range(start, start + 300)))
    assert kept.cached(first) == 0
    assert (kept.count(), kept.tokens()) == (2, 600)


def test_at_least_one_token_is_computed() -> None:
    kept = KeptPrompts(2)
    kept.keep(list(range(BLOCK)))
    assert kept.cached(list(range(BLOCK))) == BLOCK - 1


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d{3}-\d{4}",
        r"[A-Z][a-z]+",
        r"(yes|no)",
        r"a*b?c+",
        r"^x$",
        r"[^\s\d]{2,5}",
        r"(ab)\1",
        r"\w+@\w+\.com",
        r"",
        r".{4}",
    ],
)
def test_an_example_matches_its_pattern(pattern: str) -> None:
    assert re.fullmatch(pattern, example(pattern))


@pytest.mark.parametrize("pattern", ["(", r"a(?=b)c"])
def test_a_pattern_without_an_example_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        example(pattern)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('root ::= "yes" | "no"', "no"),
        ('root ::= greeting " " [A-Z] [a-z]+ "!"?\ngreeting ::= "hi" # short\n | "hello"', "hi Aa"),
        ('root ::= ("a" | "bb")+ item*\nitem ::= "x"', "a"),
        ('root ::= "(" root ")" | "."', "."),
        (r'root ::= "line\n\"q\""', 'line\n"q"'),
    ],
)
def test_a_grammar_gives_its_shortest_sentence(grammar: str, text: str) -> None:
    assert sentence(grammar) == text


@pytest.mark.parametrize(
    "grammar", ["", 'start ::= "a"', "root ::= missing", "root ::= root", 'root ::= ("a"', "root ::= @"]
)
def test_a_wrong_grammar_is_an_error(grammar: str) -> None:
    with pytest.raises(ValueError, match="grammar"):
        sentence(grammar)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 18},
        "height": {"type": "number"},
        "role": {"enum": ["admin", "guest"]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 2},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "active": {"type": "boolean"},
        "left_out": {"type": "string"},
    },
    "required": ["name", "age", "height", "role", "tags", "note", "active"],
    "$defs": {"tag": {"type": "string", "pattern": "^t[0-9]$"}},
}


def test_a_schema_is_met_with_the_prompts_own_words() -> None:
    found = instance(PERSON, Hints("The guest is called Alice Smith, is 31 years old and 1.7 m tall."))
    assert found == {
        "name": "Alice Smith",
        "age": 31,
        "height": 1.7,
        "role": "guest",
        "tags": ["t0", "t0"],
        "note": None,
        "active": True,
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 7}, 7),
        ({"type": "integer", "minimum": 5, "maximum": 9}, 5),
        ({"type": "integer", "exclusiveMaximum": 0}, -1),
        ({"type": ["string", "null"], "minLength": 6}, "textxx"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": "array", "maxItems": 0}, []),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "null"}}},
                    {"properties": {"b": {"const": 1}}, "required": ["b"]},
                ]
            },
            {"b": 1},
        ),
    ],
)
def test_schema_values(schema: Any, value: object) -> None:
    assert instance(schema, Hints("")) == value


@pytest.mark.parametrize("schema", [7, {"type": "what"}, {"$ref": "#/none"}, {"$ref": "#"}])
def test_a_schema_that_cannot_be_met_is_an_error(schema: Any) -> None:
    with pytest.raises(ValueError, match="schema"):
        instance(schema, Hints(""))


WEATHER = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"enum": ["celsius", "kelvin"]},
        },
        "required": ["city", "days", "unit"],
    },
}
CLOCK = {"name": "clock", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("question", "choice", "answered", "called"),
    [
        ("What is the weather in Paris for 3 days in kelvin?", "auto", False, ["get_weather"]),
        ("Call the clock", None, False, ["clock"]),
        ("Hello", None, False, []),
        ("Hello", "required", False, ["get_weather"]),
        ("weather?", "none", False, []),
        ("weather?", "auto", True, []),
        ("Hello", {"type": "function", "function": {"name": "clock"}}, False, ["clock"]),
    ],
)
def test_which_tool_is_called(question: str, choice: Any, answered: bool, called: list[str]) -> None:
    assert [call.name for call in decide([WEATHER, CLOCK], choice, question, answered)] == called


def test_a_calls_arguments_are_typed() -> None:
    (call,) = decide([WEATHER], "auto", "What is the weather in Paris for 3 days in kelvin?", False)
    assert call.arguments == {"city": "Paris", "days": 3, "unit": "kelvin"}


def test_an_unknown_tool_cannot_be_chosen() -> None:
    with pytest.raises(ApiError, match="unknown tool"):
        decide([CLOCK], {"type": "function", "function": {"name": "other"}}, "", False)


@pytest.mark.parametrize(
    ("prompt", "reply"),
    [
        ("Reply with OK.", "OK"),
        ("Please answer with exactly: 'blue whale'", "blue whale"),
        ("What is the capital of France?", "The capital of France is Paris."),
        ("What is 2+3?", "5"),
        ("12 times 12", "144"),
        ("7 / 2", "3.5"),
        ("1/0", "Division by zero is not defined."),
        ("The secret word is zebra-7. What is the secret word?", "It is zebra-7."),
        ("hello there", 'This is sim. You wrote 2 words: "hello there".'),
    ],
)
def test_answers(prompt: str, reply: str) -> None:
    assert answers.answer(prompt, "sim", 0, 0) == reply


def test_the_fibonacci_answer_runs() -> None:
    code = answers.answer("Write a fibonacci function", "sim", 0, 0).strip("`").removeprefix("python")
    space: dict[str, Any] = {}
    exec(code, space)
    assert [space["fibonacci"](n) for n in range(8)] == [0, 1, 1, 2, 3, 5, 8, 13]


def test_a_long_prompt_is_quoted_from_both_ends() -> None:
    reply = answers.answer("start " + "x " * 5000 + "end", "sim", 1, 2)
    assert "start" in reply and 'end"' in reply and "5002 words" in reply and len(reply) < 600
    assert reply.endswith("I also see 1 image. I also see 2 videos.")


PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + bytes(9)
JPEG = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + struct.pack(">HH", 480, 640) + bytes(12)
WEBP_X = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
WEBP_L = b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + ((640 - 1) | (480 - 1) << 14).to_bytes(4, "little")
WEBP = b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480)


@pytest.mark.parametrize("blob", [PNG, JPEG, WEBP_X, WEBP_L, WEBP])
def test_image_sizes(blob: bytes) -> None:
    assert image_size(blob) == (640, 480)


@pytest.mark.parametrize("blob", [b"GIF89a", b"", PNG[:12], JPEG[:6]])
def test_what_is_no_image_is_refused(blob: bytes) -> None:
    with pytest.raises(ApiError, match="an image is"):
        image_size(blob)


def test_switches_strike_so_often_and_ranks_differ(tmp_path: Path) -> None:
    (tmp_path / "switches.json").write_text(
        json.dumps({"nccl_error": {"times": 2}, "refuse_window": 0, "ranks": {"1": {"load_seconds": 7}}})
    )
    zero, one = Switches(tmp_path, 0), Switches(tmp_path, 1)
    assert [zero.strike("nccl_error") is not None for _ in range(3)] == [True, True, False]
    assert zero.strike("refuse_window") == {"value": 0}
    assert zero.strike("crash_at_start") is None
    assert (zero.get("load_seconds"), one.get("load_seconds")) == (1.0, 7)


def test_an_unknown_switch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "switches.json").write_text('{"load_second": 1}')
    with pytest.raises(ValueError, match="unknown switch load_second"):
        Switches(tmp_path, 0).check()


def test_media_limits_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    part = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(PNG).decode()},
    }
    one = collect([{"role": "user", "content": [part]}], vision=True, urls=False, switches=NO_SWITCHES)
    assert (one.images, len(one.ids)) == (1, 23 * 18)
    monkeypatch.setenv("TENSORFOLD_GLM_IMAGE_TOKENS", "100")
    assert (
        len(collect([{"role": "user", "content": [part]}], vision=True, urls=False, switches=NO_SWITCHES).ids)
        == 100
    )
    monkeypatch.setenv("TENSORFOLD_GLM_MAX_IMAGES", "2")
    with pytest.raises(ApiError, match="too many images: 3, at most 2"):
        collect([{"role": "user", "content": [part] * 3}], vision=True, urls=False, switches=NO_SWITCHES)
    monkeypatch.setenv("TENSORFOLD_GLM_REQUEST_IMAGE_TOKENS", "150")
    with pytest.raises(ApiError, match="images need 200 tokens, at most 150"):
        collect([{"role": "user", "content": [part] * 2}], vision=True, urls=False, switches=NO_SWITCHES)
