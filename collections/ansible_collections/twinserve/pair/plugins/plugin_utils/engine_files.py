"""Reads the engines' YAML on the controller; everything after that is plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

from ..module_utils.catalogue import CatalogueError, release_data, release_names
from ..module_utils.settings_spec import Setting, parse_settings

# collections/ansible_collections/twinserve/pair/plugins/plugin_utils/engine_files.py
ENGINES = Path(__file__).resolve().parents[6] / "engines"


@dataclass(frozen=True)
class Product:
    """One engine: its settings with the common ones, its rules, its data and its catalogue."""

    specs: Mapping[str, Setting]
    rules: Sequence[Mapping[str, Any]]
    engine: Mapping[str, Any]
    entries: Mapping[str, Mapping[str, Any]]

    def releases(self) -> list[str]:
        """Names of the releases, oldest first."""
        return release_names(self.engine["engine"], self.entries)

    def release(self, name: str) -> dict[str, Any]:
        """All data of one release; raises CatalogueError."""
        return release_data(name, self.engine, self.entries)


def engine_names(engines: Path = ENGINES) -> list[str]:
    """The engines there are: folders with an engine.yml."""
    return sorted(path.parent.name for path in engines.glob("*/engine.yml"))


def load_product(name: str, catalogue: Sequence[str] = (), engines: Path = ENGINES) -> Product:
    """Everything about engine `name`, with the entries of more catalogue folders.

    Raises CatalogueError for folders that do not exist, names that are there twice, dead ends.
    """
    common = read_yaml(engines / "common" / "settings.yml")
    own = read_yaml(engines / name / "settings.yml")
    entries: dict[str, Mapping[str, Any]] = {
        path.stem: {"engine": name, **read_yaml(path)}
        for path in sorted((engines / name / "releases").glob("*.yml"))
    }
    for folder in catalogue:
        _add_folder(entries, Path(folder))
    return Product(
        specs=parse_settings({**common["settings"], **own["settings"]}),
        rules=[*common["rules"], *own["rules"]],
        engine=_engine(engines / name),
        entries=entries,
    )


def _engine(folder: Path) -> dict[str, Any]:
    """The engine's data, with its published results where somebody has any."""
    engine, reference = read_yaml(folder / "engine.yml"), folder / "reference.yml"
    return {**engine, "reference": read_yaml(reference)} if reference.is_file() else engine


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML file that holds a map; raises CatalogueError when it does not."""
    try:
        data = yaml_load(path.read_text(encoding="utf-8"))  # by libyaml, which is ten times as fast
    except yaml.YAMLError as error:
        raise CatalogueError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise CatalogueError(f"{path} holds no map")
    return data


def _add_folder(entries: dict[str, Mapping[str, Any]], folder: Path) -> None:
    if not folder.is_dir():
        raise CatalogueError(f"catalogue_path: {folder} is no folder")
    for path in sorted(folder.glob("*.yml")):
        if path.stem in entries:
            raise CatalogueError(
                f"{path}: there is a release {path.stem} already; give the file another name"
            )
        entries[path.stem] = read_yaml(path)
