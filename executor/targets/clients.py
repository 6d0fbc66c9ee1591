"""The AWS client of one call: in the region of the target's ARN, with the executor's or an assumed role's rights."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from common.cache import FairCache, JointReads
from common.limits import CLIENTS_BYTES, MAX_ROLES
from common.storage import aws
from executor.targets.events import Event, context

# Assumed roles end after an hour, the most for a role that itself was assumed ("role chaining").
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
_ROLE_S = 3600
_RENEWED_BEFORE_S = 600


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of an assumed role."""

    access_key: str
    secret_key: str
    token: str


def client(service: str, target: Mapping[str, Any], event: Event, timeout_s: float) -> Any:
    """A client that waits `timeout_s` for the answer to the calling thread's next call, and does not retry.

    Raises ClientError and BotoCoreError if the role cannot be assumed.
    """
    region = target["arn"].split(":")[3]
    assumed = _assumed_roles.get(target, event) if target.get("role_arn") else None
    credentials = (assumed.access_key, assumed.secret_key, assumed.token) if assumed else None
    return _client(service, region, timeout_s, credentials, context(event, "tenant"))


def before_any_call(service: str, region: str, timeout_s: float) -> Any:
    """Build the client for calls in this region with the executor's own rights, before any tenant needs it."""
    return _client(service, region, timeout_s, None, "")


def _client(
    service: str, region: str, timeout_s: float, credentials: tuple[str, str, str] | None, tenant: str
) -> Any:
    aws.set_read_timeout(timeout_s)
    # One client for all time limits, so that they share one pool of connections.
    key = (service, region, credentials)
    return _clients.get(
        key,
        tenant,
        # The threads of a cold batch share one build, and who has a client waits for no build.
        lambda: _builds.get(key, lambda: aws.target_client(service, region, timeout_s, credentials)),
    )


def _weight(client: Any) -> int:
    """About the bytes of a client, with its connections and with the model that no layer has."""
    return max(
        250_000,
        0
        if client.meta.service_model.service_name in aws.TARGETS
        else aws.model_bytes(client.meta.service_model),
    )


_clients: FairCache[Any] = FairCache(CLIENTS_BYTES, _weight)
_builds: JointReads[Hashable, Any] = JointReads()


class AssumedRoles:
    """Credentials of the targets' roles, kept until some minutes before they expire."""

    def __init__(self) -> None:
        self._kept: FairCache[tuple[float, Credentials]] = FairCache(MAX_ROLES)

    def get(self, target: Mapping[str, Any], event: Event) -> Credentials:
        """For the target's role, under the tenant's own external id and a session named after tenant and job."""
        key = (target["role_arn"], external_id(target, event), session_name(event))
        ends_at, credentials = self._kept.get(key, context(event, "tenant"), lambda: self._assume(*key))
        if ends_at > time.monotonic():
            return credentials
        self._kept.drop(key)
        return self._kept.get(key, context(event, "tenant"), lambda: self._assume(*key))[1]

    def _assume(self, role_arn: str, external: str, session: str) -> tuple[float, Credentials]:
        """The credentials, and until when they are used."""
        requested_at = time.monotonic()
        answer = aws.sts().assume_role(
            RoleArn=role_arn, RoleSessionName=session, ExternalId=external, DurationSeconds=_ROLE_S
        )
        keys = answer["Credentials"]
        credentials = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        return requested_at + _ROLE_S - _RENEWED_BEFORE_S, credentials


_assumed_roles = AssumedRoles()


def external_id(target: Mapping[str, Any], event: Event) -> str:
    """`minute8:<tenant>` or `minute8:<tenant>:<the job's own part>`.

    The tenant comes from the credential. So no tenant can make Minute8 assume a role that trusts another tenant's
    external id, even if it knows that id.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
    """
    tenant = context(event, "tenant")
    return ":".join(["minute8", tenant, *([target["external_id"]] if target.get("external_id") else [])])


def session_name(event: Event) -> str:
    """What the role's CloudTrail shows: tenant@job, at most 64 characters."""
    name = f"{context(event, 'tenant')}@{context(event, 'job_id')}"
    return name if len(name) <= 64 else f"{name[:51]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
