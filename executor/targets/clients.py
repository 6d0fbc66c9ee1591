"""The AWS client for one call: in the region of the target's ARN, with the executor's rights or an assumed role's."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from common.cache import Cache
from common.storage import aws
from executor.targets.events import Event, context

# Assumed roles end after an hour, the most for a role that itself was assumed ("role chaining").
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
_ROLE_S = 3600
_RENEWED_BEFORE_S = 600
_ROLES_KEPT = 256


@dataclass(frozen=True, slots=True)
class Credentials:
    """Of an assumed role."""

    access_key: str
    secret_key: str
    token: str


def client(service: str, target: Mapping[str, Any], event: Event, timeout_s: float) -> Any:
    """A client that waits `timeout_s` for an answer and asks once.

    Raises ClientError and BotoCoreError where the role cannot be assumed.
    """
    region = target["arn"].split(":")[3]
    credentials = _assumed_roles.get(target, event) if target.get("role_arn") else None
    return _client(service, region, timeout_s, credentials)


@lru_cache(maxsize=128)
def _client(service: str, region: str, timeout_s: float, credentials: Credentials | None) -> Any:
    return aws.target_client(
        service,
        region,
        timeout_s,
        (credentials.access_key, credentials.secret_key, credentials.token) if credentials else None,
    )


class AssumedRoles:
    """Credentials of the roles that targets name, kept until some minutes before they end."""

    def __init__(self) -> None:
        self._kept: Cache[tuple[str, str, str], Credentials] = Cache(_ROLE_S - _RENEWED_BEFORE_S, _ROLES_KEPT)

    def get(self, target: Mapping[str, Any], event: Event) -> Credentials:
        """For the target's role, under the tenant's own external id and a session named after tenant and job."""
        key = (target["role_arn"], external_id(target, event), session_name(event))
        now = time.monotonic()
        if kept := self._kept.get(key, now):
            return kept.value
        credentials = self._assume(*key)  # two threads may both ask; that does no harm
        self._kept.put(key, credentials, now)
        return credentials

    def _assume(self, role_arn: str, external: str, session: str) -> Credentials:
        answer = aws.sts().assume_role(
            RoleArn=role_arn, RoleSessionName=session, ExternalId=external, DurationSeconds=_ROLE_S
        )
        given = answer["Credentials"]
        return Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])


_assumed_roles = AssumedRoles()


def external_id(target: Mapping[str, Any], event: Event) -> str:
    """`minute8:<tenant>` or `minute8:<tenant>:<what the job says>`.

    The tenant's part comes from the credential, so that no tenant can have Minute8 assume a role that trusts another
    tenant's external id, even if it knows that id.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
    """
    tenant = context(event, "tenant")
    return ":".join(["minute8", tenant, *([target["external_id"]] if target.get("external_id") else [])])


def session_name(event: Event) -> str:
    """What the role's CloudTrail shows: tenant@job, at most 64 characters."""
    name = f"{context(event, 'tenant')}@{context(event, 'job_id')}"
    return name if len(name) <= 64 else f"{name[:51]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
