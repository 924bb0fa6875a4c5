"""What the controller needs to reach the hosts: ssh configuration, known hosts, and the Ansible inventory."""

from __future__ import annotations

from pathlib import Path

from .base import USER
from .layout import Lab
from .services import vllm

RELEASE = "lab"  # the entry that the lab adds to the product's catalogue
GROUPS = {"tensorfold": "sparks", "vllm": "stations"}


_SIMULATED = """\
accept_dflash2_license: true
bench_note: "Simulated engine and GPUs: these are no numbers of real Sparks"
wait_timeout: 120
"""
# What the real engine wants on CPUs, and of a model that does not think. Two cores need minutes for a start.
_VLLM_ON_CPUS = """\
extra_args:
  - --enforce-eager
  - --default-chat-template-kwargs
  - '{"enable_thinking": false}'
engine_env:
  OMP_NUM_THREADS: "1"
  TORCHDYNAMO_DISABLE: "1"
  VLLM_CPU_KVCACHE_SPACE: "1"
  VLLM_CPU_OMP_THREADS_BIND: nobind
bench_note: "A small model on the CPUs of one machine: these are no numbers of real Stations"
shm_size: 2g
wait_timeout: 900
"""


def hosts_yml(lab: Lab) -> str:
    """The inventory: the group of the engine's machines, in it the pair, named after the lab."""
    hosts = "".join(
        f"          {host.name}:\n"
        f"            ansible_host: {lab.network.address(host.number)}\n"
        f"            rank: {host.number - 1}\n"
        for host in lab.hosts
    )
    return (
        "---\n"
        f"{GROUPS[lab.engine]}:\n"
        "  children:\n"
        f"    {group(lab)}:\n"
        "      hosts:\n"
        f"{hosts}"
        "  vars:\n"
        f"    ansible_user: {USER}\n"
        f"    ansible_ssh_private_key_file: {lab.private_key}\n"
        f"    ansible_ssh_common_args: -F {lab.ssh_config}\n"
    )


def group(lab: Lab) -> str:
    """The name of the pair's group: the lab's, in the letters that Ansible allows, and not that of a host."""
    return f"{lab.name.replace('-', '_')}_pair"


def lab_yml(lab: Lab) -> str:
    """The product's settings for which the lab differs from real machines: sources, sizes, waits."""
    common = f"---\nhf_endpoint: {lab.hub_url}\ncatalogue_path:\n  - {lab.catalogue}\nrelease: {RELEASE}\n"
    return common + (_VLLM_ON_CPUS if lab.engine == "vllm" else _SIMULATED)


def release_yml(image: str, digest: str, label: str, architecture: str) -> str:
    """The release that the lab adds to the product's catalogue: v1.1, from the lab's own sources."""
    return (
        "---\n"
        "extends: v1.1\n"
        f"architecture: {architecture}\n"
        f"image_label: {label}\n"
        "defaults:\n"
        f"  image: {image}\n"
        f"  image_digest: {digest}\n"
        "  model_min_free_gib: 1\n"
        "  image_min_free_gib: 1\n"
    )


def vllm_image_yml(image: str, digest: str) -> str:
    """The settings with which an owner serves an image of theirs."""
    return f"---\nimage: {image}\nimage_digest: {digest}\nimage_source: pull\n"


def vllm_release_yml() -> str:
    """The release of the real engine: the product's own, with a small model, and without what needs a GPU."""
    return (
        "---\n"
        "extends: glm-5.3-nvfp4\n"
        f"engine_version: {vllm.VERSION}\n"
        "architecture: amd64\n"
        "defaults:\n"
        "  image_min_free_gib: 1\n"
        f"  model_id: {vllm.MODEL.name}\n"
        f"  model_revision: {vllm.MODEL.revision}\n"
        "  model_min_free_gib: 1\n"
        f"  served_name: {vllm.MODEL.name}\n"
        "  parallel: 4\n"
        "  max_num_seqs: 4\n"
        "  max_model_len: 2048\n"
        "  gpu_memory_utilization: 0.5\n"
        "  kv_cache_dtype: auto\n"
        "  speculative_tokens: 0\n"
        "alarms: []\n"
        "proofs: []\n"
        "gpu_process: null\n"
        "api:\n"
        "  reasoning_effort: []\n"
        "  tool_use: false\n"
        "memory:\n"
        "  estimate_gib: {head: 1, worker: 1}\n"
    )


def write_settings(lab: Lab, name: str, text: str) -> None:
    """Write a file of settings of the lab's machines."""
    file = lab.inventory.parent / "group_vars" / GROUPS[lab.engine] / f"{name}.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def write_release(lab: Lab, text: str) -> None:
    """Write it where the product looks."""
    lab.catalogue.mkdir(parents=True, exist_ok=True)
    (lab.catalogue / f"{RELEASE}.yml").write_text(text)


def ssh_config(lab: Lab) -> str:
    """Entries for the hosts' names and addresses; host keys are checked."""
    return "".join(
        f"Host {host.name} {address}\n"
        f"  HostName {address}\n  User {USER}\n  IdentityFile {lab.private_key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {lab.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
        for host in lab.hosts
        for address in [lab.network.address(host.number)]
    )


def known_hosts(lab: Lab) -> str:
    """One line for each host, by address and name."""
    return "".join(
        f"{lab.network.address(host.number)},{host.name} {_host_key(host.layer)}" for host in lab.hosts
    )


def _host_key(layer: Path) -> str:
    kind, key = (layer / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    return f"{kind} {key}\n"


def write(lab: Lab) -> None:
    """Write all of them; the hosts' layers must be there."""
    lab.catalogue.mkdir(parents=True, exist_ok=True)
    write_settings(lab, "lab", lab_yml(lab))
    for file, text in (
        (lab.inventory, hosts_yml(lab)),
        (lab.ssh_config, ssh_config(lab)),
        (lab.known_hosts, known_hosts(lab)),
    ):
        file.write_text(text)
