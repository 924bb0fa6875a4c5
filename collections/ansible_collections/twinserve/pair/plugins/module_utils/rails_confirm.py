"""Keep a change of the rails, once a new connection to this node came through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import guard, rails_absent, way_back
from .shell import CommandError

# Seconds for an undo that has begun to end, so that what we answer is the last word.
_ENDS = 40
# Seconds for another run that only looks. One that stays has begun a change, so ours has ended.
_LOOKS = 5


class UntidyError(RuntimeError):
    """The change is kept, but something that goes with it could not be done; the text says both."""


def confirm() -> str:
    """`kept`, or `undone` when the node was faster, or `none` when nothing waits.

    Raises UntidyError for a change that is kept and was not brought to its end.
    """
    with way_back.lock(guard.NAME, _LOOKS) as is_held:
        if is_held and (about := way_back.claim(guard.NAME)):
            _finish(about)
            return "kept"
    return way_back.settle(guard.NAME, _ENDS)


def _finish(about: Mapping[str, Any]) -> None:
    try:
        way_back.stop_timer(guard.NAME)
        if about["kind"] == "absent":
            rails_absent.finish()
    except CommandError as error:
        raise UntidyError(f"the change is kept, but {error}") from error
    finally:
        way_back.clear(guard.NAME)
