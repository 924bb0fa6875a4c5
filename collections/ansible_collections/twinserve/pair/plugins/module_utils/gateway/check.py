"""Whether the gateway lets in who has a key, and nobody else: asked from the head, as a client would."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from ..api_check import ApiBusy, ApiError
from .certificate import SHOWN
from .keys import KEYS, parse_keys

_PATH = "/v1/models"
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Gateway:
    """Where it listens, and a name that its certificate must have, where we know one."""

    host: str
    port: int
    name: str | None


def check(gateway: Gateway) -> None:
    """Ask without a key and with one.  Raises ApiError: it lets nobody in, or everybody."""
    keys = parse_keys(KEYS.read_text())
    if not keys:
        raise ApiError(f"{KEYS} has no key: run serve.yml")
    bare, known = (_status(gateway, headers) for headers in ({}, _bearer(next(iter(keys.values())))))
    if bare != 401:
        raise ApiError(f"the gateway answered {bare} to a request without a key, not 401")
    if known in (429, 503):
        raise ApiBusy(f"the gateway answered {known} to {_PATH}")
    if known != 200:
        raise ApiError(f"the gateway answered {known} to {_PATH} with a key of its own")


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _status(gateway: Gateway, headers: Mapping[str, str]) -> int:
    connection = _Connection(gateway)
    try:
        connection.request("GET", _PATH, headers=dict(headers))
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise ApiError(
            f"the gateway at https://{gateway.host}:{gateway.port} did not answer: {error}; "
            "see journalctl -u twinserve-gateway on the head"
        ) from error
    finally:
        connection.close()


class _Connection(http.client.HTTPSConnection):
    """To an address, with the certificate judged by another name, as if that name led here."""

    def __init__(self, gateway: Gateway) -> None:
        # It is trusted, whoever signed it: this asks whether it is in force and has the name.
        self.judge = ssl.create_default_context(cafile=str(SHOWN))
        self.judge.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.judge.check_hostname = gateway.name is not None
        self.shown_as = gateway.name
        super().__init__(gateway.host, gateway.port, timeout=_TIMEOUT, context=self.judge)

    def connect(self) -> None:
        """Connect to the address and ask for the name."""
        bare = socket.create_connection((self.host, self.port), self.timeout)
        self.sock = self.judge.wrap_socket(bare, server_hostname=self.shown_as)
