"""A tenant's subscription: an address, what it gets messages about, how they are grouped, and where this is stored.

One item holds a subscription and its state. The API changes the first, the notifier the second. Each write requires the
version that it read, so neither overwrites the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from common.errors import NotFound
from common.notices.state import SubscriptionState
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item

FAILURES: Final = "failures"
RECOVERIES: Final = "recoveries"
OVERDUE_JOBS: Final = "overdue"
KINDS: Final = (FAILURES, RECOVERIES, OVERDUE_JOBS)
MAX_SUBSCRIPTIONS: Final = 20

# The notifier writes the other fields.
CLIENT_FIELDS: Final = ("target", "kinds", "job_id", "name_prefix", "tag", "delay_s", "group_s")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What is reported to an address: `kinds` of events, of the jobs that the filter takes. Empty, it takes all."""

    tenant: str
    name: str
    target: Mapping[str, Any]
    kinds: tuple[str, ...]
    delay_s: int
    group_s: int
    state: SubscriptionState
    job_id: str = ""
    name_prefix: str = ""
    tag: str = ""
    created_at: int = 0
    updated_at: int = 0
    version: int = 0

    def client_fields(self) -> dict[str, Any]:
        """The subscription as the client wrote it, with defaults."""
        values = {name: getattr(self, name) for name in CLIENT_FIELDS}
        return {
            **{name: value for name, value in values.items() if value != ""},
            "target": dict(self.target),
            "kinds": list(self.kinds),
        }

    @property
    def needs_jobs(self) -> bool:
        """Whether the filter depends on more than a job's id."""
        return bool(self.name_prefix or self.tag)

    def takes(self, job_id: str, job_name: str = "", tags: tuple[str, ...] = ()) -> bool:
        """Whether the filter takes a job."""
        return (
            self.job_id in ("", job_id)
            and (job_id.startswith(self.name_prefix) or job_name.startswith(self.name_prefix))
            and (not self.tag or self.tag in tags)
        )

    def to_item(self) -> Item:
        return {
            **keys.subscription(self.tenant, self.name),
            "tenant": self.tenant,
            "name": self.name,
            **self.client_fields(),
            "state": self.state.to_text(),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "version": self.version,
        }

    @classmethod
    def from_item(cls, item: Item) -> Subscription:
        stored = {name: item[name] for name in CLIENT_FIELDS if name in item}
        return cls(
            **{**stored, "kinds": tuple(item["kinds"])},
            tenant=item["tenant"],
            name=item["name"],
            state=SubscriptionState.from_text(item["state"]),
            created_at=item["created_at"],
            updated_at=item["updated_at"],
            version=item["version"],
        )


class Subscriptions:
    """The subscriptions in the jobs table."""

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
        items = self.table.query(Query(tenant, sk_prefix=keys.SUBSCRIPTION_PREFIX, consistent=consistent))
        return [Subscription.from_item(item) for item in items]

    def subscribers(self) -> Iterator[tuple[str, str]]:
        """The tenants that have, or had, subscriptions, each with the mark of its last change."""
        items = self.table.query(Query(keys.SUBSCRIBERS, consistent=False))
        return ((item["sk"], item["mark"]) for item in items)

    def drop_subscriber(self, tenant: str, mark: str) -> None:
        """Take a tenant without subscriptions from the list, unless it has stored one since `mark` was read."""
        with suppress(ConditionFailed):
            self.table.delete(keys.subscriber(tenant), Expression("#mark = :mark", {":mark": mark}))

    def save(self, subscription: Subscription) -> Subscription | None:
        """Write the next version. None if another writer was faster; nothing is written then."""
        new = replace(subscription, version=subscription.version + 1)
        try:
            self.table.put(new.to_item(), unchanged(subscription))
        except ConditionFailed:
            return None
        return new


def unchanged(read: Subscription) -> Expression:
    """The condition that the stored subscription is still the one that was read."""
    same = "#version = :version AND #created_at = :created"
    return Expression(same, {":version": read.version, ":created": read.created_at})
