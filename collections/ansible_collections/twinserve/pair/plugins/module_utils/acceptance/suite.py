"""All checks by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import (  # noqa: F401 (each adds its checks to the list)
    form_checks,
    key_checks,
    load_checks,
    media_checks,
    sampling_checks,
    status_checks,
    text_checks,
    token_checks,
    tool_checks,
)
from .client import Api
from .found import NotPromised, Wrong
from .manner import manner
from .promise import read_promise
from .registry import CHECKS

NAMES = tuple(CHECKS)


def run_check(name: str, api: Api, promise: Mapping[str, Any]) -> dict[str, str]:
    """One check: `result` is passed, failed or skipped, `text` says why."""
    try:
        promised = read_promise(promise)
        CHECKS[name](replace(api, manner=manner(promised)), promised)
    except Wrong as error:
        return {"name": name, "result": "failed", "text": str(error)}
    except NotPromised as reason:
        return {"name": name, "result": "skipped", "text": str(reason)}
    except OSError as error:
        # Outside of a request: one that is not answered says so itself.
        text = f"the check broke off: {type(error).__name__} {error}"
        return {"name": name, "result": "failed", "text": text}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # An answer of another shape than the protocol's, somewhere.
        text = f"the answer has another shape than expected: {type(error).__name__} {error}"
        return {"name": name, "result": "failed", "text": text}
    return {"name": name, "result": "passed", "text": ""}


def unknown(names: Sequence[str]) -> list[str]:
    """Names that are no check."""
    return [name for name in names if name not in CHECKS]


def summary(results: Sequence[Mapping[str, str]]) -> list[str]:
    """How many passed, then what did not, one line each."""
    passed = sum(one["result"] == "passed" for one in results)
    rest = [f"{one['result']} {one['name']}: {one['text']}" for one in results if one["result"] != "passed"]
    return [f"{passed} of {len(results)} checks passed", *rest]


def main() -> None:
    """One check as a program, for a machine without this collection; the argument is a JSON object."""
    given = json.loads(sys.argv[1])
    api = Api(given["base"], given["promise"]["served_name"])
    print(json.dumps(run_check(given["name"], api, given["promise"])))
