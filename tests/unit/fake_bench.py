"""A small API with counters, and programs in the place of AIPerf and of the Python that draws."""

from __future__ import annotations

import json
import os
import pwd
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded/aiperf"
# Writes what AIPerf would, after it has noted how it was called; a file `fail-4` makes requests fail at 4.
AIPERF = """#!/bin/sh
home={home}
for word; do
  [ "$before" = --output-artifact-dir ] && out=$word
  [ "$before" = --concurrency ] && count=$word
  before=$word
done
echo "$*" >>"$home/command-lines"
echo "$count $OPENAI_API_KEY" >>"$home/calls"
[ -e "$home/silent-$count" ] && exit 1
mkdir -p "$out/phases/warmup"
echo '{{"completed_request_count": {{"avg": 4}}}}' >"$out/phases/warmup/profile_export_aiperf.json"
name=good; [ -e "$home/fail-$count" ] && name=failing
cp "{recorded}/$name.json" "$out/profile_export_aiperf.json"
[ -e "$home/wait-$count" ] && "$home/nap" 60
exit 0
"""
DRAWS = """#!/bin/sh
[ -e "{home}/no-plots" ] && {{ echo "no module named matplotlib" >&2; exit 1; }}
echo drawn >"$(dirname "$2")/report.png"
"""


def programs(home: Path) -> Path:
    """Write both; AIPerf's path."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "nap").symlink_to("/bin/sleep")
    for name, text in (("aiperf", AIPERF), ("python", DRAWS)):
        path = home / name
        path.write_text(text.format(home=home, recorded=RECORDED))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return home / "aiperf"


def me() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


@contextmanager
def api(health: dict[str, Any], metrics: str = "") -> Iterator[str]:
    """Its address; /health tells what `health` is by then, whose total grows by its `step` at each look."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802 (the library's name)
            if "step" in health:
                health["requests_total"] += health["step"]
            text = metrics if self.path == "/metrics" else json.dumps(health)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
