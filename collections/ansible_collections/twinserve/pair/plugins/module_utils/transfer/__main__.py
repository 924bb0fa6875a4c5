"""`python3 -m twinserve.transfer PLAN`: the job of one copy. Its last line says what became of it."""

from __future__ import annotations

import sys
from pathlib import Path

from .plan import PlanError, parse
from .run import Copy
from .streams import CopyError


def main(argv: list[str]) -> int:
    """Exit code 0 when everything arrived; what did not stays to be gone on with."""
    try:
        copy = Copy(parse(Path(argv[1]).read_text(encoding="utf-8")), _say)
        try:
            copy.run()
        finally:
            copy.halt()
    except (CopyError, PlanError, OSError) as error:
        _say(str(error))
        return 1
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
