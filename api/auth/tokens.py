"""Authentication with signed tokens (JWT) of a trusted issuer, as an alternative to API keys.

A token is valid until it expires. It cannot be revoked; only suspending the tenant stops it.
https://www.rfc-editor.org/rfc/rfc8725 explains the checks. PyJWT checks the signature. The times are checked here,
against our own clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from api.auth.token_settings import TokenSettings
from api.http.problems import Malformed
from api.http.requests import read_json
from common import telemetry
from common.errors import InvalidInput, Unauthenticated, shown
from common.ids import TENANT_ID_CHARS, check_id
from common.platform.credential import Credential

if TYPE_CHECKING:
    from api.auth.issuer_keys import IssuerKeys

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_LONGEST: Final = 8_192
_MAX_KEY_ID: Final = 255
# https://openid.net/specs/openid-connect-core-1_0.html#IDToken
_MAX_SUBJECT: Final = 255
# The allowed difference between the issuer's clock and ours.
LEEWAY_S: Final = 30
# The same issuer also signs tokens for other purposes (logout, DPoP, security events). Those must be refused.
# https://www.rfc-editor.org/rfc/rfc8725#section-3.11
_TYPES: Final = (None, "jwt", "at+jwt", "application/at+jwt")
_PRINTABLE: Final = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"  # printable ASCII except %, which quotes the others


class _Refused(Exception):
    """Why a token is refused. Only the log contains it."""


class Tokens:
    """Use one instance per process: it caches the issuer's keys."""

    def __init__(
        self, settings: TokenSettings, keys_of: Callable[[TokenSettings], IssuerKeys] | None = None
    ) -> None:
        self._settings = settings
        self._keys_of = keys_of or _issuer_keys
        self._keys: IssuerKeys | None = None

    def authenticate(self, token: str, now: float) -> Credential:
        """The credential of a token. Raises Unauthenticated, which never says why, and IssuerUnreachable."""
        try:
            return self._credential(self._claims(token, now))
        except (_Refused, Malformed, InvalidInput) as error:
            telemetry.logger().info("token refused", reason=shown(str(error)))
            raise Unauthenticated from None

    def _credential(self, claims: Mapping[str, Any]) -> Credential:
        name = self._settings.tenant_claim
        tenant = check_id(name, claims.get(name), TENANT_ID_CHARS)
        role = self._settings.role_of(claims)
        if role is None:
            raise _Refused(f"{self._settings.role_claim!r} names no role")
        # Different subjects get different ids, and no id in the audit can look like another kind of id.
        return Credential(tenant, role, f"jwt:{quote(claims['sub'], safe=_PRINTABLE)}")

    def _claims(self, token: str, now: float) -> Mapping[str, Any]:
        """The token's claims, if the issuer signed them for us and they are valid now."""
        import jwt

        if len(token) > _LONGEST:
            raise _Refused(f"it has {len(token)} characters")
        header, payload = (_part(token, number) for number in (0, 1))
        key_id, algorithm = self._checked_header(header)
        if self._keys is None:
            self._keys = self._keys_of(self._settings)
        key = self._keys.key(key_id, algorithm, now)
        if key is None:
            raise _Refused(f"the issuer has no key {shown(key_id)} for {algorithm}")
        try:
            jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                issuer=self._settings.issuer,
                audience=self._settings.audiences,
                options={
                    "require": ["iss", "aud", "sub", "exp"],
                    "enforce_minimum_key_length": True,
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError as error:
            raise _Refused(f"{type(error).__name__}: {error}") from None
        _check_claims(payload, now)
        return payload

    def _checked_header(self, header: Mapping[str, Any]) -> tuple[str, str]:
        """The key's id and the algorithm. Header fields that point to other keys (jku, x5u, jwk, x5c) are ignored."""
        key_id, algorithm, kind = (header.get(name) for name in ("kid", "alg", "typ"))
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            raise _Refused(f"alg is {shown(algorithm)}")
        if not isinstance(key_id, str) or not 1 <= len(key_id) <= _MAX_KEY_ID:
            raise _Refused(f"kid is {shown(key_id)}")
        if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
            raise _Refused(f"typ is {shown(kind)}")
        if unknown := {"crit", "b64"} & header.keys():
            raise _Refused(f"{', '.join(sorted(unknown))} wants what is not understood here")
        return key_id, algorithm


def is_token(text: str) -> bool:
    """Whether the text can be a signed token, and therefore is not an API key."""
    return _TOKEN.fullmatch(text) is not None


def _part(token: str, number: int) -> Mapping[str, Any]:
    """A part's JSON object. Doubled names are refused: two readers could see two different tenants."""
    from jwt.utils import base64url_decode

    try:
        value = read_json(base64url_decode(token.split(".")[number]))
    except ValueError as error:  # invalid base64
        raise _Refused(str(error)) from None
    if not isinstance(value, dict):
        raise _Refused(f"{shown(value)} is not a JSON object")
    return value


def _check_claims(claims: Mapping[str, Any], now: float) -> None:
    """Check what the library does not check: times, subject, and that the token needs no proof of possession."""
    # https://www.rfc-editor.org/rfc/rfc7519#section-4.1.4
    if not _instant(claims, "exp") > now - LEEWAY_S:
        raise _Refused(f"exp is {claims['exp']}, and it is {now:.0f}")
    for name in ("nbf", "iat"):
        if name in claims and not _instant(claims, name) <= now + LEEWAY_S:
            raise _Refused(f"{name} is {claims[name]}, and it is {now:.0f}")
    if not 1 <= len(claims["sub"]) <= _MAX_SUBJECT:
        raise _Refused(f"sub has {len(claims['sub'])} characters")
    # The token is bound to a key, and we cannot ask for proof of it. https://www.rfc-editor.org/rfc/rfc7800#section-3.1
    if "cnf" in claims:
        raise _Refused("cnf wants a proof that is not asked for here")


def _instant(claims: Mapping[str, Any], name: str) -> float:
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Refused(f"{name} is {shown(value)}")
    return value


def _issuer_keys(settings: TokenSettings) -> IssuerKeys:
    from api.auth.issuer_keys import IssuerKeys

    return IssuerKeys(settings)
