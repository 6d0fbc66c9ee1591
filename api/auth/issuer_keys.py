"""The public keys of the token issuer: fetched from the configured address and cached.

Imported on use: only packages of deployments that accept tokens contain PyJWT and cryptography.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import jwt

from api.auth.tokens import ALGORITHMS, TokenSettings, check_https
from api.http.problems import IssuerUnreachable
from api.http.requests import read_json
from common import telemetry
from common.errors import InvalidInput, Minute8Error, shown
from common.timing.instants import DAY_S

# A key that the issuer has withdrawn is refused after this time.
FRESH_S: Final = 600
# The least time between two requests to the issuer, also after unknown key ids and failed requests.
AGAIN_S: Final = 30
# How long cached keys are used while the issuer does not answer.
STALE_S: Final = DAY_S
_TIMEOUT_S: Final = 3
_MAX_ANSWER: Final = 256 * 1024
_MAX_KEYS: Final = 100
_DISCOVERY: Final = "/.well-known/openid-configuration"

Fetch = Callable[[str], bytes]


class IssuerKeys:
    """Use one instance per process. `fetch` returns the document at an https address; it raises OSError."""

    def __init__(self, settings: TokenSettings, fetch: Fetch | None = None) -> None:
        self._settings = settings
        self._fetch = fetch or fetching(ssl.create_default_context())
        self._keys: Mapping[tuple[str, str], jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._lock = threading.Lock()

    def key(self, key_id: str, algorithm: str, now: float) -> jwt.PyJWK | None:
        """The key of that id for that algorithm; None if the issuer has none. Raises IssuerUnreachable."""
        with self._lock:
            known = self._keys.get((key_id, algorithm))
            if known and self._fetched_at <= now < self._fetched_at + FRESH_S:
                return known
            if not self._tried_at <= now < self._tried_at + AGAIN_S:
                self._tried_at = now
                self._refresh(now)
            if not self._fetched_at <= now < self._fetched_at + STALE_S:
                raise IssuerUnreachable(AGAIN_S)
            return self._keys.get((key_id, algorithm))

    def _refresh(self, now: float) -> None:
        try:
            self._keys = self._read()
            self._fetched_at = now
        except (OSError, HTTPException, Minute8Error) as error:
            telemetry.logger().warning(
                "the keys of the tokens' issuer could not be read",
                issuer=self._settings.issuer,
                reason=shown(f"{type(error).__name__}: {error}"),
            )

    def _read(self) -> Mapping[tuple[str, str], jwt.PyJWK]:
        entries = self._document(self._settings.jwks_url or self._discovered()).get("keys")
        if not isinstance(entries, list):
            raise InvalidInput("keys", "must be a list", value=entries, accepted="a JSON Web Key Set")
        keys: dict[tuple[str, str], jwt.PyJWK] = {}
        for raw in entries[:_MAX_KEYS]:
            for algorithm in self._algorithms_of(raw):
                try:
                    keys.setdefault((raw["kid"], algorithm), jwt.PyJWK(raw, algorithm))
                except (jwt.PyJWTError, ValueError, TypeError):
                    continue  # this library cannot use the key; the others are valid
        if not keys:
            raise InvalidInput("keys", "hold none for", value=list(self._settings.algorithms))
        return keys

    def _discovered(self) -> str:
        """https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfigurationValidation"""
        metadata = self._document(self._settings.issuer.rstrip("/") + _DISCOVERY)
        if metadata.get("issuer") != self._settings.issuer:
            raise InvalidInput(
                "issuer",
                "must be the configured issuer",
                value=metadata.get("issuer"),
                accepted=self._settings.issuer,
            )
        return check_https("jwks_uri", metadata.get("jwks_uri"))

    def _document(self, url: str) -> Mapping[str, Any]:
        document = read_json(self._fetch(url))
        if not isinstance(document, dict):
            raise InvalidInput(url, "must be a JSON object", value=document)
        return document

    def _algorithms_of(self, raw: Any) -> Iterator[str]:
        """The configured algorithms that the key is for. https://www.rfc-editor.org/rfc/rfc7517#section-4"""
        if not isinstance(raw, dict) or not isinstance(raw.get("kid"), str):
            return
        operations = raw.get("key_ops", ["verify"])
        if raw.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
            return
        for algorithm in self._settings.algorithms:
            kty, crv = ALGORITHMS[algorithm]
            if (raw.get("kty"), raw.get("crv")) == (kty, crv) and raw.get("alg", algorithm) == algorithm:
                yield algorithm


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
