"""The command line: one function for each verb."""

from __future__ import annotations

import argparse
import os
import sys

from . import apt_sources, base, device_verbs, disk, engine, image_store, lifecycle, ownership, power, report
from .errors import LabError
from .layout import ENGINES, Lab, check_name, state_root
from .progress import Progress
from .services import control
from .verbs import Verb, Verbs, running_lab


def _up(options: argparse.Namespace, progress: Progress) -> int:
    lab = lifecycle.up(
        state_root(),
        options.name,
        progress,
        options.cabled,
        options.hf,
        options.hardware,
        options.engine,
    )
    progress.say(f"ready: {lab.inventory}")
    return 0


def _down(options: argparse.Namespace, progress: Progress) -> int:
    lifecycle.down(state_root(), options.name, options.wipe, progress)
    return 0


def _wipe(options: argparse.Namespace, progress: Progress) -> int:
    lifecycle.wipe(state_root(), options.name, progress)
    return 0


def _status(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    print(report.status(lab))
    return 0 if report.is_up(lab) else 1


def _env(options: argparse.Namespace, progress: Progress) -> int:
    print(
        report.environment(
            Lab(options.name, state_root(), ownership.remembered_network(state_root(), options.name))
        )
    )
    return 0


def _ssh(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    os.execvp("ssh", ["ssh", "-F", str(lab.ssh_config), lab.host(options.host).name, *options.command])


def _exec(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    argv = power.command_in(lab.host(options.host), options.command)
    os.execvp(argv[0], argv)


def _power_cut(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    power.cut(lab, lab.host(options.host))
    return 0


def _power_on(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    host = lab.host(options.host)
    if not power.is_on(lab, host):
        power.switch_on(lab, host, base.folder(lab.root, apt_sources.distribution()))
    power.wait_until_running(lab, host)
    return 0


def _reboot(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    host = lab.host(options.host)
    power.reboot(host)
    power.wait_until_running(lab, host)
    return 0


def _memory(options: argparse.Namespace, progress: Progress) -> int:
    host = running_lab(options).host(options.host)
    most = host.hardware.memory_total_gib
    if not 0 < options.gib <= most:
        raise LabError(f"{options.gib:g} GiB: more than 0, at most {most}")
    if options.files is not None and not 0 <= options.files <= options.gib:
        raise LabError(f"--files {options.files:g}: at least 0, at most the {options.gib:g} GiB available")
    power.set_memory(host, options.gib, options.files)
    return 0


def _disk(options: argparse.Namespace, progress: Progress) -> int:
    disk.set_free(running_lab(options).host(options.host), options.gib)
    return 0


def _store(options: argparse.Namespace, progress: Progress) -> int:
    image_store.choose(running_lab(options).host(options.host), options.store)
    return 0


def _service(options: argparse.Namespace, progress: Progress) -> int:
    lab = running_lab(options)
    control.switch(lab, apt_sources.distribution(), options.service, options.state == "on")
    return 0


def _engine(options: argparse.Namespace, progress: Progress) -> int:
    host = running_lab(options).host(options.host)
    switches = {} if options.clear else engine.read_switches(host)
    engine.write_switches(host, switches | engine.parse_switches(options.switch))
    return 0


def _parser() -> argparse.ArgumentParser:
    verbs = Verbs()
    up = verbs.add("up", _up, "build and boot the pair")
    up.add_argument(
        "--cabled", action="store_true", help="with addresses on the rails and ssh between the hosts"
    )
    up.add_argument("--hf", action="store_true", help="with the model hub's client for the hosts' user")
    up.add_argument("--hardware", metavar="KIND", help="spark or station; left out: as before, else spark")
    up.add_argument(
        "--engine", choices=ENGINES, help="the simulated one, or vLLM on CPUs; left out: as before"
    )
    down = verbs.add("down", _down, "shut the pair down")
    down.add_argument("--wipe", action="store_true", help="and forget what the hosts have on their disks")
    verbs.add("wipe", _wipe, "down, and remove all state; with the last lab also the base and the caches")
    verbs.add("status", _status, "what runs; exit code 1 unless all does")
    verbs.add("env", _env, "paths and addresses for other programs")
    service = verbs.add("service", _service, "end one of the lab's own services, or start it again")
    service.add_argument("service", choices=sorted(control.PORTS))
    service.add_argument("state", choices=("on", "off"))
    _add_host_verbs(verbs)
    device_verbs.add(verbs)
    return verbs.parser


def _add_host_verbs(verbs: Verbs) -> None:
    commands = {
        "ssh": (_ssh, "log in as the user, or run a command"),
        "exec": (_exec, "run a command as root, without ssh"),
    }
    for name, (run, text) in commands.items():
        verbs.add(name, run, text, host=True).add_argument("command", nargs=argparse.REMAINDER)
    verbs.add("power-cut", _power_cut, "take the power away, at once", host=True)
    verbs.add("power-on", _power_on, "switch on and wait until booted", host=True)
    verbs.add("reboot", _reboot, "reboot in good order and wait until booted", host=True)
    memory = verbs.add("memory", _memory, "set the GiB available while no engine is loaded", host=True)
    memory.add_argument("--files", type=float, metavar="GIB", help="how many of these are kept of files")
    for sized in (memory, verbs.add("disk", _disk, "set the GiB free on the host's disk", host=True)):
        sized.add_argument("gib", type=float, metavar="GIB")
    store = verbs.add("store", _store, "where the host's Docker keeps images", host=True)
    store.add_argument("store", choices=image_store.STORES)
    engine_verb = verbs.add("engine", _engine, "set switches of the simulated engine", host=True)
    engine_verb.add_argument("--clear", action="store_true", help="forget the switches that are set")
    engine_verb.add_argument("switch", nargs="*", metavar="KEY=VALUE")


def main(argv: list[str]) -> int:
    """Run one verb.  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 cannot run here."""
    options = _parser().parse_args(argv)
    progress = Progress()
    try:
        check_name(options.name)
        verb: Verb = options.run
        return verb(options, progress)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("lab: interrupted; `lab down` clears what is left", file=sys.stderr)
        return 130
