"""A browser without a screen: what a page looks like to who opens it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def chromium() -> str:
    """The browser, installed from the distribution if it is not there."""
    if not shutil.which("chromium"):
        packages = ["chromium", "fonts-dejavu-core"]
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            subprocess.run(["apt-get", "update", "-q"], check=True)
            subprocess.run(install, env=environment, check=True)
    found = shutil.which("chromium")
    assert found
    return found


def open_page(url: str, address: str, picture: Path | None = None) -> str:
    """The page's document once it stands, as HTML; `address` is the only host that the browser may ask."""
    program = chromium()
    with tempfile.TemporaryDirectory() as profile:
        words = [
            program,
            "--headless",
            "--no-sandbox",  # it will not run as root otherwise
            "--disable-gpu",
            "--ignore-certificate-errors",  # whom to trust is for the tests of certificates
            f"--user-data-dir={profile}",
            f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {address}",
            "--window-size=900,1000",
            f"--screenshot={picture}" if picture else "--dump-dom",
            url,
        ]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
