"""Where a lab keeps its things, and what it calls them on the machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .hardware import SPARK, Hardware, of_kind
from .subnets import Network

PACKAGE = Path(__file__).resolve().parent
PROJECT = PACKAGE.parent.parent
DEFAULT_NAME = "spark"
REGISTRY_PORT = 5000
HUB_PORT = 8090
APT_PORT = 3142
ENGINES = ("tensorfold", "vllm")  # the simulated one, and a real one on CPUs


def state_root() -> Path:
    """The folder of all labs of this checkout: $TWINSERVE_LAB, else `.lab` in the project."""
    return Path(os.environ.get("TWINSERVE_LAB") or PROJECT / ".lab").resolve()


def check_name(name: str) -> str:
    """Return the name of a lab, or raise LabError: it has to fit into the name of an interface."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,8}", name) or name in ("base", "apt", "image", "keys", "vllm"):
        raise LabError(f"--name {name}: one to nine of a-z, 0-9, -, beginning with a letter")
    return name


@dataclass(frozen=True)
class Host:
    """One simulated machine and its files on the controller."""

    name: str
    number: int  # 1 is rank 0
    folder: Path
    cgroup: str
    netns: str
    hardware: Hardware = SPARK

    @property
    def letter(self) -> str:
        """a, b, ...: short enough for the names of interfaces."""
        return self.name[-1]

    @property
    def layer(self) -> Path:
        """Files that lie over the base: this host's name, keys and shims."""
        return self.folder / "layer"

    @property
    def disk_image(self) -> Path:
        """The host's disk, a sparse file; not there on a machine without loop devices."""
        return self.folder / "disk.img"

    @property
    def engine(self) -> Path:
        """What the simulated engine reads and writes: switches.json, gpu.json."""
        return self.folder / "engine"

    @property
    def vllm(self) -> Path:
        """Leads to the real engine's packages, where the lab has it; containers see them as /opt/vllm."""
        return self.folder / "vllm"

    @property
    def meminfo(self) -> Path:
        """The host's /proc/meminfo."""
        return self.folder / "meminfo"

    @property
    def memory_setting(self) -> Path:
        """GiB available while no engine is loaded, and how many of them files have, set by `lab memory`."""
        return self.folder / "memory_gib"

    @property
    def boot_id(self) -> Path:
        """Another one after each boot."""
        return self.folder / "boot_id"

    @property
    def rdma_off(self) -> Path:
        """There while the host has no /dev/infiniband."""
        return self.folder / "rdma_off"

    @property
    def init_pid(self) -> Path:
        """The pid of the host's systemd, seen from the controller; not there while it is off."""
        return self.folder / "init.pid"


@dataclass(frozen=True)
class Lab:
    """One lab: a name, the folder of all labs, and the network that was chosen for it."""

    name: str
    root: Path
    network: Network

    @property
    def folder(self) -> Path:
        """The state of this lab."""
        return self.root / self.name

    @property
    def hardware_setting(self) -> Path:
        """The kind of machine that the hosts are, set by `lab up --hardware`."""
        return self.folder / "hardware"

    @property
    def hardware(self) -> Hardware:
        """What the hosts are."""
        file = self.hardware_setting
        return of_kind(file.read_text().strip()) if file.exists() else SPARK

    @property
    def engine_setting(self) -> Path:
        """What serves in the lab, set by `lab up --engine`."""
        return self.folder / "engine"

    @property
    def engine(self) -> str:
        """One of ENGINES."""
        return self.engine_setting.read_text().strip() if self.engine_setting.exists() else ENGINES[0]

    @property
    def vllm(self) -> Path:
        """The real engine and its model, shared by all labs."""
        return self.root / "vllm"

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The machines, head first."""
        hardware = self.hardware
        return tuple(
            Host(
                name=f"{self.name}-{letter}",
                number=number,
                netns=f"lab-{self.name}-{letter}",
                folder=self.folder / "hosts" / f"{self.name}-{letter}",
                cgroup=f"twinlab/{self.name}/{letter}",
                hardware=hardware,
            )
            for number, letter in enumerate("ab", start=1)
        )

    def host(self, name: str) -> Host:
        """The machine of that name; its last letter is enough.  Raises LabError."""
        for host in self.hosts:
            if name in (host.name, host.letter):
                return host
        raise LabError(f"no host {name}: {', '.join(host.name for host in self.hosts)}")

    @property
    def uplink(self) -> str:
        """The controller's interface on the management network."""
        return f"lab-{self.name}"

    @property
    def cable_netns(self) -> str:
        """Where the far ends of all RDMA ports lie, and the cables between them."""
        return f"lab-{self.name}-cable"

    @property
    def services_cgroup(self) -> str:
        """The group of every process of the lab that is not inside a host."""
        return f"twinlab/{self.name}/services"

    @property
    def keys(self) -> Path:
        """The ssh key that opens the hosts."""
        return self.root / "keys"

    @property
    def private_key(self) -> Path:
        """The private half of it."""
        return self.keys / "id_ed25519"

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`."""
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """The hosts' keys."""
        return self.folder / "known_hosts"

    @property
    def inventory(self) -> Path:
        """The Ansible inventory of the lab."""
        return self.folder / "inventory" / "hosts.yml"

    @property
    def catalogue(self) -> Path:
        """The lab's own releases for the product: small models, the simulated engine's image."""
        return self.folder / "catalogue"

    @property
    def hub(self) -> Path:
        """The models that the lab's hub serves."""
        return self.folder / "hub"

    @property
    def registry_storage(self) -> Path:
        """The images that the lab's registry serves."""
        return self.folder / "registry"

    @property
    def registry(self) -> str:
        """host:port of the registry."""
        return f"{self.network.gateway}:{REGISTRY_PORT}"

    @property
    def hub_url(self) -> str:
        """What HF_ENDPOINT has to be on the hosts."""
        return f"http://{self.network.gateway}:{HUB_PORT}"

    @property
    def logs(self) -> Path:
        """One file for each process of the lab."""
        return self.folder / "logs"

    @property
    def pids(self) -> Path:
        """One file for each process of the lab that should be alive."""
        return self.folder / "pids"

    @property
    def quirks(self) -> Path:
        """What was done to the hosts' devices: see machine/quirks.py."""
        return self.folder / "quirks.json"

    @property
    def drawn_quirks(self) -> Path:
        """What of it the simulator has drawn; not there until it has drawn the devices at all."""
        return self.folder / "quirks.drawn"

    @property
    def cuts(self) -> Path:
        """One file for each rail whose cable is out."""
        return self.folder / "cut"
