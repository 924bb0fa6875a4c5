"""The settings of one host of a pair, from the variables of all its hosts: typed, or all that is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..module_utils import container_limits
from ..module_utils.catalogue import CatalogueError
from ..module_utils.conditions import is_set
from ..module_utils.pair_finding import Pair
from ..module_utils.settings_check import Fault, Resolved, disagreements, resolve
from ..module_utils.settings_names import PLAY_SWITCHES, PLAY_WORDS, ignored_environment, misspelled
from ..module_utils.settings_spec import NotTaken, Setting, convert, listed, show
from .engine_files import ENGINES, Product, engine_names, load_product, read_yaml

DEFAULT_ENGINE = "tensorfold"


@dataclass
class Outcome:
    """What a host gets: its settings and release when `faults` is empty."""

    settings: dict[str, Any] = field(default_factory=dict)
    release: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def setting_names(engines: Path = ENGINES) -> set[str]:
    """All settings of all engines: what to read from a host's variables."""
    return {name for folder in ("common", *engine_names(engines)) for name in _declared(folder, engines)}


def foreign_names(extra: Iterable[str], engines: Path = ENGINES) -> dict[str, set[str]]:
    """The settings among `extra` that not every engine has, each with the engines that have it."""
    owners = {name: _declared(name, engines) for name in engine_names(engines)}
    given = set(extra) - _declared("common", engines)
    found = {name: {engine for engine, names in owners.items() if name in names} for name in given}
    return {name: having for name, having in found.items() if having}


def foreign_faults(foreign: Mapping[str, Collection[str]], used: Collection[str]) -> list[Fault]:
    """Those that `-e` gives to a run of which no pair's engine (`used`) has them."""
    return [
        Fault(
            f"{name} is given by -e and no pair of this run has it: it belongs to engine "
            f"{listed(sorted(having))}, and they serve with {listed(sorted(used))}"
        )
        for name, having in sorted(foreign.items())
        if not set(having) & set(used)
    ]


def _declared(folder: str, engines: Path) -> set[str]:
    return set(read_yaml(engines / folder / "settings.yml")["settings"])


def check_host(
    host: str,
    pair: Pair,
    raw: Mapping[str, Mapping[str, Any]],
    variables: Mapping[str, Collection[str]],
    environment: Iterable[str] = (),
    engines: Path = ENGINES,
) -> Outcome:
    """Check host `host`; `raw` has the settings that each host sets, `variables` all its names."""
    outcome = Outcome()
    own = raw[host]
    known = setting_names(engines) | PLAY_SWITCHES
    outcome.faults += _strange_names(variables[host], variables[pair.hosts[0]], known)
    product = _product(own, outcome, engines)
    if product is None:
        return outcome
    name = _release_name(own, product, outcome)
    try:
        release = product.release(name)
    except CatalogueError as error:
        outcome.faults.append(Fault(str(error)))
        return outcome
    resolved = resolve(product.specs, product.rules, release, {**own, "release": name})
    ordered = {one: raw[one] for one in pair.hosts}
    outcome.faults += [Fault(text) for text in container_limits.faults(release)]
    outcome.faults += resolved.faults + disagreements(
        product.specs, ordered, {**resolved.defaults, "release": name}
    )
    if len(pair.hosts) not in release["ranks"]:
        supported = listed([str(count) for count in release["ranks"]])
        text = f"{pair.name} has {len(pair.hosts)} hosts: {release['engine']} {name} serves on {supported}"
        outcome.faults.append(Fault(text))
    outcome.warnings += resolved.warnings
    if foreign := [name for name, value in own.items() if is_set(value) and name not in product.specs]:
        outcome.warnings.append(f"ignored, as engine {release['engine']} lacks them: {', '.join(foreign)}")
    if ignored := ignored_environment(environment, release.get("ignored_environment", [])):
        outcome.warnings.append(f"ignored on the controller: {', '.join(ignored)}")
    outcome.settings, outcome.release = public(resolved, product.specs), release
    return outcome


def _strange_names(mine: Iterable[str], heads: Collection[str], known: set[str]) -> list[Fault]:
    """Misspelt settings; one that the head does not have too is this host's own affair."""
    return [Fault(text, node=name not in heads) for name in mine for text in misspelled([name], known)]


def switch_faults(values: Mapping[str, Any]) -> list[Fault]:
    """Switches of a play that are neither yes nor no."""
    faults = []
    for name, value in values.items():
        try:
            convert(Setting(name, "bool", says="", group=""), value)
        except NotTaken as refusal:
            faults.append(Fault(str(refusal)))
    return faults


def word_faults(extra: Mapping[str, Any]) -> list[Fault]:
    """Words for a play among what `-e` says, where they are wrong; a host's own variables may be named so."""
    faults = [Fault(text) for text in misspelled(extra, set(PLAY_WORDS))]
    for name, words in PLAY_WORDS.items():
        if name in extra and extra[name] not in words:
            faults.append(Fault(f"{name} is {show(extra[name])}: it takes {listed(list(words))}"))
    if extra.get("state") == "absent":
        # playbooks/fabric.yml asks for no settings then: whoever asks would install what was just taken away.
        call = "ansible-playbook playbooks/fabric.yml -e state=absent"
        faults.append(Fault(f"state is 'absent': only the fabric can be put back as it was, by {call}"))
    return faults


def public(resolved: Resolved, specs: Mapping[str, Setting]) -> dict[str, Any]:
    """The values without secrets, of which only `<name>_given` is told."""
    values = {
        name: value for name, value in resolved.values.items() if name in specs and not specs[name].secret
    }
    told = {f"{name}_given": name in resolved.given for name, spec in specs.items() if spec.secret}
    return {**values, **told, "effective": resolved.effective}


def _product(own: Mapping[str, Any], outcome: Outcome, engines: Path) -> Product | None:
    name = own.get("engine") if is_set(own.get("engine")) else DEFAULT_ENGINE
    if name not in engine_names(engines):
        outcome.faults.append(Fault(f"engine is {show(name)}: it takes {listed(engine_names(engines))}"))
        return None
    folders = own.get("catalogue_path") or []
    folders = [part.strip() for part in folders.split(",")] if isinstance(folders, str) else folders
    try:
        return load_product(str(name), [str(folder) for folder in folders], engines)
    except CatalogueError as error:
        outcome.faults.append(Fault(str(error)))
        return None


def _release_name(own: Mapping[str, Any], product: Product, outcome: Outcome) -> str:
    """The release that was asked for; an unknown one is a fault, and the default serves the other checks."""
    default = str(product.engine["default_release"])
    wanted = own.get("release") if is_set(own.get("release")) else default
    if wanted in product.releases():
        return str(wanted)
    outcome.faults.append(Fault(f"release is {show(wanted)}: it takes {listed(product.releases())}"))
    return default
