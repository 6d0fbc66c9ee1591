"""The public keys of the tokens' issuer: fetched from where the configuration says, kept, and fetched again with care.

Imported on use: PyJWT and cryptography are in the API's package only where tokens are taken.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import jwt

from api.auth.token_settings import ALGORITHMS, TokenSettings, check_https
from api.http.problems import IssuerUnreachable
from api.http.requests import read_json
from common import telemetry
from common.errors import InvalidInput, Minute8Error, shown
from common.timing.instants import DAY_S

# A key that the issuer has withdrawn is refused after this.
FRESH_S: Final = 600
# Tokens with invented keys make us ask the issuer no more often than this, and so do issuers that do not answer.
AGAIN_S: Final = 30
# How long the keys serve while the issuer does not answer.
STALE_S: Final = DAY_S
_TIMEOUT_S: Final = 3
_LONGEST_ANSWER: Final = 256 * 1024
_MOST_KEYS: Final = 100
_DISCOVERY: Final = "/.well-known/openid-configuration"

Fetch = Callable[[str], bytes]


class IssuerKeys:
    """One instance lives as long as its process. `fetch` gets what is at an https address; it raises OSError."""

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
        found = self._document(self._settings.jwks_url or self._discovered()).get("keys")
        if not isinstance(found, list):
            raise InvalidInput("keys", "must be a list", value=found, accepted="a JSON Web Key Set")
        keys: dict[tuple[str, str], jwt.PyJWK] = {}
        for raw in found[:_MOST_KEYS]:
            for algorithm in self._algorithms_of(raw):
                try:
                    keys.setdefault((raw["kid"], algorithm), jwt.PyJWK(raw, algorithm))
                except (jwt.PyJWTError, ValueError, TypeError):
                    continue  # one that this library cannot use; the others are good
        if not keys:
            raise InvalidInput("keys", "hold none for", value=list(self._settings.algorithms))
        return keys

    def _discovered(self) -> str:
        """https://openid.net/specs/openid-connect-discovery-1_0.html#ProviderConfigurationValidation"""
        told = self._document(self._settings.issuer.rstrip("/") + _DISCOVERY)
        if told.get("issuer") != self._settings.issuer:
            raise InvalidInput(
                "issuer", "is another", value=told.get("issuer"), accepted=self._settings.issuer
            )
        return check_https("jwks_uri", told.get("jwks_uri"))

    def _document(self, url: str) -> Mapping[str, Any]:
        document = read_json(self._fetch(url))
        if not isinstance(document, dict):
            raise InvalidInput(url, "is no JSON object", value=document)
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
        return None  # an address that nobody configured, and perhaps not https


def fetching(context: ssl.SSLContext) -> Fetch:
    """GET over https, believing the servers that `context` does. No proxies, no redirects, bounded."""
    opener = build_opener(HTTPSHandler(context=context), _Redirected)

    def fetch(url: str) -> bytes:
        request = Request(check_https("url", url), headers={"Accept": "application/json"})
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            body: bytes = answer.read(_LONGEST_ANSWER + 1)
        if len(body) > _LONGEST_ANSWER:
            raise InvalidInput(url, "answers too much", accepted=f"at most {_LONGEST_ANSWER} bytes")
        return body

    return fetch
