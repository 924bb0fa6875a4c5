"""May this node download a snapshot? Asked before any long work, for one small file of it."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener, proxy_bypass

PUBLIC = "https://huggingface.co"
_FILE = "config.json"


def ask(url: str, token: str, proxies: Mapping[str, str], timeout: float = 20.0) -> tuple[int, str]:
    """Status and the hub's own code for the cause, which is empty for most answers.

    Raises OSError when no answer comes. `proxies` are named as in the environment (`https_proxy`).
    """
    request = Request(url, method="HEAD", headers={"Authorization": f"Bearer {token}"} if token else {})
    named = {name.lower().removesuffix("_proxy"): value for name, value in proxies.items() if value}
    direct = proxy_bypass(request.host, named)
    opener = build_opener(ProxyHandler({} if direct else named))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return int(answer.status), ""
    except HTTPError as error:
        return error.code, str(error.headers.get("X-Error-Code") or "")
    except URLError as error:
        raise OSError(str(error.reason)) from error
    except HTTPException as error:
        raise OSError(f"no proper answer: {error!r}") from error


def address(endpoint: str | None, repo: str, revision: str) -> str:
    """Where the file is that is asked for."""
    return f"{(endpoint or PUBLIC).rstrip('/')}/{repo}/resolve/{revision}/{_FILE}"


def verdict(status: int, code: str, repo: str, revision: str, with_token: bool) -> str:
    """What stands in the way, in a sentence; empty when nothing does."""
    if code == "RepoNotFound" or (status == 404 and code in ("RepoNotFound", "RevisionNotFound", "")):
        return f"no {repo} at revision {revision} (or it is private, and not for the account of hf_token)"
    if status == 401 and with_token:
        return "Hugging Face does not accept the token (hf_token)"
    if status == 401:
        return f"{repo} needs a token: set hf_token"
    if status == 403:
        return f"the token's account has not accepted the terms of {repo} (or lacks gated read access)"
    # A repository without this file is a 404 of its own kind; limits and errors of the moment pass.
    return ""
