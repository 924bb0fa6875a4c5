"""A pair that is deployed, as the acceptance tests see it, and the two ways to ask its API."""

from __future__ import annotations

import base64
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
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.promise import promised
from ansible_collections.twinserve.pair.plugins.module_utils.acceptance.suite import run_check
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product
from ansible_collections.twinserve.pair.plugins.plugin_utils.host_settings import public

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
    release: str | None, changed: Sequence[str], engine: str = "tensorfold"
) -> dict[str, Any]:
    """What a release promises with these settings (name=value); a wrong one is refused as in a playbook."""
    product = load_product(engine)
    data = product.release(release or product.engine["default_release"])
    raw: dict[str, Any] = {"accept_dflash2_license": True, "release": data["release"]}
    raw |= dict(one.split("=", 1) for one in changed)
    found = resolve(product.specs, product.rules, data, raw)
    if found.faults:
        raise ValueError("; ".join(fault.text for fault in found.faults))
    facts = public(found, product.specs)
    return promised({**facts, **facts["effective"]}, data)


@functools.cache
def packed_checks() -> str:
    """The checks as base64 of a zip that Python can import from."""
    folder = Path(str(acceptance.__file__)).parent
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.glob("*.py")):
            archive.write(path, f"{folder.name}/{path.name}")
    return base64.b64encode(packed.getvalue()).decode()
