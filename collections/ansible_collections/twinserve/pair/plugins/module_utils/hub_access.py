"""May this node download a snapshot, and how large is it? Asked before any long work."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener, proxy_bypass

PUBLIC = "https://huggingface.co"
_FILE = "config.json"
_NEXT = re.compile(r'<([^>]+)>;\s*rel="?next')


def ask(url: str, token: str, proxies: Mapping[str, str], timeout: float = 20.0) -> tuple[int, str]:
    """Status and the hub's own code for the cause, which is empty for most answers.

    Raises OSError when no answer comes. `proxies` are named as in the environment (`https_proxy`).
    """
    try:
        with _open(_request(url, token, "HEAD"), proxies, timeout) as answer:
            return int(answer.status), ""
    except HTTPError as error:
        return error.code, str(error.headers.get("X-Error-Code") or "")


def read_list(
    endpoint: str | None, repo: str, revision: str, token: str, proxies: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """All files of a revision, as the client would store them (see `hf_cache.hub_list`).

    Raises OSError, also for an answer that is no list.
    """
    query = "recursive=true&expand=false"
    url: str | None = f"{(endpoint or PUBLIC).rstrip('/')}/api/models/{repo}/tree/{revision}?{query}"
    files: dict[str, dict[str, Any]] = {}
    while url:
        try:
            with _open(_request(url, token, "GET"), proxies, 20.0) as answer:
                entries, link = json.load(answer), answer.headers.get("Link")
            for entry in entries:
                if entry["type"] == "file":
                    files[str(entry["path"])] = _stored(entry)
        except HTTPError as error:
            raise OSError(f"{error.code} for the list of {repo}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise OSError(f"the list of {repo} cannot be read: {error!r}") from error
        # A long list comes in pages.
        before, following = url, _NEXT.search(link or "")
        url = urljoin(url, following[1]) if following else None
        if url and not _same_host(before, url):
            token = ""
    return files


def _stored(entry: Mapping[str, Any]) -> dict[str, Any]:
    own = {"size": int(entry["size"]), "blob_id": str(entry["oid"])}
    large = entry.get("lfs")
    return own | ({"lfs_size": int(large["size"]), "lfs_sha256": str(large["oid"])} if large else {})


def _same_host(one: str, other: str) -> bool:
    """Whether a secret for one address may go to the other: the same host, and no less hidden."""
    here, there = urlsplit(one), urlsplit(other)
    return here.hostname == there.hostname and (here.scheme, there.scheme) != ("https", "http")


class _Redirects(HTTPRedirectHandler):
    """Follows, and keeps the token from other hosts: the library itself would send it along."""

    def redirect_request(self, req: Request, *more: Any) -> Request | None:
        following = super().redirect_request(req, *more)
        if following and not _same_host(req.full_url, following.full_url):
            following.remove_header("Authorization")
        return following


def _request(url: str, token: str, method: str) -> Request:
    return Request(url, method=method, headers={"Authorization": f"Bearer {token}"} if token else {})


def _open(request: Request, proxies: Mapping[str, str], timeout: float) -> Any:
    named = {name.lower().removesuffix("_proxy"): value for name, value in proxies.items() if value}
    direct = proxy_bypass(request.host, named)
    opener = build_opener(ProxyHandler({} if direct else named), _Redirects())
    try:
        return opener.open(request, timeout=timeout)
    except HTTPError:
        raise
    except URLError as error:
        raise OSError(str(error.reason)) from error
    except HTTPException as error:
        raise OSError(f"no proper answer: {error!r}") from error


def address(endpoint: str | None, repo: str, revision: str) -> str:
    """Where the file is that is asked for."""
    return f"{(endpoint or PUBLIC).rstrip('/')}/{repo}/resolve/{revision}/{_FILE}"


def verdict(status: int, code: str, repo: str, revision: str, token: str) -> str:
    """What stands in the way, in a sentence; empty when nothing does. `token` is where it is from, if any."""
    if code == "RepoNotFound" or (status == 404 and code in ("RepoNotFound", "RevisionNotFound", "")):
        return f"no {repo} at revision {revision} (or it is private, and not for the account of hf_token)"
    if status == 401 and token:
        return f"Hugging Face does not accept the token ({token})"
    if status == 401:
        return f"{repo} needs a token: set hf_token"
    if status == 403:
        return f"the token's account has not accepted the terms of {repo} (or lacks gated read access)"
    # A repository without this file is a 404 of its own kind; limits and errors of the moment pass.
    return ""
