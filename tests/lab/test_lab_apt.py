"""Packages: from this machine's sources to the hosts' mirror."""

from __future__ import annotations

import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from twinlab.apt_sources import Source, parse_os_release, translate
from twinlab.services import apt_mirror

DEBIAN = [
    "http://mirror.example/debian/|bookworm|main|Debian",
    "http://mirror.example/debian/|bookworm|contrib|Debian",
    "http://extra.example/debian/|bookworm|contrib|Debian",
    "http://mirror.example/debian/|bookworm-updates|main|Debian",
    "http://mirror.example/debian/|bookworm-proposed-updates|main|Debian",
    "https://security.example/debian-security/|bookworm-security|main|Debian",
    "https://packages.example/tool/|bookworm|main|Tool Makers",
    "http://mirror.example/debian/|bookworm-backports|main|Debian Backports",
    "http://mirror.example/debian/|bookworm|main|Debian",
]


def test_debian_sources_move_to_the_hosts_release() -> None:
    assert translate(DEBIAN, "debian", "bookworm") == (
        Source("http://mirror.example/debian", "trixie", ("main",)),
        Source("http://mirror.example/debian", "trixie-updates", ("main",)),
        Source("https://security.example/debian-security", "trixie-security", ("main",)),
    )


def test_ubuntu_sources_keep_their_archive() -> None:
    targets = [
        "http://ubuntu.example/ubuntu/|jammy|main|Ubuntu",
        "http://ubuntu.example/ubuntu/|jammy|universe|Ubuntu",
        "http://ubuntu.example/ubuntu/|jammy-security|main|Ubuntu",
    ]
    assert translate(targets, "ubuntu", "jammy") == (
        Source("http://ubuntu.example/ubuntu", "noble", ("main", "universe")),
        Source("http://ubuntu.example/ubuntu", "noble-security", ("main", "universe")),
    )


def test_before_the_first_update_apt_does_not_know_the_origin() -> None:
    assert len(translate(["http://m.example/d/|trixie|main|$(ORIGIN)"], "debian", "trixie")) == 1


def test_os_release() -> None:
    assert parse_os_release('ID=debian\nNAME="Debian GNU/Linux"\n# x\n') == {
        "ID": "debian",
        "NAME": "Debian GNU/Linux",
    }


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/0/dists/trixie/InRelease", "http://one/debian/dists/trixie/InRelease"),
        ("/1/pool/x.deb", "https://two/security/pool/x.deb"),
        ("/2/pool/x.deb", None),
        ("/", None),
        ("/etc/passwd", None),
        ("/0/../../etc/passwd", None),
    ],
)
def test_only_the_archives_can_be_asked(path: str, url: str | None) -> None:
    assert apt_mirror.upstream(path, ["http://one/debian", "https://two/security"]) == url


class Archive(http.server.BaseHTTPRequestHandler):
    """An archive that counts what it is asked."""

    asked: list[str] = []

    def do_GET(self) -> None:  # noqa: N802
        self.asked.append(self.path)
        found = self.path != "/gone.deb"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(f"content of {self.path} {len(self.asked)}".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


def _serve(handler: type[http.server.BaseHTTPRequestHandler]) -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A mirror with one archive behind it."""
    Archive.asked = []
    archive = _serve(Archive)

    class Mirror(apt_mirror.Handler):
        archives = [f"http://127.0.0.1:{archive.server_port}"]
        cache = tmp_path

    front = _serve(Mirror)
    yield f"http://127.0.0.1:{front.server_port}/0"
    front.shutdown()
    archive.shutdown()


def _get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())


def test_packages_are_fetched_once_and_indexes_each_time(mirror: str, tmp_path: Path) -> None:
    assert _get(f"{mirror}/a.deb") == _get(f"{mirror}/a.deb") == "content of /a.deb 1"
    assert [_get(f"{mirror}/InRelease"), _get(f"{mirror}/InRelease")] == [
        "content of /InRelease 2",
        "content of /InRelease 3",
    ]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_error_of_the_archive_is_passed_on_and_not_kept(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        _get(f"{mirror}/gone.deb")
    assert not list(tmp_path.iterdir())
