"""Where the hosts' packages come from: this machine's apt sources, moved to the hosts' release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .command import run
from .errors import Refusal

# distribution of this machine -> the release of the hosts, and the part of the archive they need
_RELEASES = {"debian": ("trixie", ("main",)), "ubuntu": ("noble", ("main", "universe"))}
_FORMAT = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"


@dataclass(frozen=True)
class Source:
    """One line of a sources.list: an archive, a suite of the hosts' release, and its components."""

    uri: str
    suite: str
    components: tuple[str, ...]

    def line(self, uri: str | None = None) -> str:
        """The line, with another address for the archive if one is given."""
        return f"deb {uri or self.uri} {self.suite} {' '.join(self.components)}\n"


@dataclass(frozen=True)
class Distribution:
    """What the hosts run: `debian` or `ubuntu`, the release's name, and where its packages are."""

    id: str
    release: str
    sources: tuple[Source, ...]


def parse_os_release(text: str) -> dict[str, str]:
    """The KEY=value lines of /etc/os-release."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key: value.strip('"') for key, value in pairs}


def translate(targets: Iterable[str], distribution: str, codename: str) -> tuple[Source, ...]:
    """The hosts' sources, from `apt-get indextargets` lines (uri|suite|component|origin) of this machine.

    Only the distribution's own archive counts: other publishers may have nothing for the hosts' release.
    """
    release, components = _RELEASES[distribution]
    sources: list[Source] = []
    for target in targets:
        uri, suite, component, origin = target.split("|")
        wanted = suite in (codename, f"{codename}-updates", f"{codename}-security")
        if origin.lower() not in (distribution, "$(origin)") or component != "main" or not wanted:
            continue
        source = Source(uri.rstrip("/"), suite.replace(codename, release), components)
        if source not in sources:
            sources.append(source)
    return tuple(sources)


def distribution() -> Distribution:
    """The hosts' distribution on this machine.  Raises Refusal when apt here knows no archive for it."""
    system = parse_os_release(Path("/etc/os-release").read_text())
    name = system.get("ID", "")
    if name not in _RELEASES:
        raise Refusal(f"needs Debian or Ubuntu (this is {system.get('PRETTY_NAME', 'unknown')})")
    codename = system.get("VERSION_CODENAME", "")
    sources = translate(_targets(), name, codename)
    if not sources:  # apt tells its sources only after it has read them once
        run(["apt-get", "update", "-q"])
        sources = translate(_targets(), name, codename)
    if not sources:
        raise Refusal(
            "apt on this machine has no source of its own distribution: see /etc/apt/sources.list.d"
        )
    return Distribution(name, _RELEASES[name][0], sources)


def _targets() -> list[str]:
    return run(["apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages"]).splitlines()
