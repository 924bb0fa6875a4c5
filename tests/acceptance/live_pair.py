"""A pair that is deployed, as the acceptance tests see it, and the two ways to ask its API."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.twinserve.pair.plugins.module_utils import acceptance
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.client import Api, netloc
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.suite import run_check
from ansible_collections.twinserve.pair.plugins.module_utils.api_promise import promised
from ansible_collections.twinserve.pair.plugins.module_utils.catalogue import CatalogueError
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import (
    Product,
    engine_names,
    load_product,
)
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import DEFAULT_ENGINE, public

Outcome = dict[str, str]
# Run on the head by its own Python; the checks come along, and are gone afterwards.
ON_HEAD = """
import base64, sys, tempfile
with tempfile.NamedTemporaryFile(suffix=".zip") as packed:
    packed.write(base64.b64decode(sys.argv.pop()))
    packed.flush()
    sys.path.insert(0, packed.name)
    from acceptance.suite import main
    main()
"""


@dataclass(frozen=True)
class Pair:
    """The hosts of one pair by rank, and what its head serves."""

    hosts: tuple[Any, ...]
    config: dict[str, Any]


def check_on_head(pair: Pair, name: str) -> Outcome:
    """One check of the API from the head, where it listens even when nobody else may reach it."""
    asked = {
        "base": f"http://{netloc(pair.config['api']['host'], pair.config['api']['port'])}",
        "promise": pair.config["promise"],
        "name": name,
    }
    program = ("python3", "-c", ON_HEAD, json.dumps(asked), packed_checks())
    outcome: Outcome = json.loads(pair.hosts[0].check_output(" ".join(["%s"] * len(program)), *program))
    return outcome


def check_from_here(base: str, key: str, ca_file: str, promise: dict[str, Any], name: str) -> Outcome:
    """One check of the API from this machine."""
    return run_check(name, Api(base.rstrip("/"), promise["served_name"], key, ca_file), promise)


def catalogue_promise(
    release: str | None, changed: Sequence[str], engine: str | None = None, catalogue: Sequence[str] = ()
) -> dict[str, Any]:
    """What a release promises with these settings (name=value); a wrong one is refused as in a playbook.

    `engine` is that of the release when nothing is said, and Twinserve's default when none of them is;
    `catalogue` are folders with more releases.
    """
    if release is None:
        product = load_product(engine or DEFAULT_ENGINE, catalogue)
    else:
        product = _product_of(release, [engine] if engine else engine_names(), catalogue)
    data = product.release(release or product.engine["default_release"])
    raw: dict[str, Any] = {"engine": data["engine"], "release": data["release"]}
    # Whoever serves it has accepted them.
    raw |= {name: True for name in product.specs if name.startswith("accept_")}
    raw |= dict(one.split("=", 1) for one in changed)
    found = resolve(product.specs, product.rules, data, raw)
    if found.faults:
        raise ValueError("; ".join(fault.text for fault in found.faults))
    facts = public(found, product.specs)
    return promised({**facts, **facts["effective"]}, data)


def _product_of(release: str, engines: Sequence[str], catalogue: Sequence[str]) -> Product:
    """The engine that has this release; raises ValueError when none has."""
    for name in engines:
        product = load_product(name, catalogue)
        with contextlib.suppress(CatalogueError):  # it extends what another engine has
            if release in product.entries and product.release(release)["engine"] == name:
                return product
    raise ValueError(
        f"no release {release} of {' or '.join(engines)}: a catalogue folder of yours is --catalogue"
    )


@functools.cache
def packed_checks() -> str:
    """The checks as base64 of a zip that Python can import from."""
    folder = Path(str(acceptance.__file__)).parent
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.glob("*.py")):
            archive.write(path, f"{folder.name}/{path.name}")
    return base64.b64encode(packed.getvalue()).decode()
