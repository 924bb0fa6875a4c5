"""What runs on the nodes needs Python's standard library and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.twinserve.pair.plugins.module_utils.runtime_archive import install, pack, version_of
from ansible_collections.twinserve.pair.plugins.plugin_utils.runtime_source import runtime_files

PLUGINS = Path(__file__).resolve().parents[2] / "collections/ansible_collections/twinserve/pair/plugins"
SOURCE = PLUGINS / "module_utils"
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
# Run without site-packages and without the environment, as a node's own Python has neither of ours.
BARE = [sys.executable, "-I", "-S"]
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import twinserve
names = [found.name for found in pkgutil.walk_packages(twinserve.__path__, "twinserve.")]
for name in names:
    if not name.endswith(".__main__"):
        importlib.import_module(name)
print("\\n".join(names))
print("ansible" in sys.modules, file=sys.stderr)
"""


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Level and name of each import in a file, wherever it is written."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_are_relative_or_of_the_standard_library(file: Path) -> None:
    for level, name in imports(SOURCE / file):
        if level:
            assert level <= len(file.parts), f"{'.' * level}{name} leaves the package"
        else:
            assert name.partition(".")[0] in sys.stdlib_module_names, name


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The very package that nodes get, installed as on a node."""
    root = tmp_path_factory.mktemp("runtime")
    files = runtime_files()
    install(pack(files), version_of(files), root)
    return root / "current"


def test_the_package_imports_whole_in_a_bare_python(installed: Path) -> None:
    done = subprocess.run(
        [*BARE, "-c", IMPORT_ALL, str(installed)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "False\n"), done.stderr
    names = set(done.stdout.split())
    assert {"twinserve.agent.__main__", "twinserve.supervisor.__main__", "twinserve.control"} <= names
    assert len(names) == len(FILES) - 1, "every file but the package's own __init__ is imported"


def test_every_file_was_compiled(installed: Path) -> None:
    sources = {path.with_suffix("").relative_to(installed) for path in installed.rglob("*.py")}
    compiled = {
        path.parent.parent.relative_to(installed) / path.name.partition(".")[0]
        for path in installed.rglob("*.pyc")
    }
    assert compiled == sources
    assert len(sources) == len(FILES)


@pytest.mark.parametrize(
    "package", ["twinserve.agent", "twinserve.supervisor", "twinserve.control", "twinserve.transfer"]
)
def test_what_the_units_start_is_there(installed: Path, package: str) -> None:
    """`python3 -m` finds each; what they then do without a node is tested elsewhere."""
    find = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy._get_module_details(sys.argv[2])"
    done = subprocess.run(
        [*BARE, "-c", find, str(installed), package], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_looks_at_a_node_brings_none_of_those_that_plan(installed: Path) -> None:
    """It is packed, sent and compiled in every run, with all that it imports."""
    planners = {"fabric_plan", "firewall_plan", "node_faults", "render", "serve_change", "settings_spec"}
    assert planners <= {file.stem for file in FILES}
    program = "import sys; sys.path.insert(0, sys.argv[1]); import twinserve.node_probe; print(*sys.modules)"
    done = subprocess.run([*BARE, "-c", program, str(installed)], capture_output=True, text=True, check=True)
    brought = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("twinserve.")}
    assert {name for name in brought if name in planners or name.endswith("_plan")} == set()
