"""Whether the firewall's rules are in the kernel, as nft lists them."""

from __future__ import annotations

import shutil
from pathlib import Path

from .firewall_rules import FILE, TABLE, signature
from .shell import CommandError, run


def read_table() -> str:
    """The table as nft writes it; empty when it is not loaded."""
    if not shutil.which("nft"):
        return ""
    try:
        return run(["nft", "--stateless", "list", "table", *TABLE.split()])
    except CommandError as error:
        if "No such file or directory" in error.said:
            return ""
        raise


def is_intact(file: Path = Path(FILE)) -> bool | None:
    """Whether the rules that each boot loads are those that are loaded; None where a boot loads none."""
    if not file.is_file():
        return None
    return signature(read_table()) == signature(file.read_text(encoding="utf-8"))
