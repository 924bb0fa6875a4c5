"""The lab's image registry: Debian's docker-registry with a configuration of ours."""

from __future__ import annotations

import json

from ..layout import Lab

_UNTRACED = {"OTEL_TRACES_EXPORTER": "none"}


def write_config(lab: Lab) -> list[str]:
    """Write the configuration (JSON is YAML too) and return the command line of the registry."""
    config = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(lab.registry_storage)}, "delete": {"enabled": True}},
        "http": {"addr": lab.registry},
    }
    lab.registry_storage.mkdir(parents=True, exist_ok=True)
    file = lab.folder / "registry.json"
    file.write_text(json.dumps(config, indent=2) + "\n")
    return [
        "env",
        *(f"{key}={value}" for key, value in _UNTRACED.items()),
        "docker-registry",
        "serve",
        str(file),
    ]
