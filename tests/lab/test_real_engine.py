"""A lab with vLLM on CPUs: what it needs of the machine, and what the product is told."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.twinserve.pair.plugins.module_utils.settings_check import resolve
from ansible_collections.twinserve.pair.plugins.plugin_utils.engine_files import load_product
from twinlab import inventory, lifecycle, network
from twinlab.apt_sources import Distribution
from twinlab.errors import LabError, Refusal
from twinlab.layout import Lab
from twinlab.progress import Progress
from twinlab.services import vllm
from twinlab.subnets import Network


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab that was told to serve with vLLM."""
    lab = Lab("real", tmp_path, Network(3))
    lab.folder.mkdir()
    lab.engine_setting.write_text("vllm\n")
    return lab


def test_a_machine_that_cannot_have_it_is_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(Refusal, match="needs Python 3.11 and Debian here .this is Python 3.*, ubuntu"):
        vllm.build(tmp_path, Distribution("ubuntu", "noble", ()), Progress())
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(Refusal, match="needs x86-64 .this is aarch64"):
        vllm.build(tmp_path, Distribution("debian", "trixie", ()), Progress())
    assert list(tmp_path.iterdir()) == []


MISSING = "Could not find a version that satisfies {0}\nERROR: No matching distribution found for {0}\n"
OTHER = "THESE PACKAGES DO NOT MATCH THE HASHES\n    torch==2.13.0+cpu from here:\n        Got  00\n"


@pytest.mark.parametrize(
    ("error", "told", "says"),
    [
        (Refusal, MISSING.format("torch==2.13.0+cpu"), "needs torch's, which pip does not find: ERROR: No"),
        (LabError, MISSING.format("torchvizion==1.0"), "cannot install vLLM's build for CPUs: ERROR: No"),
        (LabError, OTHER, "HASHES\n    torch==2.13.0+cpu from here:\n        Got  00"),
        (LabError, "", "cannot install vLLM's build for CPUs: ERROR: "),
    ],
)
def test_only_a_missing_torch_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[LabError], told: str, says: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "version_info", (3, 11, 7))
    told = f"ERROR: {told}\n[notice] A new release of pip is available\n"
    monkeypatch.setattr(vllm, "attempt", lambda argv: subprocess.CompletedProcess(argv, 1, "", told))

    with pytest.raises(LabError, match=re.escape(says)) as raised:
        vllm.build(tmp_path, Distribution("debian", "trixie", ()), Progress())
    assert raised.type is error
    assert "[notice]" not in str(raised.value)


def test_its_hosts_are_stations(lab: Lab) -> None:
    inventory.write_settings(lab, "lab", inventory.lab_yml(lab))

    assert list(yaml.safe_load(inventory.hosts_yml(lab))) == ["stations"]
    assert (lab.inventory.parent / "group_vars/stations/lab.yml").is_file()


def test_the_product_takes_its_release_and_settings_with_the_commands_of_both_ranks(lab: Lab) -> None:
    inventory.write_release(lab, inventory.vllm_release_yml())
    product = load_product("vllm", [str(lab.catalogue)])
    given = yaml.safe_load(inventory.lab_yml(lab)) | yaml.safe_load(
        inventory.vllm_image_yml("r/vllm", "sha256:" + "0" * 64)
    )

    found = resolve(product.specs, product.rules, product.release("lab"), given)

    assert [fault.text for fault in found.faults] == []


def test_an_engine_brings_its_machines_and_stays_until_a_lab_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab("real", tmp_path, Network(3))
    lab.inventory.parent.mkdir(parents=True)
    monkeypatch.setattr(network, "exists", lambda _: False)
    assert (lab.engine, lab.hardware.kind) == ("tensorfold", "spark")

    lifecycle._choose_engine(lab, "vllm")
    lifecycle._choose_engine(lab, None)

    assert (lab.engine, lab.hardware.kind) == ("vllm", "station")
    assert not lab.inventory.parent.exists(), "settings of the other engine are gone"
    monkeypatch.setattr(network, "exists", lambda _: True)
    with pytest.raises(LabError, match="lab real is up, with vllm: `lab down` first"):
        lifecycle._choose_engine(lab, "tensorfold")
