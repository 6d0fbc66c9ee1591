"""Which signed tokens (JWT) the API accepts, and which claims hold the tenant and the role. Pure.

All settings come from the deployment's configuration, and none from a token. A client that could choose the algorithm,
the address of the keys or the claim's name could choose the tenant. https://www.rfc-editor.org/rfc/rfc8725
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import urlsplit

from common.config import Config
from common.errors import InvalidInput
from common.platform.credential import ROLES, Role

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
        )

    def role_of(self, claims: Mapping[str, Any]) -> Role | None:
        """The highest role in the token's claim; the default role if it has none."""
        value = claims.get(self.role_claim) if self.role_claim else None
        if isinstance(value, str):
            value = value.split() if self.role_claim in _WORDS else [value]
        named = value if isinstance(value, list) else []
        found = {self.roles[name] for name in named if isinstance(name, str) and name in self.roles}
        return max(found, key=ROLES.index, default=self.default_role)


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
