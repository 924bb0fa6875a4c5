"""An HTTP server that answers in the forms of vLLM 0.32, as far as the acceptance checks ask it, or wrongly.

It serves a model that always thinks (`thinks`): a request with too small a budget gets no answer. One without
a temperature gets an unlikely one. `wrong` names what is broken.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "lab/thinker"
THOUGHT = 1000  # tokens
TEMPLATE = 10
PERSON = '{\n  "name": "Alice",\n  "age": 31\n}'
FITTING = {"json": PERSON, "regex": "153-1586", "choice": "ninety", "grammar": "left"}
PROSE = "The capital of France is Paris."
Json = dict[str, Any]


class Refused(Exception):
    """An error answer."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": None, "code": status}}


class FakeVllm:
    """The server's state."""

    def __init__(self) -> None:
        self.wrong: frozenset[str] = frozenset()
        self.key = ""
        self.thinks = True
        self.cut = ""  # the text of every answer, which is cut off
        self.window = 32768
        self.lanes = 4
        self.base = ""
        self._seen: set[str] = set()
        self._sampled = itertools.count()
        self._lock = threading.Condition()
        self._running = 0
        self.prompt_tokens = self.completion_tokens = self.hits = 0

    @contextlib.contextmanager
    def lane(self) -> Iterator[None]:
        """A place among those that run."""
        lanes = 1 if "one_lane" in self.wrong else 99 if "nobody_waits" in self.wrong else self.lanes
        with self._lock:
            self._lock.wait_for(lambda: self._running < lanes)
            self._running += 1
        yield
        with self._lock:
            self._running -= 1
            self._lock.notify_all()

    def metrics(self) -> str:
        """The page, with labels, and with counters of HTTP that rise by themselves."""
        frozen = "frozen" in self.wrong
        values = {
            'vllm:num_requests_running{engine="0"}': self._running,
            'vllm:num_requests_waiting{engine="0"}': 0,
            'vllm:request_success_total{finished_reason="stop"}': 1,
            "vllm:prompt_tokens_total": 0 if frozen else self.prompt_tokens,
            "vllm:generation_tokens_total": 0 if frozen else self.completion_tokens,
            "vllm:prefix_cache_hits_total": self.hits,
            "http_requests_total": next(self._sampled),
        }
        if "no_counters" in self.wrong:
            values = {name: value for name, value in values.items() if "vllm:" not in name}
        return "".join(f"{name} {value}.0\n" for name, value in values.items())

    def reply(
        self, prompt: str, body: Json, budget: int | None, effort: Any
    ) -> tuple[str | None, str | None, Json]:
        """Thought, answer (None when the budget is used up before it) and usage."""
        words = len(prompt.split()) + TEMPLATE
        if words > self.window and "clamps" not in self.wrong:
            raise Refused(400, f"This model's maximum context length is {self.window} tokens. However, ...")
        with self.lane():
            if "Count from" in prompt:
                time.sleep(0.3)
            if prompt not in self._seen and words > 500:
                time.sleep(0.3)
        known = prompt in self._seen and "forgets" not in self.wrong
        self._seen.add(prompt)
        self.hits += words // 128 * 128 if known else 0
        self.prompt_tokens, self.completion_tokens = self.prompt_tokens + words, self.completion_tokens + 16
        usage = {"prompt_tokens": words, "completion_tokens": 16, "prompt_tokens_details": None}
        thinks = self.thinks and "never_thinks" not in self.wrong
        thought = f"Let me think ({effort})." if thinks else None
        if thinks and budget is not None and budget < THOUGHT:
            return thought, None, usage
        return thought, self._content(prompt, body), usage

    def _content(self, prompt: str, body: Json) -> str:
        if self.cut:
            return self.cut
        asked = dict(body.get("structured_outputs") or {})
        form = body.get("response_format") or {}
        if form:
            asked["json"] = form
        if asked and "loose" not in self.wrong:
            return FITTING[next(iter(asked))]
        if "17 + 25" in prompt:
            return "42"
        if "temperature" not in body or (body["temperature"] and self._free(body)):
            return f"Something else {body.get('seed', next(self._sampled))}"
        return "It is sunny." if "sunny" in prompt else PROSE

    @staticmethod
    def _free(body: Json) -> bool:
        return body.get("top_k") != 1 and body.get("min_p") != 1 and body.get("top_p", 1) > 0.5

    def calls(self, body: Json) -> list[Json]:
        """The tool calls of an answer."""
        choice = body.get("tool_choice", "auto") if body.get("tools") else "none"
        if choice == "none" or "calls_nothing" in self.wrong or body["messages"][-1]["role"] == "tool":
            return []
        days = '"3"' if "untyped" in self.wrong else "3"
        arguments = "{}" if "no_arguments" in self.wrong else f'{{"city": "Paris", "days": {days}}}'
        return [
            {"id": "call-1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
        ]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    fake: FakeVllm

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Models, health, metrics."""
        if self.path == "/health":
            self._send(503 if "sick" in self.fake.wrong else 200, b"")
        elif self.path == "/metrics":
            self._send(200, self.fake.metrics().encode())
        elif self.path == "/v1/models" and self._may():
            card = {
                "id": MODEL,
                "max_model_len": None if "no_window" in self.fake.wrong else self.fake.window,
            }
            self._json(200, {"object": "list", "data": [card]})
        elif self.path != "/v1/models":
            self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        """Everything else."""
        body = json.loads(self._body())
        route = {
            "/v1/chat/completions": self._chat,
            "/v1/completions": self._completions,
            "/v1/responses": self._responses,
            "/v1/messages": self._messages,
            "/tokenize": self._tokenize,
            "/detokenize": self._detokenize,
        }.get(self.path)
        if self.path == "/invocations" and "back_door" in self.fake.wrong:
            self._chat(body)
        elif route is None:
            self._json(404, {"detail": "Not Found"})
        elif not self.path.startswith("/v1") or self._may():
            try:
                route(body)
            except Refused as error:
                self._json(error.status, error.body)

    def _body(self) -> bytes:
        if length := self.headers.get("Content-Length"):
            return self.rfile.read(int(length))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _may(self) -> bool:
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if key == self.fake.key or not self.fake.key or "open" in self.fake.wrong:
            return True
        self._json(401, {"error": "Unauthorized"})
        return False

    def _chat(self, body: Json) -> None:
        fake = self.fake
        content = [message.get("content") or "" for message in body["messages"]]
        if any(isinstance(one, list) for one in content) and "ignores_pictures" not in fake.wrong:
            raise Refused(400, f"{MODEL} is not a multimodal model")
        effort = (body.get("chat_template_kwargs") or {}).get("reasoning_effort")
        if effort not in (None, "low", "high", "max"):
            raise Refused(400, f"Unknown reasoning effort {effort}")
        prompt = " ".join(map(str, content))
        thought, text, usage = fake.reply(prompt, body, body.get("max_tokens"), effort)
        calls = fake.calls(body)
        field = "reasoning_content" if "old_field" in fake.wrong else "reasoning"
        reason = "length" if text is None or fake.cut else "stop"
        if calls:
            text = ""
            named = isinstance(body.get("tool_choice"), dict)
            reason = "stop" if named or "reason" in fake.wrong else "tool_calls"
        if not body.get("stream"):
            message: Json = {"role": "assistant", "content": text, field: thought}
            message |= {"tool_calls": calls} if calls else {}
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._json(200, {"choices": [choice], "usage": usage})
            return
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        for name, said in ((field, thought), ("content", text)):
            deltas += [{name: word} for word in (said or "").split()]
        for call in calls:
            deltas.append({"tool_calls": [{"index": 0, "function": {"name": call["function"]["name"]}}]})
            deltas += [
                {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
                for part in call["function"]["arguments"]
            ]
        choices: list[Json] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices[-1]["finish_reason"] = reason
        told: list[Json] = [{"choices": [choice]} for choice in choices]
        if (body.get("stream_options") or {}).get("include_usage") and "no_usage" not in fake.wrong:
            told.append({"choices": [], "usage": usage})
        lines = [f"data: {json.dumps(one)}\n\n" for one in told]
        self._send(200, "".join([*lines, "data: [DONE]\n\n"]).encode())

    def _completions(self, body: Json) -> None:
        text = self.fake.reply(body["prompt"], body, None, None)[1]
        self._json(200, {"choices": [{"index": 0, "text": text, "finish_reason": "length"}]})

    def _responses(self, body: Json) -> None:
        effort = (body.get("reasoning") or {}).get("effort")
        text = self.fake.reply(body["input"], body, body.get("max_output_tokens"), effort)[1] or ""
        output = [
            {"type": "reasoning", "content": []},
            {"type": "message", "content": [{"type": "output_text", "text": text}]},
        ]
        answer: Json = {"id": "resp_1", "object": "response", "output": output, "error": None}
        if not body.get("stream"):
            self._json(200, answer)
            return
        events: list[Json] = [{"type": "response.created", "response": answer}]
        events += [{"type": "response.output_text.delta", "delta": f"{word} "} for word in text.split()]
        events.append({"type": "response.completed", "response": answer})
        lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]
        self._send(200, "".join(lines).encode())

    def _messages(self, body: Json) -> None:
        text = self.fake.reply(body["messages"][0]["content"], body, body["max_tokens"], None)[1]
        parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text or ""}]
        self._json(200, {"type": "message", "role": "assistant", "content": parts})

    def _tokenize(self, body: Json) -> None:
        tokens = [1] * bool(body.get("add_special_tokens", True)) + [ord(char) for char in body["prompt"]]
        self._json(200, {"count": len(tokens), "max_model_len": self.fake.window, "tokens": tokens})

    def _detokenize(self, body: Json) -> None:
        self._json(200, {"prompt": "".join(map(chr, body["tokens"]))})

    def _json(self, status: int, body: Json) -> None:
        self._send(status, json.dumps(body).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving() -> Iterator[FakeVllm]:
    """The server on a port of its own."""
    fake = FakeVllm()
    handler = type("Bound", (Handler,), {"fake": fake})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        fake.base = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
