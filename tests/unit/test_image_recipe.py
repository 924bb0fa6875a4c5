"""An image from its recipe: what is pinned, what the Dockerfile does, when it counts as another image."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils import image_recipe, image_source
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product
from engine_data import PRODUCT, faults, settings

OWN_BASE = "registry.example/pytorch@sha256:1"
# System B: the engine's own image with one library baked in by its hash.
NCCL = "nvidia-nccl-cu13==2.30.7 --hash=sha256:" + "ab" * 32
DERIVED: dict[str, Any] = {
    "base": "vllm/vllm-openai@sha256:4864d46625cbc3307623e29ac742030655e27249feba7b97ec925ce4cc4dfb56",
    "requirements": [NCCL],
    "install": (
        "pip install --no-cache-dir --no-deps --force-reinstall --require-hashes "
        "--requirement requirements.txt"
    ),
    "check": "python3 -c 'from importlib.metadata import version; "
    'assert version("nvidia-nccl-cu13") == "2.30.7"\'',
    "env": {"VLLM_NCCL_SO_PATH": "/usr/local/lib/libnccl.so.2"},
    "labels": {"nccl": "2.30.7"},
    "workdir": "/vllm-workspace",
}


def recipe(release: str = "v1.1", **raw: Any) -> dict[str, Any]:
    found = image_recipe.resolved(settings(release, **raw), PRODUCT.release(release))
    assert found is not None
    return found


def test_the_recipe_of_the_two_sparks_is_the_contracts() -> None:
    found = recipe()
    assert (found["base"], found["workdir"]) == ("nvcr.io/nvidia/pytorch:26.07-py3", "/workspace")
    assert image_recipe.clones(found) == {
        "engine": "https://github.com/ashhart/TensorFold.git@9cd52ab4daba68ddd09be89be8f23ad43175e821",
        "patches": "https://github.com/MiaAI-Lab/GLM-5.3-Flash-EXL3-2x-DGX-Sparks-TensorFold.git"
        "@1f3d909b00b7be7aa8f00d3a33e0b9e7aa56d221",
    }
    assert image_recipe.patches(found) == {
        "folder": "patches",
        "extras": "av==18.1.0 xgrammar>=0.2.8,<0.3",
        "hash": PRODUCT.release("v1.1")["image_label"],
    }


def test_the_dockerfile_installs_patches_and_checks_in_this_order() -> None:
    lines = image_recipe.dockerfile(recipe()).splitlines()
    assert [line.split()[0] for line in lines] == [
        *("FROM", "WORKDIR", "COPY", "RUN", "COPY", "RUN", "RUN", "ENV", "ENV", "ENV", "WORKDIR")
    ]
    assert lines[0] == "FROM nvcr.io/nvidia/pytorch:26.07-py3"
    assert lines[2] == "COPY engine engine"
    assert lines[3] == (
        "RUN pip install --no-cache-dir --upgrade ./engine && "
        "pip install --no-cache-dir av==18.1.0 'xgrammar>=0.2.8,<0.3' && tensorfold --version"
    )
    assert 'patch -p0 --forward <"$patch" || exit 1' in lines[5]
    assert "find_spec" in lines[5] and lines[5].count("tensorfold") == 1
    assert "import tensorfold.cuda.server, tensorfold.families.glm5_next.cuda.engine" in lines[6]
    assert 'ENV HF_HOME="/root/.cache/huggingface"' in lines
    assert lines[-1] == "WORKDIR /workspace"


def test_a_derived_image_with_a_library_by_its_hash_has_the_same_shape() -> None:
    assert image_recipe.clones(DERIVED) == {}
    assert image_recipe.patches(DERIVED) is None
    assert image_recipe.files(DERIVED)["requirements.txt"] == f"{NCCL}\n"
    assert image_recipe.files(DERIVED)["Dockerfile"].splitlines() == [
        f"FROM {DERIVED['base']}",
        "WORKDIR /twinserve-build",
        "COPY requirements.txt requirements.txt",
        f"RUN {DERIVED['install']}",
        f"RUN {DERIVED['check']}",
        'ENV VLLM_NCCL_SO_PATH="/usr/local/lib/libnccl.so.2"',
        'LABEL nccl="2.30.7"',
        "WORKDIR /vllm-workspace",
    ]


def test_settings_fill_a_recipe_and_the_shells_own_variables_stay() -> None:
    found = image_recipe.resolved(
        {"image": "repo", "image_digest": "sha256:1"},
        {"recipe": {"base": "${image}@${image_digest}", "install": "echo $image ${HOME} $(pwd)"}},
    )
    assert found == {"base": "repo@sha256:1", "install": "echo $image ${HOME} $(pwd)"}


@pytest.mark.parametrize("release", [{}, {"recipe": None}, {"recipe": {"base": "x", "patches": None}}])
def test_a_pin_that_is_not_known_leaves_no_recipe(release: dict[str, Any]) -> None:
    assert image_recipe.resolved({}, release) is None


@pytest.mark.parametrize("release", PRODUCT.releases())
def test_every_release_pins_all_that_it_would_build_from(release: str) -> None:
    data = PRODUCT.release(release)
    found = image_recipe.resolved(settings(release), data)
    said = f"image_source is 'build': it takes auto or pull (release {release})"
    assert (said in faults(release, image_source="build")) is (found is None)
    for text in image_recipe.clones(found or {}).values():
        url, commit = image_recipe.source(text)
        assert url.startswith("https://") and len(commit) == 40


def test_a_release_of_a_site_may_bring_the_recipe_that_a_later_release_lacks(tmp_path: Path) -> None:
    own = tmp_path / "site.yml"
    own.write_text("extends: v1.5\nrecipe: {patches: {git: x, folder: patches, package: tensorfold}}\n")
    product = load_product("tensorfold", [str(tmp_path)])
    given = {"accept_dflash2_license": True, "image_source": "build", "release": "site"}
    found = resolve(product.specs, product.rules, product.release("site"), given)
    assert [fault.text for fault in found.faults] == []


@pytest.mark.parametrize(
    "text", ["https://x/y.git", "https://x/y.git@main", "https://x/y.git@9cd52ab", "@" + "a" * 40]
)
def test_a_source_without_a_commit_is_refused(text: str) -> None:
    with pytest.raises(image_recipe.RecipeError, match=r"no git source with a pinned commit"):
        image_recipe.source(text)


@pytest.mark.parametrize(
    "raw",
    [
        {"base_image": OWN_BASE},
        {"engine_source": f"https://git.example/mine.git@{'a' * 40}"},
    ],
)
def test_another_input_is_another_image(raw: dict[str, Any]) -> None:
    assert image_recipe.fingerprint(recipe()) == image_recipe.fingerprint(recipe(parallel=2, api_port=9000))
    assert image_recipe.fingerprint(recipe()) == image_recipe.fingerprint(recipe("v1.2"))
    assert image_recipe.fingerprint(recipe(**raw)) != image_recipe.fingerprint(recipe())


@pytest.mark.parametrize("part", sorted(DERIVED))
def test_each_part_of_a_recipe_counts(part: str) -> None:
    changed = {name: value for name, value in DERIVED.items() if name != part} | {"base": "b"}
    assert image_recipe.fingerprint(changed) != image_recipe.fingerprint(DERIVED | {"base": "c"})
    assert (
        image_recipe.fingerprint(changed) != image_recipe.fingerprint(DERIVED | {"base": "b"})
        or part == "base"
    )


def test_the_patches_hash_is_the_recipes_own() -> None:
    """`cat patches/*.patch; echo "$EXTRAS"` through sha256sum, the first twelve digits."""
    text = b"--- a\n--- b\nav==18.1.0 xgrammar>=0.2.8,<0.3\n"
    assert (
        image_recipe.patches_hash([b"--- a\n", b"--- b\n"], "av==18.1.0 xgrammar>=0.2.8,<0.3")
        == (hashlib.sha256(text).hexdigest()[:12])
    )


def test_the_build_is_labelled_with_its_inputs_and_its_patches() -> None:
    wanted = image_source.wanted(settings(image_source="build"), PRODUCT.release("v1.1"))
    argv = image_recipe.build_argv(wanted, "cb7c56f7f921", "/build", False)
    assert argv == [
        *("docker", "build", "--tag", wanted["built"]),
        *("--label", f"twinserve.recipe={wanted['fingerprint']}", "--label", "tf.patches=cb7c56f7f921"),
        "/build",
    ]
    assert image_recipe.build_argv(wanted, "", "/build", True)[-3:] == ["--no-cache", "--pull", "/build"]
    assert "tf.patches" not in " ".join(image_recipe.build_argv(wanted, "", "/build", True))
