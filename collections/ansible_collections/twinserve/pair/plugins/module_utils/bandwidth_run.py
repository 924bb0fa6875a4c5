"""Runs `ib_write_bw` on this node, each as a transient systemd unit with a limit of its own.

So nothing is left behind, whatever becomes of the session that started it. Buffers are small: a test that
took gigabytes has frozen a node, whose memory is also the GPU's.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

from . import lost_device
from .bandwidth_parse import BUILD, GPU_OPTIONS, Measured, missing_options, parse
from .gids import find_v2, no_v2
from .gpus import bus_id
from .hardware import read_hardware
from .listeners import read_listeners
from .shell import CommandError, run
from .sysfs import Device, read_devices

LOGS = Path("/run/twinserve/bandwidth")
_UNIT = "twinserve-bandwidth"
_PROGRAM = "ib_write_bw"
# Bytes a message: the tool's own default, and what NVIDIA tests GPU memory with.
_SIZES = {"host": 65536, "gpu": 1048576}
# Seconds that a client may take beside its duration, and a server until it listens.
_PATIENCE = 20
_START = 15.0


def program() -> str | None:
    """Where the tool is; a build of one's own below /usr/local comes first."""
    return shutil.which(_PROGRAM)


def gpu_options(uuid: str | None) -> list[str]:
    """What measures in the memory of a GPU. Raises CommandError when the tool, or the GPU, cannot."""
    # It ends with 1 after its help, in many versions.
    done = subprocess.run([_PROGRAM, "--help"], capture_output=True, text=True, timeout=20, check=False)
    if missing := missing_options(done.stdout + done.stderr):
        raise CommandError(f"GPU memory is not measured, as {program()} has no {', '.join(missing)}: {BUILD}")
    # The other two are taken only after the GPU is named.
    return [f"--use_cuda_bus_id={bus_id(uuid)}" if uuid else "--use_cuda=0", *GPU_OPTIONS]


def command(one: Mapping[str, Any], gid_index: int, duration: int, gpu: Sequence[str] = ()) -> list[str]:
    """The command line; a client's ends with its peer."""
    argv = [program() or _PROGRAM, "-d", one["hca"], "-x", str(gid_index), "-F", "--report_gbits"]
    argv += ["-s", str(_SIZES[one["memory"]]), "-D", str(duration), "-p", str(one["port"])]
    argv += gpu if one["memory"] == "gpu" else []
    return [*argv, one["peer"]] if "peer" in one else argv


def listen(
    runs: Sequence[Mapping[str, Any]], duration: int, limit: int, gpu: Sequence[str] = ()
) -> list[str]:
    """Start a server for each run and wait until all listen. Returns what is wrong with those that do not."""
    stop()
    LOGS.mkdir(parents=True, exist_ok=True)
    devices = {device.hca: device for device in read_devices()}
    wrong: dict[int, str] = {}
    for one in runs:
        output = f"append:{_log(one['port'])}"
        to_log = [f"--property=StandardOutput={output}", f"--property=StandardError={output}"]
        try:
            argv = command(one, _gid_index(one, devices), duration, gpu)
            run([*_unit(f"server-{one['port']}", limit), *to_log, "--", *argv])
        except CommandError as error:
            wrong[one["port"]] = str(error)
    for port in _deaf({one["port"] for one in runs} - set(wrong)):
        text = _log(port).read_text(errors="replace") if _log(port).is_file() else ""
        wrong[port] = f"{_PROGRAM} does not listen on port {port}: {parse(text, 1).problem}"
    return list(dict.fromkeys(wrong.values()))


def _deaf(ports: set[int]) -> list[int]:
    """The ports on which nothing listens after a while."""
    end = time.monotonic() + _START
    while (waiting := ports - {one.port for one in read_listeners()}) and time.monotonic() < end:
        time.sleep(0.1)
    return sorted(waiting)


def measure(
    runs: Sequence[Mapping[str, Any]], duration: int, gpu: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Run the clients, phase after phase; each run with its rate or problem, and what its end can carry."""
    devices = {device.hca: device for device in read_devices()}
    found: list[dict[str, Any]] = []
    for _, phase in groupby(runs, key=lambda one: one["phase"]):
        together = list(phase)
        with ThreadPoolExecutor(max_workers=len(together)) as pool:
            rates = pool.map(lambda one: _client(one, devices, duration, gpu), together)
            for one, rate in zip(together, rates, strict=True):
                end = _end(one["hca"], devices)
                found.append({**one, **end, "gbits": rate.gbits, "problem": rate.problem})
    return found


def stop() -> None:
    """End what runs of ours, and forget what it printed."""
    run(["systemctl", "stop", f"{_UNIT}-*"], timeout=120)
    if LOGS.is_dir():
        shutil.rmtree(LOGS)


def _client(
    one: Mapping[str, Any], devices: Mapping[str, Device], duration: int, gpu: Sequence[str]
) -> Measured:
    limit = duration + _PATIENCE
    try:
        argv = command(one, _gid_index(one, devices), duration, gpu)
        unit = [*_unit(f"client-{one['port']}", limit), "--wait", "--pipe", "--", *argv]
        done = subprocess.run(
            unit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit + 10, check=False
        )
    except CommandError as error:
        return Measured(None, str(error))
    except subprocess.TimeoutExpired:
        return Measured(None, f"{_PROGRAM} did not end within {limit} s")
    return parse(done.stdout, done.returncode)


def _unit(name: str, limit: int) -> list[str]:
    limits = [f"--property=RuntimeMaxSec={limit}", "--property=LimitMEMLOCK=infinity"]
    return ["systemd-run", "--quiet", "--collect", f"--unit={_UNIT}-{name}", *limits]


def _gid_index(one: Mapping[str, Any], devices: Mapping[str, Device]) -> int:
    device = devices.get(one["hca"])
    if device is None:
        raise CommandError(lost_device.text(one["netdev"], lost_device.read_error()))
    gid = find_v2(device.gids, one["address"])
    if gid is None:
        raise CommandError(no_v2(one["hca"], one["address"], device.gids))
    return gid.index


def _end(hca: str, devices: Mapping[str, Device]) -> dict[str, Any]:
    """Speed of the link and of PCIe below it, in Gb/s; None where the kernel does not say."""
    device = devices.get(hca)
    pcie = read_hardware(Path("/"), hca)["pcie"]
    return {
        "speed": device.speed / 1000 if device and device.speed else None,
        "pcie": pcie and pcie["throughput_gbps"],
    }


def _log(port: int) -> Path:
    return LOGS / f"{port}.log"
