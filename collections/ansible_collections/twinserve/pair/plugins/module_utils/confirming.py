"""A change under a way back, from its beginning to its confirmation over a new connection to the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from . import way_back
from .shell import CommandError

# Seconds from the change until the node takes it back by itself. Our own checks end after 16 at the latest,
# usually after 2, so that a new connection, for which ssh is given 10, still comes in time.
LIMIT = 25
# Seconds that an undo and what it brings back may take.
UNDO = 15
# Seconds for an undo that has begun to end, so that what we answer is the last word.
_ENDS = 40
# Seconds for another run that only looks. One that stays has begun a change, so ours has ended.
_LOOKS = 5


class ApplyError(RuntimeError):
    """The change was not kept; the text says why, and that the state before it is back."""


class UntidyError(RuntimeError):
    """The change is kept, but something that goes with it could not be done; the text says both."""


@dataclass(frozen=True)
class Outcome:
    """`armed`: a way back waits to be confirmed."""

    changed: bool = False
    before: str = ""
    after: str = ""
    armed: bool = False


class Module(Protocol):
    """What an Ansible module offers to say how it ended."""

    check_mode: bool

    def exit_json(self, **result: Any) -> NoReturn: ...

    def fail_json(self, msg: str, **result: Any) -> NoReturn: ...


@contextmanager
def alone(name: str, what: str) -> Iterator[None]:
    """Look and change while nobody else does. Raises ApplyError when the change before does not end."""

    def is_settled() -> bool:
        return way_back.state(name) not in ("armed", "undoing")

    with way_back.lock(name, LIMIT + UNDO, is_settled) as is_held:
        if not is_held:
            raise ApplyError(f"another change of {what} has not ended: run this again in a minute")
        yield


def answer(module: Module, name: str, what: str, finish: Callable[[Mapping[str, Any]], None]) -> None:
    """Keep the change of `what` that is armed, and `finish` it; ends the module."""
    try:
        outcome = "none" if module.check_mode else _confirm(name, finish)
    except UntidyError as error:
        module.fail_json(msg=f"{error}; run this again", way_back="kept")
    except CommandError as error:
        # Nobody knows: the change is kept, or its timer takes it back.
        module.fail_json(msg=str(error))
    if outcome == "undone":
        module.fail_json(msg=f"the node has taken the change of {what} back", way_back=outcome)
    if outcome == "none" and not module.check_mode:
        text = f"no change of {what} waits to be confirmed: the node was restarted, or another run ended it"
        module.fail_json(msg=text, way_back=outcome)
    module.exit_json(changed=outcome == "kept", way_back=outcome)


def _confirm(name: str, finish: Callable[[Mapping[str, Any]], None]) -> str:
    """`kept`, or `undone` when the node was faster, or `none` when nothing waits.

    Raises UntidyError for a change that is kept and was not brought to its end.
    """
    with way_back.lock(name, _LOOKS) as is_held:
        if is_held and (about := way_back.claim(name)):
            try:
                way_back.stop_timer(name)
                finish(about)
            except (CommandError, OSError) as error:
                raise UntidyError(f"the change is kept, but {error}") from error
            finally:
                way_back.clear(name)
            return "kept"
    return way_back.settle(name, _ENDS)
