"""The agent's one exception."""

from __future__ import annotations


class AgentError(RuntimeError):
    """A verb could not be done; the text is for people and names what is wrong on this node."""
