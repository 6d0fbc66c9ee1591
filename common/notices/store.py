"""The subscriptions in the jobs table.

The API changes a subscription, the notifier its state. Each write requires the version that it read, so neither
overwrites the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from common.errors import NotFound
from common.jobs.not_running import NotRunning, of_forbidden_address
from common.notices.subscription import Subscription
from common.storage import keys
from common.storage.aws import readable
from common.storage.expressions import Attribute, Condition
from common.storage.table import Query, Table
from common.tenants.allowed_targets import is_allowed, is_minute8_resource
from common.tenants.tenant import TenantRules


class Subscriptions:
    """All tenants' subscriptions."""

    def __init__(self, jobs: Table) -> None:
        self.table = jobs

    def get(self, tenant: str, name: str) -> Subscription:
        """Raises NotFound."""
        item = self.table.get(keys.subscription(tenant, name))
        if item is None:
            raise NotFound("subscription", name)
        return Subscription.from_item(item)

    def of_tenant(self, tenant: str, *, consistent: bool = True) -> list[Subscription]:
        """All of a tenant, by name: at most MAX_SUBSCRIPTIONS."""
        return self.with_addresses_off(tenant, consistent=consistent)[0]

    def with_addresses_off(
        self, tenant: str, *, consistent: bool = True
    ) -> tuple[list[Subscription], list[NotRunning]]:
        """The same, and what is noted of addresses that are switched off. One query."""
        subscriptions: list[Subscription] = []
        notes: list[NotRunning] = []
        for item in self.table.query(Query(keys.notices(tenant), consistent=consistent)):
            if item["sk"].startswith(keys.SUBSCRIPTION_PREFIX):
                subscriptions += readable([item], Subscription.from_item)
            elif note := NotRunning.of_item(item):
                notes.append(note)
        return subscriptions, notes

    def subscribers(self) -> Iterator[tuple[str, str]]:
        """The tenants that have, or had, subscriptions, each with the mark of its last change."""
        items = self.table.query(Query(keys.SUBSCRIBERS, consistent=False))
        return ((item["sk"], item["mark"]) for item in items)

    def drop_subscriber(self, tenant: str, mark: str) -> None:
        """Take a tenant without subscriptions from the list, unless it has stored one since `mark` was read."""
        self.table.delete_if(keys.subscriber(tenant), Attribute("mark") == mark)

    def save(self, subscription: Subscription) -> Subscription | None:
        """Write the next version. None if another writer was faster; nothing is written then."""
        new = replace(subscription, version=subscription.version + 1)
        return new if self.table.put_if(new.to_item(), unchanged(subscription)) else None


def unchanged(read: Subscription) -> Condition:
    """The condition that the stored subscription is still the one that was read."""
    return (Attribute("version") == read.version) & (Attribute("created_at") == read.created_at)


def refusal(target: Mapping[str, Any], rules: TenantRules) -> str:
    """Why the platform does not let this address be called now; empty if it does. Pure."""
    if is_minute8_resource(target):
        return "NotAllowed: it is a part of Minute8 itself"
    if not is_allowed(target, rules.allowed_targets):
        return "NotAllowed: the platform does not allow the tenant this address"
    return ""


def not_allowed(subscriptions: Iterable[Subscription], rules: TenantRules) -> list[NotRunning]:
    """The addresses that the platform does not let be called now. Nobody notes that: they are compared at each look."""
    refused = ((each, refusal(each.target, rules)) for each in subscriptions)
    return [of_forbidden_address(each.name, each.updated_at, why) for each, why in refused if why]
