"""The blocking client of a tenant."""

from __future__ import annotations

from typing import Any

from minute8.client.jobs import JobCalls
from minute8.client.operations import Json, Listing, ListSteps, Operation, Request, entries_of, path_of
from minute8.client.runs import RunCalls
from minute8.client.shapes import (
    AuditEntry,
    AuditPage,
    Key,
    MadeKey,
    SecretList,
    SecretView,
    SubscriptionList,
    SubscriptionView,
    TargetList,
    Tenant,
    Version,
)
from minute8.client.transport import Transport


class ClientCalls(JobCalls, RunCalls):
    """All operations of a tenant. Those of this class are about the tenant itself."""

    @Operation
    def put_calendar(
        self, name: str, calendar: Json, revision: int | None = None, *, only_new: bool = False
    ) -> Request[dict[str, Any]]:
        """Create a calendar or replace the whole of it; the same dates change nothing.

        With `revision` only if that is the current one, with `only_new` only if there is none.
        """
        return Request("PUT", path_of("calendars", name), calendar, revision, only_new=only_new)

    @Operation
    def get_calendar(self, name: str) -> Request[dict[str, Any]]:
        return Request("GET", path_of("calendars", name))

    @Operation
    def delete_calendar(self, name: str) -> Request[None]:
        return Request("DELETE", path_of("calendars", name))

    @Listing
    def calendars(self) -> ListSteps[dict[str, Any]]:
        """All calendars, read page by page."""
        return entries_of("/v1/calendars", "calendars")

    @Operation
    def put_secret(self, name: str, value: str) -> Request[SecretView]:
        """Store a secret, or replace its value; jobs name it as `secret://name`. Nothing returns the value."""
        return Request("PUT", path_of("secrets", name), {"value": value})

    @Operation
    def secrets(self) -> Request[list[SecretView]]:
        """The names of all secrets, and when each was last put."""
        return Request("GET", "/v1/secrets", shape=_secrets)

    @Operation
    def delete_secret(self, name: str) -> Request[None]:
        """Refused while a job names it."""
        return Request("DELETE", path_of("secrets", name))

    @Operation
    def webhook_secret(self) -> Request[str]:
        """What signs calls of HTTP targets; made when first asked for. Needs an admin key."""
        return Request("GET", "/v1/webhook-secret", shape=_secret)

    @Operation
    def rotate_webhook_secret(self) -> Request[str]:
        """A new secret; the one before goes on signing for a day."""
        return Request("POST", "/v1/webhook-secret/rotate", repeatable=False, shape=_secret)

    @Operation
    def subscriptions(self) -> Request[list[SubscriptionView]]:
        """The addresses that get messages about failures, recoveries and overdue jobs, and how deliveries went."""
        return Request("GET", "/v1/subscriptions", shape=_subscriptions)

    @Operation
    def put_subscription(self, name: str, subscription: Json) -> Request[SubscriptionView]:
        """Create a subscription or replace the whole of it; a disabled address is enabled again."""
        return Request("PUT", path_of("subscriptions", name), subscription)

    @Operation
    def get_subscription(self, name: str) -> Request[SubscriptionView]:
        return Request("GET", path_of("subscriptions", name))

    @Operation
    def delete_subscription(self, name: str) -> Request[None]:
        """What waits is not sent."""
        return Request("DELETE", path_of("subscriptions", name))

    @Operation
    def test_subscription(self, name: str) -> Request[SubscriptionView]:
        """Have a test message sent, within two minutes; `delivery.last_test` then has its result."""
        return Request("POST", path_of("subscriptions", name, "test"), repeatable=True)

    @Operation
    def audit_page(
        self, /, *, limit: int | None = None, cursor: str | None = None, **filters: str | None
    ) -> Request[AuditPage]:
        """One page; `wanted` are `subject`, `action`, `from_at` and `until_at`. Needs an admin key."""
        query = {"limit": limit, "cursor": cursor, **filters}
        return Request("GET", "/v1/audit", query=query)

    @Listing
    def audit(self, /, **filters: str | None) -> ListSteps[AuditEntry]:
        """Who changed what, newest first, page by page as they are consumed; `wanted` as for `audit_page`."""
        return entries_of("/v1/audit", "entries", **filters)

    @Operation
    def tenant(self) -> Request[Tenant]:
        return Request("GET", "/v1/tenant")

    @Operation
    def targets(self) -> Request[TargetList]:
        """How often each kind of target is called for an execution, and by which key a repetition is known."""
        return Request("GET", "/v1/targets")

    @Operation
    def version(self) -> Request[Version]:
        """The version of Minute8 that answers. Needs no key."""
        return Request("GET", "/v1")

    @Listing
    def api_keys(self) -> ListSteps[Key]:
        """Oldest first; revoked ones stay listed for 30 days."""
        return entries_of("/v1/keys", "keys")

    @Operation
    def create_key(
        self, role: str, *, name: str = "", expires_at: str | None = None, aws: bool = False
    ) -> Request[MadeKey]:
        """`expires_at` is RFC 3339. The key is shown only in this answer, as `key`.

        With `aws` it is a pair for AWS's SDKs: `access_key_id`, and its secret access key as `key`.
        """
        body = {"role": role, **key_body(name, expires_at), **({"aws": True} if aws else {})}
        return Request("POST", "/v1/keys", body, repeatable=False)

    @Operation
    def revoke_key(self, key_id: str) -> Request[Key]:
        """Within a minute the key is refused everywhere. It may be this client's own key."""
        return Request("DELETE", path_of("keys", key_id))


class Client(ClientCalls, Transport):
    """The API for one tenant.

    Calls that are safe to repeat are repeated if the API throttles, fails or cannot be reached. A refusal raises a
    `Minute8Problem`; a missing answer raises `Unreachable`.
    """


def key_body(name: str, expires_at: str | None) -> Json:
    return {"name": name, "expires_at": expires_at}


def _subscriptions(answer: SubscriptionList) -> list[SubscriptionView]:
    return answer["subscriptions"]


def _secrets(answer: SecretList) -> list[SecretView]:
    return answer["secrets"]


def _secret(answer: Json) -> str:
    return str(answer["secret"])
