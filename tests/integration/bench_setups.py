"""AIPerf for hosts that reach no package index."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from lab_pair import ROOT, Lab
from link_setups import shell

CONSTRAINTS = ROOT / "roles/benchmark/files/constraints.txt"


class Quiet(SimpleHTTPRequestHandler):
    """Files, without a line for each."""

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextmanager
def aiperf_wheels(lab: Lab) -> Iterator[str]:
    """A page with AIPerf's wheels for the hosts' Python, on the lab's gateway; skips where pip has none."""
    version = shell(
        lab, lab.hosts[0], "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'"
    ).strip()
    folder = ROOT / ".cache" / f"aiperf-wheels-{version}"
    tags = [f"--platform=manylinux{kind}_x86_64" for kind in ("2014", "_2_17", "_2_28", "_2_34")]
    abis = [f"--abi={abi}" for abi in (f"cp{version.replace('.', '')}", "abi3", "none")]
    pip = [sys.executable, "-m", "pip", "download", "-q", "-c", str(CONSTRAINTS), "aiperf", "-d", str(folder)]
    python = ["--only-binary=:all:", f"--python-version={version}", "--implementation=cp"]
    done = subprocess.run([*pip, *python, *tags, *abis], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"AIPerf's wheels cannot be had here: {done.stderr.strip()[-300:]}")
    (settings,) = lab.inventory.glob("group_vars/*/lab.yml")
    found = re.search(r"hf_endpoint: http://([\d.]+)", settings.read_text())
    assert found
    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer((found[1], 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{found[1]}:{server.server_address[1]}/"
        finally:
            server.shutdown()
