"""A world with a notifier whose addresses record what they are sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.declared import read
from common.notices.store import Subscriptions
from common.notices.subscription import Notice, Subscription
from common.registration.definition import Limits
from common.registration.subscriptions import SubscriptionDefinition, SubscriptionStore
from common.runs.outcome import Outcome
from common.tenants.audit import Audit, AuditedCommit
from common.tenants.rules_cache import KnownTenants
from common.tenants.webhook_secrets import WebhookSecrets
from minute8.notifier.notifier import Notifier, notifier
from tests.stand_ins import StoredOnDemand
from tests.worlds import World

HOOK = {"kind": "http", "url": "https://hooks.example.com/minute8"}


@dataclass
class Addresses:
    """Takes what is sent; `answer` decides what an address says."""

    sent: list[tuple[str, str, str, dict[str, Any]]] = field(default_factory=list)
    answer: Callable[[Subscription], Outcome] = lambda subscription: Outcome(ok=True)

    def __call__(self, subscription: Subscription, message: Notice) -> Outcome:
        body = json.loads(message.body)
        self.sent.append((subscription.tenant, subscription.name, message.message_id, body))
        return self.answer(subscription)

    @property
    def texts(self) -> list[str]:
        """The summaries, in the order in which they were sent."""
        return [body["text"] for *_, body in self.sent]


@dataclass
class Stage:
    """A world, subscriptions that can be changed, and a notifier."""

    world: World
    store: SubscriptionStore
    commit: AuditedCommit
    addresses: Addresses
    notifier: Notifier

    def subscribe(self, tenant: str = "alice", name: str = "on-call", **fields: Any) -> Subscription:
        definition = read({"target": HOOK, "delay_s": 0, **fields}, SubscriptionDefinition, "body")
        return self.store.put(tenant, name, definition, self.world.clock.now(), self.commit)

    def round(self) -> Counter[str]:
        now = self.world.clock.now()
        return self.notifier.round(now + 25, now + 45)

    def state(self, tenant: str = "alice", name: str = "on-call") -> Any:
        return self.store.stored.get(tenant, name).state


@pytest.fixture
def stage(world: World) -> Iterator[Stage]:
    with ThreadPoolExecutor(4) as pool, ThreadPoolExecutor(4) as reads:
        yield make_stage(world, pool, reads)


def make_stage(world: World, pool: ThreadPoolExecutor, reads: ThreadPoolExecutor) -> Stage:
    addresses, tenants = Addresses(), world.table("tenants")
    store = SubscriptionStore(
        Subscriptions(world.table("jobs")),
        StoredOnDemand(tenants),
        WebhookSecrets(tenants, lambda: None),
        Limits(),
        world.clock,
    )
    known = KnownTenants(tenants)
    commit = AuditedCommit(Audit(tenants), "key", world.clock)
    return Stage(
        world,
        store,
        commit,
        addresses,
        notifier(world.tables, world.clock, known, addresses, pool, reads, world.deployment.events),
    )
