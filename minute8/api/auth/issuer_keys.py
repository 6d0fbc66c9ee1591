"""The public keys of the token issuer: fetched from the configured address and cached.

Imported on use: only packages of deployments that accept tokens contain PyJWT and cryptography.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any, Final

import jwt

from common import telemetry
from common.errors import InvalidInput, Minute8Error, shown
from common.timing.instants import DAY_S
from minute8.api.auth.discovery import Fetch, document, fetching, metadata
from minute8.api.auth.tokens import ALGORITHMS, TokenSettings, check_https
from minute8.api.http.problems import IssuerUnreachable

# A key that the issuer has withdrawn is refused after this time.
FRESH_S: Final = 600
# The least time between two requests to the issuer, also after unknown key ids and failed requests.
AGAIN_S: Final = 30
# How long cached keys are used while the issuer does not answer.
STALE_S: Final = DAY_S
_MAX_KEYS: Final = 100


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
        entries = document(self._fetch, self._settings.jwks_url or self._jwks_uri()).get("keys")
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

    def _jwks_uri(self) -> str:
        return check_https("jwks_uri", metadata(self._fetch, self._settings.issuer).get("jwks_uri"))

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
