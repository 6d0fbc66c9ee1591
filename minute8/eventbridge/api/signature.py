"""Checks the signature of a request (Signature Version 4), as AWS's SDKs make it. Pure.

API Gateway checks signatures for itself alone (`execute-api`); unmodified SDKs sign for the service `scheduler`.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from common.errors import Minute8Error, shown
from common.storage.signed_calls import signature_of

SERVICE: Final = "scheduler"
SKEW_S: Final = 15 * 60
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_MAX_AUTHORIZATION_CHARS: Final = 4_096
_DATE: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z", re.ASCII)
_HEADER_NAME: Final = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_SIGNATURE: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MAX_SIGNED: Final = 64
# These characters need no encoding.
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]*", re.ASCII)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_.~/-]*", re.ASCII)

Query = Sequence[tuple[str, str]]


class SignatureRefused(Minute8Error):
    """The request has no valid signature. `name` is the name of AWS's error."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Authorization:
    """The claims of a request in its headers Authorization and X-Amz-Date."""

    access_key_id: str
    date: str
    region: str
    signed_headers: tuple[str, ...]
    signature: str


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The signed parts of a request. `paths` are the paths that the client may have sent, percent-encoded once.

    `headers` have lower-case names. `query` is decoded.
    """

    method: str
    paths: tuple[str, ...]
    query: Query
    headers: Mapping[str, str]
    body: bytes


def read_authorization(headers: Mapping[str, str], region: str, now: float) -> Authorization:
    """The claims of the headers, which have lower-case names. Raises SignatureRefused.

    The signature covers all headers that it must cover, and is for this region and time.
    """
    text = headers.get("authorization", "")
    if not text.startswith(f"{_ALGORITHM} "):
        raise SignatureRefused(
            "MissingAuthenticationTokenException", f"sign the request with {_ALGORITHM} in Authorization"
        )
    if len(text) > _MAX_AUTHORIZATION_CHARS:
        raise _incomplete(
            f"Authorization has {len(text)} characters; accepted: at most {_MAX_AUTHORIZATION_CHARS}"
        )
    parts = _parts(text.removeprefix(_ALGORITHM))
    scope = parts["Credential"].split("/")
    signed = _names_in(parts["SignedHeaders"])
    date = headers.get("x-amz-date", "")
    if len(scope) != 5 or scope[4] != "aws4_request":
        raise _incomplete("Credential must be <access key id>/<date>/<region>/scheduler/aws4_request")
    if not _SIGNATURE.fullmatch(parts["Signature"]):
        raise _incomplete("Signature must be 64 hexadecimal digits")
    if not _DATE.fullmatch(date):
        raise _incomplete(f"X-Amz-Date must be such as 20261122T080000Z (got {shown(date)})")
    _check_signed_headers(signed, headers)
    if "x-amz-security-token" in headers:
        raise SignatureRefused(
            "UnrecognizedClientException", "key pairs have no session token; remove X-Amz-Security-Token"
        )
    _check_scope(scope, date, region, now)
    return Authorization(scope[0], date, region, signed, parts["Signature"])


def check_signature(claimed: Authorization, secret: str, request: SignedRequest) -> str:
    """The path that the client signed, if the secret made the signature of exactly this request.

    Raises SignatureRefused.
    """
    for path in request.paths:
        if hmac.compare_digest(_signature(claimed, secret, request, path), claimed.signature):
            return path
    raise SignatureRefused(
        "InvalidSignatureException",
        "the signature does not match method, path, query, signed headers and body; check the secret access key",
    )


def _parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or name in parts:
            raise _incomplete(f"Authorization has a part that cannot be read: {shown(part)}")
        parts[name] = value
    if set(parts) != {"Credential", "SignedHeaders", "Signature"}:
        raise _incomplete("Authorization must have Credential, SignedHeaders and Signature, and nothing else")
    return parts


@lru_cache(maxsize=256)
def _names_in(text: str) -> tuple[str, ...]:
    """The names in SignedHeaders. Each client repeats its own. Raises SignatureRefused."""
    signed = text.split(";")
    if signed != sorted(set(signed)) or len(signed) > _MAX_SIGNED:
        raise _incomplete("SignedHeaders must be sorted, each once")
    for name in signed:
        if not _HEADER_NAME.fullmatch(name):
            raise _incomplete(f"SignedHeaders names {shown(name)}, which cannot be a header's name")
    # Other headers are not read, so they need no signature.
    if missing := sorted({"host", "x-amz-date"} - set(signed)):
        raise _incomplete(f"SignedHeaders must name {', '.join(missing)}")
    return tuple(signed)


def _check_signed_headers(signed: Sequence[str], headers: Mapping[str, str]) -> None:
    for name in signed:
        if name not in headers:
            raise _incomplete(f"SignedHeaders names {shown(name)}, which the request does not have")


def _check_scope(scope: Sequence[str], date: str, region: str, now: float) -> None:
    try:
        at = datetime.fromisoformat(date).timestamp()
    except ValueError:
        raise _incomplete(f"X-Amz-Date is not a time (got {shown(date)})") from None
    if abs(at - now) > SKEW_S:
        raise SignatureRefused(
            "InvalidSignatureException",
            f"the signature is of {date}, and it is {datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}; "
            f"accepted: {SKEW_S // 60} minutes of difference",
        )
    if scope[1:4] != [date[:8], region, SERVICE]:
        raise SignatureRefused(
            "InvalidSignatureException",
            f"the credential is scoped to {shown('/'.join(scope[1:4]))}; accepted: {date[:8]}/{region}/{SERVICE}",
        )


def _signature(claimed: Authorization, secret: str, request: SignedRequest, path: str) -> str:
    lines = [f"{name}:{' '.join(request.headers[name].split())}\n" for name in claimed.signed_headers]
    canonical = "\n".join(
        (
            request.method,
            # Services other than S3 sign the path encoded once more.
            path if _PLAIN_PATH.fullmatch(path) else quote(path, safe="/~"),
            _canonical_query(request.query),
            "".join(lines),
            ";".join(claimed.signed_headers),
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    scope = f"{claimed.date[:8]}/{claimed.region}/{SERVICE}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"{_ALGORITHM}\n{claimed.date}\n{scope}\n{hashed}"
    return signature_of(text, secret, claimed.date[:8], claimed.region, SERVICE)


def _canonical_query(query: Query) -> str:
    encoded: Iterable[tuple[str, str]] = ((_encoded(name), _encoded(value)) for name, value in query)
    return "&".join(f"{name}={value}" for name, value in sorted(encoded))


def _encoded(text: str) -> str:
    return text if _UNRESERVED.fullmatch(text) else quote(text, safe="-_.~")


def _incomplete(message: str) -> SignatureRefused:
    return SignatureRefused("IncompleteSignatureException", message)
