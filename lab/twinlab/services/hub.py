"""The lab's model hub: speaks as much of the Hugging Face HTTP API as `hf download` uses.

`python -m twinlab.services.hub --listen ADDRESS --port N --root DIR --log FILE [--token T]` serves
DIR/ORG/NAME/ at the revision that DIR/ORG/NAME.json tells. The log has one JSON object a request, without any
token.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import urllib.parse
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar, TextIO

from .hub_store import CHUNK, File, Repository, Store

API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?/?")
RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Error",
}


class Answer(Exception):
    """An answer that ends the handling of a request: an error, a redirect, or a JSON value."""

    def __init__(self, status: int, body: object = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers or {}


def fault(status: int, code: str, message: str) -> Answer:
    """An error as the real hub words it: clients tell causes apart by the header X-Error-Code."""
    headers = {"X-Error-Message": message}
    if code:
        headers["X-Error-Code"] = code
    return Answer(status, {"error": message}, headers)


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    store: ClassVar[Store]
    log: ClassVar[TextIO]
    token: ClassVar[str | None]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._send(fault(404, "", "this hub only serves"))

    def do_GET(self) -> None:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        try:
            if found := API.fullmatch(path):
                self._describe(found[1], found[2], found[3])
            elif found := RESOLVE.fullmatch(path):
                self._resolve(found[1], found[2], found[3])
            else:
                raise fault(404, "", "no such route")
        except Answer as answer:
            self._send(answer)
        except ValueError as error:  # the lab's own mistake in a description
            self._send(fault(500, "", str(error)))

    def _describe(self, name: str, kind: str | None, revision: str | None) -> None:
        repository = self._open(name, revision, "api")
        files = self.store.files(repository)
        if kind == "tree":
            raise Answer(200, [file.entry() for file in files])
        siblings = [{"rfilename": file.name} for file in files]
        raise Answer(
            200, {"id": name, "sha": repository.sha, "gated": bool(repository.gated), "siblings": siblings}
        )

    def _resolve(self, name: str, revision: str, wanted: str) -> None:
        repository = self._open(name, revision, "resolve")
        file = self.store.file(repository, wanted)
        if file is None:
            missing = fault(404, "EntryNotFound", "Entry not found")
            raise Answer(404, b"", {**missing.headers, "X-Repo-Commit": repository.sha})
        limit = repository.fault("rate_limit", file.name)
        if limit and self.command == "HEAD" and self.store.use("head", f"{name}/{wanted}") <= limit:
            raise Answer(429, b"", {"Retry-After": "1", "RateLimit": '"resolvers";r=0;t=1'})
        headers = {"X-Repo-Commit": repository.sha, "ETag": f'"{file.oid}"', "Accept-Ranges": "bytes"}
        for kind, header in (("no_commit", "X-Repo-Commit"), ("no_etag", "ETag")):
            if repository.fault(kind, file.name):
                del headers[header]
        self._send_file(repository, file, headers)

    def _open(self, name: str, revision: str | None, route: str) -> Repository:
        """The repository, if this client may see it and it has this revision."""
        repository = self.store.find(name)
        if repository is None:
            raise fault(404, "RepoNotFound", "Repository not found")
        moved = repository.fault("moved_to")
        if moved:
            raise Answer(307, b"", {"Location": self.path.replace(name, moved, 1)})
        broken = repository.fault("error")
        if broken and broken.get("on", route) == route and self._counts(f"error {route}", name, broken):
            raise fault(broken["status"], broken.get("code", ""), REASONS.get(broken["status"], "error"))
        self._check_access(repository)
        if revision not in (None, repository.sha, "main"):
            raise fault(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return repository

    def _counts(self, what: str, name: str, limited: dict[str, int]) -> bool:
        """Whether a fault that may be limited to its first `times` strikes still does."""
        return self.store.use(what, name) <= limited.get("times", sys.maxsize)

    def _check_access(self, repository: Repository) -> None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        restricted = f"Access to model {repository.name} is restricted"
        if repository.gated == "denied" or (repository.gated and given and self.token not in (None, given)):
            raise fault(403, "GatedRepo", f"{restricted} and you are not in the authorized list.")
        if repository.gated and not given:
            raise fault(401, "GatedRepo", f"{restricted}. You must be authenticated to access it.")

    def _send_file(self, repository: Repository, file: File, headers: dict[str, str]) -> None:
        start, end, status = 0, file.size, 200
        asked = RANGE.fullmatch(self.headers.get("Range", ""))
        if asked and not repository.fault("no_range", file.name):
            start, status = int(asked[1]), 206
            end = min(end, int(asked[2]) + 1) if asked[2] else end
            if start >= file.size:
                raise Answer(416, b"", {"Content-Range": f"bytes */{file.size}"})
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
        stop = self._stop(repository, file, start, end)
        promised = stop if repository.fault("short", file.name) and self.command == "GET" else end
        self.close_connection = self.close_connection or stop < promised
        self._head(
            status,
            {**headers, "Content-Length": str(promised - start), "Content-Type": "application/octet-stream"},
        )
        if self.command == "GET":
            self._send_bytes(repository, file, start, stop)

    def _stop(self, repository: Repository, file: File, start: int, end: int) -> int:
        """Where the bytes end: before the end if a fault cuts this file."""
        if self.command != "GET":
            return end
        cuts = repository.fault("truncate", file.name)
        cut = bool(cuts) and self.store.use("get", f"{repository.name}/{file.name}") <= cuts
        return start + (end - start) // 2 if cut or repository.fault("short", file.name) else end

    def _send_bytes(self, repository: Repository, file: File, start: int, stop: int) -> None:
        corrupt = repository.fault("corrupt", file.name)
        with file.path.open("rb") as content:
            content.seek(start)
            left = stop - start
            while left > 0:
                speed = self._speed(repository, file)
                chunk = max(1, min(CHUNK, int(speed / 5))) if speed else CHUNK
                data = content.read(min(left, chunk))
                left -= len(data)
                self.wfile.write(bytes(len(data)) if corrupt else data)
                if speed:
                    time.sleep(len(data) / speed)

    def _speed(self, repository: Repository, file: File) -> float:
        """Bytes a second, 0 for all that there is; a file that is slow is so until the fault is lifted."""
        now = self.store.find(repository.name) if repository.fault("slow", file.name) else None
        return float((now and now.fault("slow", file.name)) or 0)

    def _send(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        kind = "application/json" if answer.body != b"" else "text/plain"
        self._head(answer.status, {**answer.headers, "Content-Length": str(len(body)), "Content-Type": kind})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self._note(status)
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _note(self, status: int) -> None:
        entry = {
            "time": round(time.time(), 3),
            "client": self.client_address[0],
            "method": self.command,
            "path": self.path,
            "status": status,
            "range": self.headers.get("Range"),
            "with_token": "Authorization" in self.headers,
        }
        self.log.write(json.dumps(entry) + "\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Requests go to the log file, not to stderr."""


class Server(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is its own affair; anything else is a fault of the hub."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def make_server(address: str, port: int, root: Path, log: TextIO, token: str | None = None) -> Server:
    """A hub that listens but does not serve yet; port 0 takes any."""
    handler = type("HubHandler", (Handler,), {"store": Store(root), "log": log, "token": token})
    return Server((address, port), handler)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="twinlab.services.hub", description="A model hub for the lab.")
    parser.add_argument("--listen", default="127.0.0.1", help="address")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--root", type=Path, required=True, help="ORG/NAME/ and ORG/NAME.json are below")
    parser.add_argument("--log", type=Path, required=True, help="one JSON object a request")
    parser.add_argument("--token", help="the token that opens gated repositories; any does without")
    options = parser.parse_args(argv)
    with options.log.open("a", buffering=1) as log:
        make_server(options.listen, options.port, options.root, log, options.token).serve_forever()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
