"""Signs requests to AWS with Signature Version 4. The signing key of a day is kept, which saves four of five hashes.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from common.timing.instants import compact_time


class Credentials(Protocol):
    """botocore's frozen credentials. `token` is None for those of a user."""

    access_key: str
    secret_key: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Signed:
    """The headers that a signature adds to a request: its date and its authorization."""

    date: str
    authorization: str


@dataclass(frozen=True, slots=True)
class Request:
    """A POST without a query. `path` is percent-encoded; `headers` are those to sign, without date and token."""

    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Service:
    """The service that a request goes to."""

    region: str
    name: str


def sign(request: Request, credentials: Credentials, service: Service, now: float) -> Signed:
    """The signature of a request."""
    date = compact_time(int(now))
    headers = [(name.lower(), " ".join(value.split())) for name, value in request.headers]
    headers.append(("x-amz-date", date))
    if credentials.token:
        headers.append(("x-amz-security-token", credentials.token))
    headers.sort()
    names = ";".join([name for name, _ in headers])
    lines = "".join([f"{name}:{value}\n" for name, value in headers])
    body_hash = hashlib.sha256(request.body).hexdigest()
    canonical = f"POST\n{request.path.replace('%', '%25')}\n\n{lines}\n{names}\n{body_hash}"
    scope = f"{date[:8]}/{service.region}/{service.name}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = signature_of(text, credentials.secret_key, date[:8], service.region, service.name)
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return Signed(date, authorization)


def signature_of(text: str, secret_key: str, day: str, region: str, service: str) -> str:
    """The signature of what is to be signed of a request, in hexadecimal digits."""
    # A copy takes a third of the time that a new HMAC takes.
    signing = _signing(secret_key, day, region, service).copy()
    signing.update(text.encode())
    return signing.hexdigest()


@lru_cache(maxsize=4_096)
def _signing(secret_key: str, day: str, region: str, service: str) -> hmac.HMAC:
    """The HMAC that signs a day's requests to a service, before it has read a text."""
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, digestmod="sha256")
