"""No setting is an empty promise: each one reaches the engine or is read by a task or module."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import engine_names, load_product

ROOT = Path(__file__).resolve().parents[2]
ENGINES = {name: load_product(name).specs for name in engine_names()}
# Read by the settings' own code while it decides.
OWN = {
    "engine",
    "release",
    "catalogue_path",
    "accept_dflash2_license",
    "accept_nvidia_open_model_license",
    "extra_args",
    "engine_env",
    "image_digest",
}
# With one choice there is nothing to read.
OWN |= {name for specs in ENGINES.values() for name, spec in specs.items() if len(spec.choices) == 1}
SOURCES = [
    path.read_text(encoding="utf-8")
    for folder in (
        "roles",
        "playbooks",
        "templates",
        "collections/ansible_collections/twinserve/pair/plugins",
    )
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".yml", ".py", ".j2") and path.is_file()
]


@pytest.mark.parametrize(
    ("engine", "name"),
    [(engine, name) for engine, specs in ENGINES.items() for name in sorted(set(specs) - OWN)],
)
def test_every_setting_is_used(engine: str, name: str) -> None:
    text = (ROOT / "engines" / engine / "engine.yml").read_text(encoding="utf-8")
    in_code = any(re.search(rf"\b{name}\b", source) for source in SOURCES)
    in_engine = re.search(rf"\$\{{{name}\}}|\b{name}:", text) is not None
    assert in_code or in_engine, f"{name} is declared and documented, but nothing reads it"
