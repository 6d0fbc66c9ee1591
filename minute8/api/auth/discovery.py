"""What the token issuer says of itself, fetched from the configured address."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from common.errors import InvalidInput
from minute8.api.auth.tokens import check_https
from minute8.api.http.requests import read_json

_TIMEOUT_S: Final = 3
_MAX_ANSWER: Final = 256 * 1024
_DISCOVERY: Final = "/.well-known/openid-configuration"

Fetch = Callable[[str], bytes]


def metadata(fetch: Fetch, issuer: str) -> Mapping[str, Any]:
    """The issuer's own description. Raises OSError, HTTPException, Malformed, InvalidInput.

    https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfigurationValidation
    """
    answered = document(fetch, issuer.rstrip("/") + _DISCOVERY)
    if answered.get("issuer") != issuer:
        raise InvalidInput(
            "issuer", "must be the configured issuer", value=answered.get("issuer"), accepted=issuer
        )
    return answered


def document(fetch: Fetch, url: str) -> Mapping[str, Any]:
    """The JSON object at an address. Raises OSError, HTTPException, Malformed, InvalidInput."""
    answered = read_json(fetch(url))
    if not isinstance(answered, dict):
        raise InvalidInput(url, "must be a JSON object", value=answered)
    return answered


class _Redirected(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # not the configured address, and perhaps not https


def fetching(context: ssl.SSLContext) -> Fetch:
    """GET over https with the trusted certificates of `context`. No proxies, no redirects, bounded."""
    opener = build_opener(HTTPSHandler(context=context), _Redirected)

    def fetch(url: str) -> bytes:
        request = Request(check_https("url", url), headers={"Accept": "application/json"})
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            body: bytes = answer.read(_MAX_ANSWER + 1)
        if len(body) > _MAX_ANSWER:
            raise InvalidInput(url, "answers too much", accepted=f"at most {_MAX_ANSWER} bytes")
        return body

    return fetch
