"""The kinds of machine that a lab can play, as data: ports by the names of Linux, card, GPUs, memory."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import LabError

DISK_GIB = 1024


@dataclass(frozen=True)
class Port:
    """One RDMA port: its network device, RDMA device and place on the PCI bus."""

    netdev: str
    hca: str
    pci: str
    rail: int  # which rail it is while a cable is in its socket
    socket: int  # 0: the one that has the cable at first
    mac_index: int


@dataclass(frozen=True)
class Card:
    """What the ports of a machine's network card have in common. `speed` in Mbit/s."""

    speed: int
    rate: str
    hca_type: str
    firmware: str
    board: str
    pci_device: str
    pcie_width: str
    pcie_speed: str


@dataclass(frozen=True)
class Gpu:
    """What nvidia-smi says of a GPU. `memory_mib` is None where it reports none of its own."""

    name: str
    compute_cap: str
    bus: str
    memory_mib: int | None = None


@dataclass(frozen=True)
class Hardware:
    """One kind of machine. An engine uses the GPU of that number; memory in GiB, without the GPU's own."""

    kind: str
    title: str
    product: str
    management: str
    ports: tuple[Port, ...]
    card: Card
    driver: str
    cuda: str
    gpus: tuple[Gpu, ...]
    engine_gpu: int
    memory_total_gib: float
    memory_available_gib: float

    @property
    def rails(self) -> tuple[int, ...]:
        """The numbers of the rails, from 1."""
        return tuple(sorted({port.rail for port in self.ports}))

    @property
    def sockets(self) -> tuple[int, ...]:
        """The sockets into which the cable can go."""
        return tuple(sorted({port.socket for port in self.ports}))

    def cabled(self, socket: int = 0) -> tuple[Port, ...]:
        """The ports that are rails while the cable is in that socket, in the order of the rails."""
        return tuple(
            sorted((port for port in self.ports if port.socket == socket), key=lambda port: port.rail)
        )


# One cable is seen as two devices, the "twins", each on its own PCI domain.
SPARK = Hardware(
    kind="spark",
    title="DGX Spark",
    product="NVIDIA_DGX_Spark",
    management="enP7s7",
    ports=(
        Port("enp1s0f0np0", "rocep1s0f0", "0000:01:00.0", 1, 0, 0x10),
        Port("enP2p1s0f0np0", "roceP2p1s0f0", "0002:01:00.0", 2, 0, 0x11),
        Port("enp1s0f1np1", "rocep1s0f1", "0000:01:00.1", 1, 1, 0x20),
        Port("enP2p1s0f1np1", "roceP2p1s0f1", "0002:01:00.1", 2, 1, 0x21),
    ),
    card=Card(
        speed=200_000,
        rate="200 Gb/sec (4X HDR)",
        hca_type="MT4129",
        firmware="28.45.4028",
        board="NVD0000000087",
        pci_device="0x1021",
        pcie_width="4",
        pcie_speed="32.0 GT/s PCIe",
    ),
    driver="580.95.05",
    cuda="13.0",
    gpus=(Gpu("NVIDIA GB10", "12.1", "0000000F:01:00.0"),),
    engine_gpu=0,
    memory_total_gib=119.7,
    memory_available_gib=115.0,
)

# Two cables, one a rail; a second GPU for the screen comes before the one that computes.
STATION = Hardware(
    kind="station",
    title="DGX Station",
    product="NVIDIA_DGX_Station",
    management="enP5p9s0",
    ports=(
        Port("enP1p3s0f0np0", "mlx5_0", "0001:03:00.0", 1, 0, 0x10),
        Port("enP2p3s0f0np0", "mlx5_1", "0002:03:00.0", 2, 0, 0x11),
    ),
    card=Card(
        speed=400_000,
        rate="400 Gb/sec (4X NDR)",
        hca_type="MT4131",
        firmware="40.47.1088",
        board="NVD0000000099",
        pci_device="0x1023",
        pcie_width="16",
        pcie_speed="64.0 GT/s PCIe",
    ),
    driver="595.84",
    cuda="13.2",
    gpus=(
        Gpu("NVIDIA RTX PRO 2000 Blackwell", "12.0", "00000005:01:00.0", 16_311),
        Gpu("NVIDIA GB300", "10.3", "00000009:06:00.0", 256_703),
    ),
    engine_gpu=1,
    memory_total_gib=478.0,
    memory_available_gib=465.0,
)
_KINDS = {hardware.kind: hardware for hardware in (SPARK, STATION)}


def of_kind(kind: str) -> Hardware:
    """The machine of that kind.  Raises LabError."""
    if kind not in _KINDS:
        raise LabError(f"--hardware {kind}: {' or '.join(_KINDS)}")
    return _KINDS[kind]


def mac(host_number: int, index: int) -> str:
    """The hardware address of a port, under a prefix that belongs to NVIDIA."""
    return f"4c:bb:47:00:{host_number:02x}:{index:02x}"
