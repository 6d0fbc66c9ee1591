"""Which signed tokens (JWT) the API accepts, and which claims hold the tenant and the role. Pure.

All settings come from the deployment's configuration, and none from a token. A client that could choose the algorithm,
the address of the keys or the claim's name could choose the tenant. https://www.rfc-editor.org/rfc/rfc8725
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast
from urllib.parse import quote, urlsplit

from common import telemetry
from common.config import Config
from common.errors import InvalidInput, Unauthenticated, shown
from common.ids import TENANT_ID_CHARS, check_id
from common.platform.api_keys import ROLES, Credential, Role
from minute8.api.http.problems import Malformed
from minute8.api.http.requests import read_json

# Only asymmetric algorithms, each with its kind of key: (kty, crv).
# https://www.rfc-editor.org/rfc/rfc7518#section-3.1 and https://www.rfc-editor.org/rfc/rfc8037#section-3.1
ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
# Claims whose value is a list of words in one text. https://www.rfc-editor.org/rfc/rfc8693#section-4.2
_WORDS: Final = ("scope", "scp")
_NO_ROLE: Final = "none"


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """One issuer. `default_role` applies to a token whose `role_claim` contains no role; None refuses such a token."""

    issuer: str
    audiences: tuple[str, ...]
    tenant_claim: str = "tenant"
    role_claim: str = ""
    roles: Mapping[str, Role] = field(default_factory=lambda: {role: role for role in ROLES})
    default_role: Role | None = "read"
    algorithms: tuple[str, ...] = ("RS256",)
    jwks_url: str = ""
    # The public client that the console is at the issuer; empty: the console takes keys and tokens alone.
    console_client: str = ""
    console_scope: str = "openid"

    @classmethod
    def of(cls, config: Config) -> TokenSettings | None:
        """The settings of a deployment; None if it accepts no tokens. Raises InvalidInput."""
        if not config.jwt_issuer:
            return None
        audiences = _words(config.jwt_audience)
        if not audiences:
            raise InvalidInput(
                "jwtAudience", "is not given", accepted="the `aud` of tokens that are meant for this API"
            )
        for name in (algorithms := _words(config.jwt_algorithms)) or ("",):
            _one_of("jwtAlgorithms", name, tuple(ALGORITHMS))
        if not config.jwt_tenant_claim:
            raise InvalidInput(
                "jwtTenantClaim", "is not given", accepted="the claim that holds a tenant's id"
            )
        if config.jwks_url:
            check_https("jwksUrl", config.jwks_url)
        else:
            check_https("jwtIssuer", config.jwt_issuer)
        default_role = _one_of("jwtDefaultRole", config.jwt_default_role, (_NO_ROLE, *ROLES))
        return cls(
            issuer=config.jwt_issuer,
            audiences=audiences,
            tenant_claim=config.jwt_tenant_claim,
            role_claim=config.jwt_role_claim,
            roles=_roles(config.jwt_roles),
            default_role=None if default_role == _NO_ROLE else cast(Role, default_role),
            algorithms=algorithms,
            jwks_url=config.jwks_url,
            console_client=config.jwt_console_client,
            console_scope=config.jwt_console_scope,
        )

    def role_of(self, claims: Mapping[str, Any]) -> Role | None:
        """The highest role in the token's claim; the default role if it has none."""
        value = claims.get(self.role_claim) if self.role_claim else None
        if isinstance(value, str):
            value = value.split() if self.role_claim in _WORDS else [value]
        named = value if isinstance(value, list) else []
        roles = {self.roles[name] for name in named if isinstance(name, str) and name in self.roles}
        return max(roles, key=ROLES.index, default=self.default_role)


def check_https(name: str, url: object) -> str:
    """The address, if it is https. Raises InvalidInput."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:  # an incomplete IPv6 address
        parts = None
    if parts is None or parts.scheme != "https" or not parts.hostname or parts.username or parts.fragment:
        raise InvalidInput(name, "must be an address to trust", value=url, accepted="https://…")
    return parts.geturl()


def _roles(text: str) -> Mapping[str, Role]:
    """`editors=write,platform-team=admin`. Only the platform's own keys can have the role `operator`."""
    if not text:
        return {role: role for role in ROLES}
    roles: dict[str, Role] = {}
    for part in _words(text):
        value, _, role = part.rpartition("=")
        if not value:
            raise InvalidInput("jwtRoles", "names no value", value=part, accepted="value=role,value=role")
        roles[value.strip()] = cast(Role, _one_of("jwtRoles", role.strip(), ROLES))
    return roles


def _one_of(name: str, value: str, accepted: tuple[str, ...]) -> str:
    if value not in accepted:
        raise InvalidInput(name, "is not possible", value=value, accepted=", ".join(accepted))
    return value


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_MAX_TOKEN_CHARS: Final = 8_192
_MAX_KEY_ID: Final = 255
# https://openid.net/specs/openid-connect-core-1_0.html#IDToken
_MAX_SUBJECT: Final = 255
# The allowed difference between the issuer's clock and ours.
LEEWAY_S: Final = 30
# The same issuer also signs tokens for other purposes (logout, DPoP, security events). Those must be refused.
# https://www.rfc-editor.org/rfc/rfc8725#section-3.11
_TYPES: Final = (None, "jwt", "at+jwt", "application/at+jwt")
_PRINTABLE: Final = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"  # printable ASCII except %, which quotes the others


class SigningKeys(Protocol):
    """The issuer's keys. `issuer_keys.py` reads them."""

    def key(self, key_id: str, algorithm: str, now: float) -> Any | None: ...


class _Refused(Exception):
    """Why a token is refused. Only the log contains it."""


class Tokens:
    """Use one instance per process: it caches the issuer's keys."""

    def __init__(self, settings: TokenSettings, keys_of: Callable[[TokenSettings], SigningKeys]) -> None:
        self._settings = settings
        self._keys_of = keys_of
        self._keys: SigningKeys | None = None

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

        if len(token) > _MAX_TOKEN_CHARS:
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
