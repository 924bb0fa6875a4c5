"""What `lab status` and `lab env` print."""

from __future__ import annotations

from . import engine, power
from .layout import Lab
from .machine import cables, quirks
from .machine.meminfo import available
from .machine.simulator import engine_gib
from .services import control


def is_up(lab: Lab) -> bool:
    """Whether all hosts and services run."""
    return all(power.is_on(lab, host) for host in lab.hosts) and all(control.running(lab).values())


def status(lab: Lab) -> str:
    """For people: hosts, rails, services, what was set."""
    lines = [f"lab {lab.name}, {lab.hardware.title}, {lab.network.block_network}, in {lab.folder}"]
    for host in lab.hosts:
        on = power.is_on(lab, host)
        lines.append(f"{host.name}  {lab.network.address(host.number)}  {'on' if on else 'OFF'}")
        if on:
            lines += [f"  {line}" for line in cables.port_summary(lab, host)]
            held = engine_gib(host)
            setting = float(host.memory_setting.read_text().split()[0])
            lines.append(f"  memory {available(setting, held):.1f} GiB available, engine holds {held:.1f}")
        if switches := engine.read_switches(host):
            lines.append(f"  engine {switches}")
    odd = quirks.read(lab)
    lines += [f"{name.replace('_', ' ')} {what}" for name, what in vars(odd).items() if what]
    if pulled := cables.pulled(lab):
        lines.append(f"cables out: rail {', '.join(str(rail) for rail in sorted(pulled))}")
    services = control.running(lab)
    lines.append(
        "services  " + ", ".join(f"{name}{'' if runs else ' DEAD'}" for name, runs in services.items())
    )
    return "\n".join(lines)


def environment(lab: Lab) -> str:
    """For programs: NAME=value lines."""
    values = {
        "LAB_NAME": lab.name,
        "LAB_INVENTORY": lab.inventory,
        "LAB_SSH_CONFIG": lab.ssh_config,
        "LAB_GATEWAY": lab.network.gateway,
        "LAB_HUB": lab.hub_url,
        "LAB_REGISTRY": lab.registry,
        "LAB_CATALOGUE": lab.catalogue,
        "LAB_HUB_ROOT": lab.hub,
    }
    return "\n".join(f"{name}={value}" for name, value in values.items())
