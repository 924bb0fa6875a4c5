"""How an image is built from data: what its recipe pins, its Dockerfile, what tells two recipes apart. Pure.

A recipe names a base, git sources at commits, patches against an installed Python package, more packages
(`extras`, or `requirements` with hashes), and shell lines that install and check. All that a build reads is
pinned there, so the hash over it says on the controller whether anything changed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

RECIPE_LABEL = "twinserve.recipe"
_WORK = "/twinserve-build"
_SETTING = re.compile(r"\$\{(\w+)\}")
_SOURCE = re.compile(r"(?P<url>\S+)@(?P<commit>[0-9a-f]{40})")
# Where the package lies, without importing it: that may want a GPU.
_BESIDE = (
    "import importlib.util, os, sys; "
    "print(os.path.dirname(importlib.util.find_spec(sys.argv[1]).submodule_search_locations[0]))"
)


class RecipeError(ValueError):
    """A recipe that cannot be built from; the message is for whoever wrote it."""


def resolved(settings: Mapping[str, Any], release: Mapping[str, Any]) -> dict[str, Any] | None:
    """The release's recipe with the settings filled in; None when it has none, or lacks a pin."""
    recipe = release.get("recipe")
    if not recipe or any(value is None for value in recipe.values()):
        return None
    filled: dict[str, Any] = _filled(recipe, {name: str(value) for name, value in settings.items()})
    return filled


def _filled(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, words) for one in value]
    if not isinstance(value, str):
        return value
    # Only this form: the shell lines have variables of their own.
    return _SETTING.sub(lambda found: words.get(found[1], found[0]), value)


def source(text: str) -> tuple[str, str]:
    """Address and commit of `URL@COMMIT`; raises RecipeError for one that is not pinned."""
    if not (found := _SOURCE.fullmatch(text)):
        raise RecipeError(f"{text} is no git source with a pinned commit (URL@40 hex digits)")
    return found["url"], found["commit"]


def fingerprint(recipe: Mapping[str, Any]) -> str:
    """sha256 over all inputs of the build, 64 hex digits."""
    inputs = {"recipe": recipe, "dockerfile": dockerfile(recipe)}
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def clones(recipe: Mapping[str, Any]) -> dict[str, str]:
    """What is cloned into the build's folder, by name."""
    found = dict(recipe.get("git") or {})
    if patches := recipe.get("patches"):
        found["patches"] = patches["git"]
    return found


def patches(recipe: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which patches there must be, for whoever makes the build's folder."""
    wanted = recipe.get("patches")
    if not wanted:
        return None
    return {"folder": wanted["folder"], "extras": extras_text(recipe), "hash": wanted.get("hash")}


def extras_text(recipe: Mapping[str, Any]) -> str:
    """The extras as one text, which is a part of the patches' hash."""
    return " ".join(recipe.get("extras") or [])


def patches_hash(patches: Iterable[bytes], extras: str) -> str:
    """The label of the recipe's own images: 12 hex digits over the patches, in order, and the extras."""
    content = hashlib.sha256()
    for patch in patches:
        content.update(patch)
    content.update(f"{extras}\n".encode())
    return content.hexdigest()[:12]


def files(recipe: Mapping[str, Any]) -> dict[str, str]:
    """What is written into the build's folder beside the clones."""
    written = {"Dockerfile": dockerfile(recipe)}
    if recipe.get("requirements"):
        written["requirements.txt"] = "".join(f"{line}\n" for line in recipe["requirements"])
    return written


def dockerfile(recipe: Mapping[str, Any]) -> str:
    """Classic builder and BuildKit both take it. Sources come before patches: those change more often."""
    lines = [f"FROM {recipe['base']}", f"WORKDIR {_WORK}"]
    for name in recipe.get("git") or {}:
        lines.append(f"COPY {name} {name}")
    if recipe.get("requirements"):
        lines.append("COPY requirements.txt requirements.txt")
    if recipe.get("install"):
        extras = " ".join(shlex.quote(one) for one in recipe.get("extras") or [])
        lines.append(f"RUN {_line(recipe['install']).replace('{extras}', extras)}")
    if recipe.get("patches"):
        lines += ["COPY patches patches", f"RUN {_patching(recipe['patches'])}"]
    if recipe.get("check"):
        lines.append(f"RUN {_line(recipe['check'])}")
    for word, part in (("ENV", "env"), ("LABEL", "labels")):
        values: Mapping[str, Any] = recipe.get(part) or {}
        lines += [f"{word} {name}={json.dumps(str(value))}" for name, value in values.items()]
    lines.append(f"WORKDIR {recipe.get('workdir') or '/'}")
    return "".join(f"{line}\n" for line in lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _patching(patches: Mapping[str, Any]) -> str:
    """`--forward`: a patch that is in already is an error, not taken out again."""
    beside = f'cd "$(python3 -c {shlex.quote(_BESIDE)} {shlex.quote(patches["package"])})"'
    each = f'for patch in {_WORK}/patches/*.patch; do echo "applying $patch"'
    return f'{beside} && {each}; patch -p0 --forward <"$patch" || exit 1; done'


def build_argv(wanted: Mapping[str, Any], patches: str, folder: str, anew: bool) -> list[str]:
    """`docker build` of the folder; `anew` takes nothing from an earlier build, and asks for the base again.

    `wanted` is what `image_source.wanted` says, `patches` the hash over the patches, if there are any.
    """
    labels = {RECIPE_LABEL: str(wanted["fingerprint"])}
    if patches:
        labels[wanted["patches_label"]] = patches
    words = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
    fresh = ["--no-cache", "--pull"] if anew else []
    return ["docker", "build", "--tag", str(wanted["built"]), *words, *fresh, folder]
