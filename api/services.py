"""What the routes work with."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from api.auth.token_settings import TokenSettings
from api.auth.tokens import Tokens, is_token
from common.clock import Clock, SystemClock
from common.config import Config
from common.history.lists import RunLists
from common.history.tenant_runs import TenantRuns
from common.jobs.ledger import TenantLedger
from common.planning.due_index import DueIndex
from common.planning.executions_queue import ExecutionsQueue
from common.platform.deletion import Deletions
from common.platform.request_rate import RequestRate
from common.platform.tenants import Credential, Tenants
from common.registration.definition import Limits
from common.registration.manual import ManualCommands
from common.registration.registry import Registry
from common.runs.changes import RunChanges
from common.runs.records import Runs
from common.storage import aws
from common.storage.tables import Table
from common.tenants.audit import Audit
from common.tenants.rules_cache import KnownTenants
from common.tenants.webhook_secrets import WebhookSecrets


@dataclass(frozen=True, slots=True)
class Services:
    """The stores behind the API."""

    registry: Registry
    runs: Runs
    run_lists: RunLists
    tenant_runs: TenantRuns
    manual: ManualCommands
    tenants: Tenants
    known_tenants: KnownTenants
    request_rate: RequestRate
    webhook_secrets: WebhookSecrets
    audit: Audit
    deletions: Deletions
    clock: Clock
    # None where the deployment takes no tokens.
    tokens: Tokens | None = None

    @classmethod
    def of(cls, settings: Config) -> Services:
        """Those of a deployment."""
        clock = SystemClock()
        queue = ExecutionsQueue(aws.sqs(), settings.executions_queue_url, clock)
        tenants_table = Table(aws.dynamodb(), settings.tenants_table)
        runs_table = Table(aws.dynamodb(), settings.runs_table)
        known_tenants = KnownTenants(tenants_table)
        runs = Runs(runs_table)
        jobs_table = Table(aws.dynamodb(), settings.jobs_table)
        registry = Registry(
            jobs=jobs_table,
            index=DueIndex(Table(aws.dynamodb(), settings.due_table)),
            queue=queue,
            clock=clock,
            limits=Limits.of_executor(settings.executor_timeout_s, plain_http=settings.plain_http_targets),
            rng=random.Random(),
            ledger=TenantLedger(tenants_table, known_tenants),
        )
        return cls(
            registry=registry,
            runs=runs,
            run_lists=RunLists(runs_table),
            tenant_runs=TenantRuns(jobs_table, runs_table),
            manual=ManualCommands(registry, runs, RunChanges(runs_table), queue, clock),
            tenants=Tenants(tenants_table),
            known_tenants=known_tenants,
            request_rate=RequestRate(tenants_table),
            webhook_secrets=WebhookSecrets(tenants_table),
            audit=Audit(tenants_table),
            deletions=Deletions(tenants_table, registry.jobs, runs_table, registry.index),
            clock=clock,
            tokens=Tokens(of_tokens) if (of_tokens := TokenSettings.of(settings)) else None,
        )

    def authenticate(self, credential: str, now: float) -> Credential:
        """Whose API key or token it is. Raises Unauthenticated, IssuerUnreachable."""
        if self.tokens is not None and is_token(credential):
            return self.tokens.authenticate(credential, now)
        return self.tenants.authenticate(credential, now)

    def acting_for(self, credential: Credential) -> Services:
        """The same, with every change written down as made by `credential`."""
        registry = replace(self.registry, by=credential.by)
        return replace(self, registry=registry, manual=replace(self.manual, store=registry))
