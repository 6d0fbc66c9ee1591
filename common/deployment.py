"""One deployment: its settings, clock, tables and queues, and what is made from them. Handlers, tools and tests use it.

Each part is made when it is first used, with its modules: a cold start pays for nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from common.clock import Clock, SystemClock
from common.config import Config
from common.events import Events, event_bus
from common.planning.queue import ExecutionsQueue
from common.storage import aws
from common.storage.aws import on_first_use
from common.storage.table import Tables

if TYPE_CHECKING:
    from common.jobs.backfill import Backfills
    from common.jobs.ended import EndedJobs
    from common.jobs.large_texts import LargeTexts
    from common.jobs.store import JobStore
    from common.planning.due_index import DueIndex
    from common.planning.postponed import Postponed
    from common.planning.queue import RemovalRequests
    from common.runs.records import Runs
    from common.tenants.rules_cache import KnownTenants
    from common.tenants.secrets import SecretKey
    from common.tenants.webhook_secrets import WebhookSecrets

T = TypeVar("T")


class Part(Generic[T]):
    """A part of a deployment, and of its copies."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, deployment: Deployment, owner: type) -> T:
        parts = deployment.parts
        if self._name not in parts:
            parts[self._name] = self._make(deployment)
        part: T = parts[self._name]
        return part


def part(make: Callable[[Deployment], T]) -> Part[T]:
    """A part that is made so."""
    return Part(make)


class Deployment:
    """The parts that several stages use. Those in `parts` are given instead of made."""

    settings: Config
    parts: dict[str, Any]

    clients = part(lambda d: aws.own_clients())
    clock: Part[Clock] = part(lambda d: SystemClock())
    tables = part(lambda d: Tables.of(d.settings, d.clients.dynamodb))
    sqs = part(lambda d: on_first_use(d.clients.sqs))
    queue = part(lambda d: ExecutionsQueue(d.sqs, d.settings.required("executions_queue_url"), d.clock))
    events: Part[Events] = part(lambda d: event_bus(d.settings.event_bus))
    rng = part(lambda d: random.Random())

    def __init__(self, settings: Config, **parts: object) -> None:
        self.settings = settings
        self.parts = parts

    @part
    def known_tenants(self) -> KnownTenants:
        from common.tenants.rules_cache import KnownTenants

        return KnownTenants(self.tables.tenants)

    @part
    def rules(self) -> KnownTenants:
        """What each tenant may do."""
        return self.known_tenants

    @part
    def index(self) -> DueIndex:
        from common.planning.due_index import DueIndex

        return DueIndex(self.tables.due)

    @part
    def runs(self) -> Runs:
        from common.runs.records import Runs

        return Runs(self.tables.runs)

    @part
    def stored_jobs(self) -> JobStore:
        """The jobs; the author of changes is Minute8 itself."""
        from common.jobs.ledger import TenantLedger
        from common.jobs.preconditions import named_calendars, named_secrets
        from common.jobs.store import JobStore
        from minute8.eventbridge.precondition import schedule_precondition

        jobs, tenants = self.tables.jobs, self.tables.tenants
        return JobStore(
            jobs=jobs,
            index=self.index,
            queue=self.queue,
            clock=self.clock,
            rng=self.rng,
            ledger=TenantLedger(tenants, self.known_tenants),
            preconditions=(named_calendars(jobs), named_secrets(tenants), schedule_precondition(jobs)),
            webhook_secrets=self.webhook_secrets,
            events=self.events,
        )

    @part
    def texts(self) -> LargeTexts:
        from common.jobs.large_texts import LargeTexts

        return LargeTexts(self.tables.jobs)

    @part
    def postponed(self) -> Postponed:
        from common.planning.postponed import Postponed

        return Postponed(self.tables.due, self.queue, self.clock)

    @part
    def ended_jobs(self) -> EndedJobs:
        from common.jobs.ended import EndedJobs

        return EndedJobs(self.tables.due, self.tables.jobs)

    @part
    def backfills(self) -> Backfills:
        from common.jobs.backfill import Backfills

        return Backfills(self.tables.jobs, self.tables.runs, self.clock)

    @part
    def removals(self) -> RemovalRequests:
        from common.planning.queue import RemovalRequests

        return RemovalRequests(self.sqs, self.settings.planning_queue_url, self.clock)

    @part
    def secret_key(self) -> SecretKey | None:
        """The key for tenants' secrets; None if tenants can put none."""
        from common.tenants.secrets import SecretKey

        return SecretKey.of(self.settings.secrets_key, self.clients.kms)

    @part
    def webhook_secrets(self) -> WebhookSecrets:
        from common.tenants.webhook_secrets import WebhookSecrets

        return WebhookSecrets(self.tables.tenants, lambda: self.secret_key)
