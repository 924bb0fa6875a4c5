"""A caching mirror for the hosts' packages: /0/..., /1/... stand for the archives of this machine's own apt.

The hosts reach nobody else, so they need neither a way out nor a name server.
"""

from __future__ import annotations

import argparse
import hashlib
import http.server
import os
import shutil
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO

_TIMEOUT = 60.0  # seconds, for the archive to say something


def upstream(path: str, archives: list[str]) -> str | None:
    """The real address of a path here, None when it belongs to no archive."""
    number, _, rest = path.lstrip("/").partition("/")
    if not number.isdigit() or int(number) >= len(archives) or ".." in rest.split("/"):
        return None
    return f"{archives[int(number)]}/{rest}"


def never_changes(path: str) -> bool:
    """Whether what is at a path can be kept for good: packages, and indexes named by their content."""
    return path.endswith(".deb") or "/by-hash/" in path


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET from the cache or from the archive."""

    protocol_version = "HTTP/1.1"
    archives: list[str]
    cache: Path

    def do_GET(self) -> None:  # noqa: N802 - the name that the base class looks for
        """Send a file."""
        url = upstream(self.path, self.archives)
        if url is None:
            self.send_error(404)
            return
        kept = self.cache / hashlib.sha256(url.encode()).hexdigest()
        file = kept if never_changes(url) else kept.with_suffix(f".{threading.get_ident()}")
        try:
            if file != kept or not kept.exists():
                self._fetch(url, file)
            with file.open("rb") as stream:
                if file != kept:
                    file.unlink()
                self._send(stream)
        except urllib.error.HTTPError as error:
            self.send_error(error.code)
        except OSError as error:
            self.send_error(502, str(error))

    def _fetch(self, url: str, file: Path) -> None:
        part = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, part.open("wb") as stream:
                shutil.copyfileobj(answer, stream)
            part.rename(file)
        finally:
            part.unlink(missing_ok=True)

    def _send(self, stream: BinaryIO) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(os.fstat(stream.fileno()).st_size))
        self.end_headers()
        shutil.copyfileobj(stream, self.wfile)


def main(argv: list[str]) -> int:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="apt_mirror")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("archive", nargs="+")
    options = parser.parse_args(argv)
    options.cache.mkdir(parents=True, exist_ok=True)
    Handler.archives, Handler.cache = options.archive, options.cache
    http.server.ThreadingHTTPServer((options.listen, options.port), Handler).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
