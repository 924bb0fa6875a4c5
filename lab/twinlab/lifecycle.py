"""Brings a lab up from any state it may be in, takes it down, and removes it."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import (
    apt_sources,
    base,
    cabling,
    cgroups,
    hub_client,
    inventory,
    layer,
    network,
    ownership,
    power,
    publish,
    requirements,
)
from .errors import LabError
from .hardware import of_kind
from .layout import Lab
from .progress import Progress
from .services import control, vllm

MACHINES = {
    "tensorfold": "spark",
    "vllm": "station",
}  # what each engine runs on, unless another kind is named


def up(
    root: Path,
    name: str,
    progress: Progress,
    cabled: bool = False,
    hf: bool = False,
    hardware: str | None = None,
    engine: str | None = None,
) -> Lab:
    """Bring a lab up; what already runs is left alone.  Raises Refusal when the machine cannot.

    `cabled` also joins the hosts as in NVIDIA's guide, `hf` gives their user the model hub's client;
    `hardware` is the kind of machine and `engine` what serves, where they change since the last `up`.
    """
    requirements.refuse_if(requirements.machine_reason())
    with ownership.locked(name, "up"):
        distribution = apt_sources.distribution()
        is_built = base.folder(root, distribution).is_dir()
        requirements.refuse_if(requirements.folder_reason(root, is_built))
        requirements.install(progress)
        lab = ownership.claim(root, name)
        if (engine or lab.engine) == "vllm":
            with ownership.waiting_for("the real engine"):
                vllm.build(lab.vllm, distribution, progress)
        _choose_engine(lab, engine)
        _choose_hardware(lab, hardware)
        tree = base.build(root, distribution, progress)
        if _everything_runs(lab):
            progress.say(f"lab {name} is up already")
        else:
            _start(lab, distribution, tree, progress)
        publish.publish(lab, progress)
        wait(lab, progress)
        if cabled:
            progress.say("cabling: addresses on the rails, ssh between the hosts")
            cabling.apply(lab)
        if hf:
            progress.say("installing `hf` for the hosts' user")
            hub_client.install(lab)
        return lab


def _choose_hardware(lab: Lab, kind: str | None) -> None:
    """Make the hosts of that kind; those that are on stay what they are.  Raises LabError."""
    if kind is None or of_kind(kind) == lab.hardware:
        return
    if network.exists(lab):
        raise LabError(f"lab {lab.name} is up, as {lab.hardware.kind}: `lab down` first")
    for host in lab.hosts:
        for drawn in ("ib", "pci", "netdev"):
            shutil.rmtree(host.folder / drawn, ignore_errors=True)
        host.memory_setting.unlink(missing_ok=True)
    lab.hardware_setting.write_text(f"{kind}\n")


def _choose_engine(lab: Lab, engine: str | None) -> None:
    """Let that engine serve, on the machines that it was made for.  Raises LabError while the lab is up."""
    if engine is None or engine == lab.engine:
        return
    if network.exists(lab):
        raise LabError(f"lab {lab.name} is up, with {lab.engine}: `lab down` first")
    shutil.rmtree(lab.inventory.parent, ignore_errors=True)
    lab.engine_setting.write_text(f"{engine}\n")
    _choose_hardware(lab, MACHINES[engine])


def _everything_runs(lab: Lab) -> bool:
    return (
        network.exists(lab)
        and all(power.is_on(lab, host) for host in lab.hosts)
        and all(control.running(lab).values())
    )


def _start(lab: Lab, distribution: apt_sources.Distribution, tree: Path, progress: Progress) -> None:
    if not network.exists(lab) or not any(power.is_on(lab, host) for host in lab.hosts):
        clear(lab)
        requirements.refuse_if(requirements.port_reason(lab.network.gateway))
        progress.say(f"building the networks ({lab.network.block_network})")
        network.create(lab)
    for host in lab.hosts:
        host.folder.mkdir(parents=True, exist_ok=True)
        host.vllm.unlink(missing_ok=True)
        if lab.engine == "vllm":
            host.vllm.symlink_to(vllm.site(lab.vllm))
    started = control.start(lab, distribution)
    progress.say(f"services: {', '.join(started) or 'all run'}")
    layer.make_user_key(lab)
    off = [host for host in lab.hosts if not power.is_on(lab, host)]
    for host in off:
        power.shut_down(lab, [host])  # what a broken host may have left
        layer.write(lab, host, distribution)
        power.switch_on(lab, host, tree)
    if off:
        progress.say(f"booting {' and '.join(host.name for host in off)}")
    inventory.write(lab)


def wait(lab: Lab, progress: Progress) -> None:
    """Wait until all hosts have booted."""

    def one(number: int) -> None:
        host = lab.hosts[number]
        power.wait_until_running(lab, host)
        progress.say(f"{host.name} runs, {lab.network.address(host.number)}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, range(len(lab.hosts))))


def clear(lab: Lab) -> None:
    """End everything of a lab that may still be there, whoever started it and however it ended."""
    control.stop(lab)
    for group in (lab.services_cgroup, *(host.cgroup for host in lab.hosts)):
        cgroups.create(group)
        cgroups.kill(group)
    network.delete(lab)
    for group in (lab.services_cgroup, *(host.cgroup for host in lab.hosts)):
        cgroups.remove(group)
    for host in lab.hosts:
        host.init_pid.unlink(missing_ok=True)
        host.rdma_off.unlink(missing_ok=True)
    lab.quirks.unlink(missing_ok=True)
    for folder in (lab.pids, lab.cuts):
        shutil.rmtree(folder, ignore_errors=True)


def down(root: Path, name: str, remove: bool, progress: Progress) -> None:
    """Switch a lab off; `remove` also deletes its state.  Nothing to do is not an error."""
    requirements.refuse_if(requirements.machine_reason())
    with ownership.locked(name, "down"):
        try:
            lab = Lab(name, root, ownership.remembered_network(root, name))
        except LabError:
            progress.say(f"there is no lab {name} in {root}")
            return
        if ownership.owner(name) not in (None, str(root)):
            raise LabError(f"the lab {name} that is up belongs to {ownership.owner(name)}")
        progress.say(f"switching off {name}")
        power.shut_down(lab, lab.hosts)
        clear(lab)
        ownership.release(lab)
        if remove:
            progress.say(f"removing {lab.folder}")
            shutil.rmtree(lab.folder)
        progress.say("down")


def wipe(root: Path, name: str, progress: Progress) -> None:
    """Take one lab down and away; with the last lab also the base, the package cache and the key."""
    down(root, name, True, progress)
    with ownership.waiting_for("the base"):
        if root.is_dir() and not any((folder / "block").exists() for folder in root.iterdir()):
            progress.say(f"removing {root}: no other lab is in it")
            shutil.rmtree(root)
