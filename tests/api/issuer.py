"""An issuer of signed tokens: its keys, its tokens, and the key set that it publishes."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from common.config import Config
from minute8.api.auth.issuer_keys import IssuerKeys
from minute8.api.auth.tokens import Tokens, TokenSettings

ISSUER = "https://login.example.com/"
AUDIENCE = "minute8"
ALGORITHMS = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}
NOW = 1_795_230_720  # 2026-11-21T03:12:00Z, where worlds begin


@cache
def private_key(name: str) -> Any:
    """One of the issuer's keys (rsa, ec, ed), or another issuer's key of the same kind (rsa-other, …)."""
    match name.partition("-")[0]:
        case "rsa":
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        case "weak":
            return rsa.generate_private_key(public_exponent=65537, key_size=1024)
        case "ec":
            return ec.generate_private_key(ec.SECP256R1())
        case "p384":
            return ec.generate_private_key(ec.SECP384R1())
        case _:
            return ed25519.Ed25519PrivateKey.generate()


def jwk(name: str, **more: Any) -> dict[str, Any]:
    """The public half, as a JSON Web Key whose kid is its name."""
    kind = {"rsa": RSAAlgorithm, "weak": RSAAlgorithm, "ec": ECAlgorithm, "p384": ECAlgorithm}
    result = kind.get(name.partition("-")[0], OKPAlgorithm).to_jwk(
        private_key(name).public_key(), as_dict=True
    )
    return {**result, "kid": name, "use": "sig", **more}


def key_set(*names: str) -> bytes:
    return json.dumps({"keys": [jwk(name) for name in names]}).encode()


def claims(now: float = NOW, **changes: Any) -> dict[str, Any]:
    """The claims of the user ann, who belongs to the tenant alice. A change to None leaves a claim out."""
    all_claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann@example.com",
        "iat": int(now),
        "exp": int(now) + 3600,
        "tenant": "alice",
        **changes,
    }
    return {name: value for name, value in all_claims.items() if value is not None}


def token(key: str = "rsa", header: dict[str, Any] | None = None, **changes: Any) -> str:
    """A token signed with that key. `header` adds fields to the header; None removes one."""
    return signed(claims(**changes), key, header)


def signed(payload: Any, key: str = "rsa", header: dict[str, Any] | None = None) -> str:
    """`payload` is encoded as JSON; bytes are used as they are. The library only signs, so the parts can be invalid."""
    algorithm = ALGORITHMS.get(key.partition("-")[0], "RS256")
    head = {"alg": algorithm, "typ": "JWT", "kid": key, **(header or {})}
    return signed_parts(
        json.dumps({name: value for name, value in head.items() if value is not None}).encode(),
        payload if isinstance(payload, bytes) else json.dumps(payload).encode(),
        key,
        algorithm,
    )


def signed_parts(header: bytes, payload: bytes, key: str, algorithm: str) -> str:
    """A correctly signed token with any header and payload."""
    text = f"{encoded(header)}.{encoded(payload)}"
    how = jwt.get_algorithm_by_name(algorithm)
    return f"{text}.{encoded(how.sign(text.encode(), private_key(key)))}"


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def configuration(**changes: str) -> Config:
    """A deployment that accepts the issuer's tokens."""
    configuration_values = {
        "JWT_ISSUER": ISSUER,
        "JWT_AUDIENCE": AUDIENCE,
        "JWT_ROLE_CLAIM": "role",
        "JWT_ALGORITHMS": "RS256,ES256,EdDSA",
        "JWKS_URL": "https://login.example.com/keys",
    }
    return Config.from_env({**configuration_values, **changes})


def settings(**changes: str) -> TokenSettings:
    result = TokenSettings.of(configuration(**changes))
    assert result is not None
    return result


def tokens(answer: bytes | None = None, **changes: str) -> Tokens:
    """A verifier of the issuer's tokens that needs no network."""
    document = answer or key_set("rsa", "ec", "ed")
    return Tokens(
        settings(**changes), lambda token_settings: IssuerKeys(token_settings, lambda url: document)
    )
