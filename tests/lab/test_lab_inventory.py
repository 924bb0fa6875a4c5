"""What Ansible and ssh are told about the hosts."""

from __future__ import annotations

from pathlib import Path

import yaml
from twinlab import cabling, inventory
from twinlab.layout import Lab
from twinlab.subnets import Network

LAB = Lab("spark", Path("/labs"), Network(3))


def test_inventory() -> None:
    sparks = yaml.safe_load(inventory.hosts_yml(LAB))["sparks"]
    assert sparks["children"] == {
        "spark_pair": {
            "hosts": {
                "spark-a": {"ansible_host": "198.18.12.11", "rank": 0},
                "spark-b": {"ansible_host": "198.18.12.12", "rank": 1},
            }
        }
    }
    assert sparks["vars"] == {
        "ansible_user": "nvidia",
        "ansible_ssh_private_key_file": "/labs/keys/id_ed25519",
        "ansible_ssh_common_args": "-F /labs/spark/ssh_config",
    }


def test_a_group_is_never_named_as_a_host_or_with_a_dash() -> None:
    assert inventory.group(Lab("ci-1", Path("/labs"), Network(0))) == "ci_1_pair"


def test_settings_of_the_lab_point_into_the_lab() -> None:
    settings = yaml.safe_load(inventory.lab_yml(LAB))
    assert settings["hf_endpoint"] == "http://198.18.12.1:8090"
    assert settings["catalogue_path"] == ["/labs/spark/catalogue"]


def test_release_of_the_lab() -> None:
    text = inventory.release_yml("198.18.12.1:5000/tensorfold", "sha256:12", "cb7c", "amd64")
    release = yaml.safe_load(text)
    assert (release["extends"], release["architecture"], release["image_label"]) == ("v1.1", "amd64", "cb7c")
    assert release["defaults"]["image"] == "198.18.12.1:5000/tensorfold"
    assert release["defaults"]["image_digest"] == "sha256:12"


def test_host_keys_are_checked() -> None:
    config = inventory.ssh_config(LAB)
    assert config.count("StrictHostKeyChecking yes") == 2
    assert "Host spark-b 198.18.12.12\n  HostName 198.18.12.12\n" in config


def test_rails_of_a_cabled_host() -> None:
    ports = yaml.safe_load(cabling.netplan(LAB, LAB.hosts[1]))["network"]["ethernets"]
    assert {name: (port["addresses"], port["mtu"]) for name, port in ports.items()} == {
        "enp1s0f0np0": (["198.18.13.12/24"], 9000),
        "enP2p1s0f0np0": (["198.18.14.12/24"], 9000),
    }
