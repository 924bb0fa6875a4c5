"""`up --hf`: the model hub's client on the hosts, for the user alone, out of the engine's image."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .base import USER
from .errors import LabError
from .layout import Host, Lab
from .power import command_in, run_in
from .services import image

_UNPACK = f"""set -eu
site=$(python3 -c 'import sys; print("lib/python%d.%d/site-packages" % sys.version_info[:2])')
mkdir -p "/home/{USER}/.local/$site" /home/{USER}/.local/bin
tar -xzf - -C "/home/{USER}/.local/$site" --strip-components=2 opt/hub-client
"""
_SCRIPT = f"""set -eu
cat > /home/{USER}/.local/bin/hf
chmod 755 /home/{USER}/.local/bin/hf
chown -R {USER}: /home/{USER}/.local
"""


def install(lab: Lab) -> None:
    """Install it on both running hosts; they have the same Python as the image.  Raises LabError."""
    layer = image.build_image(lab.root / "image").layers[0].path
    for host in lab.hosts:
        if run_in(host, ["test", "-x", f"/home/{USER}/.local/bin/hf"]).returncode != 0:
            _install(host, layer)


def _install(host: Host, layer: Path) -> None:
    with layer.open("rb") as stream:
        done = subprocess.run(
            command_in(host, ["sh", "-c", _UNPACK]), stdin=stream, capture_output=True, check=False
        )
    if done.returncode != 0:
        raise LabError(f"cannot unpack the hub's client on {host.name}: {done.stderr.decode().strip()}")
    written = run_in(host, ["sh", "-c", _SCRIPT], (image.FILES / "hf").read_text())
    if written.returncode != 0:
        raise LabError(f"cannot install `hf` on {host.name}: {written.stderr.strip()}")
