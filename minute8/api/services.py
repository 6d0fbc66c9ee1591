"""The stores and services that the routes use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from common import telemetry
from common.clock import Clock, SystemClock
from common.config import Config
from common.errors import Forbidden, Unauthenticated
from common.history.expected_runs import ExpectedRuns
from common.history.failed_runs import FailedRuns
from common.history.health import JobHealth
from common.history.job_directory import JobDirectory
from common.history.listed_health import ListedHealth
from common.history.projected_summary import ProjectedSummaries
from common.history.run_lists import RunLists
from common.history.runs_by_time import RunsByTime
from common.history.tenant_health import TenantHealth
from common.history.upcoming import Upcoming
from common.jobs.ledger import require_active
from common.jobs.muted_groups import MutedGroups
from common.jobs.store import JobStore, job_store
from common.notices.store import Subscriptions
from common.planning.due_index import DueIndex
from common.planning.queue import ExecutionsQueue
from common.planning.removal_requests import RemovalRequests
from common.platform.alarms import Alarms
from common.platform.credential import OPERATOR, Credential, Role
from common.platform.dead_letters import DeadLetters
from common.platform.deletion import Deletions
from common.platform.planning_checks import PlanningState
from common.platform.request_rate import RequestRate
from common.platform.run_again import RunAgain
from common.platform.signing_masters import StoredMasters, parameter_name
from common.platform.tenant_ranks import TenantRanks
from common.platform.tenants import Tenants
from common.projection.rebuild import Rebuild
from common.projection.state import ProjectionStates
from common.registration.definition import Limits
from common.registration.manual import ManualCommands
from common.registration.registry import Registry
from common.registration.secret_store import SecretStore
from common.registration.subscriptions import SubscriptionStore
from common.runs.callbacks import Callbacks
from common.runs.records import Runs
from common.runs.unrecorded import Unrecorded
from common.storage import aws
from common.storage.aws import read_parameter
from common.storage.metering import Meter, metered
from common.storage.table import Table, Tables
from common.tenants.audit import AWS, Audit
from common.tenants.holds import Holds
from common.tenants.rules_cache import KnownTenants
from common.tenants.secrets import SecretKey
from common.tenants.states import ACTIVE, SUSPENDED
from common.tenants.webhook_secrets import WebhookSecrets
from minute8.api.auth.tokens import SigningKeys, Tokens, TokenSettings, is_token
from minute8.eventbridge.guard import schedule_guard
from minute8.eventbridge.import_lines import ScheduleLines
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS

if TYPE_CHECKING:
    from minute8.api.auth.issuer_pages import IssuerPages, KnownIssuerPages

# How many executions that a change of a job enqueues count as one more request.
_EXECUTIONS_A_REQUEST: Final = 10
# After these seconds a request about dead letters receives no more: the function may run for 29 s.
DEAD_LETTERS_S: Final = 15


@dataclass(frozen=True, slots=True)
class Deployment:
    """What differs from one deployment to another."""

    limits: Limits
    dead_letters: DeadLetters
    # None: alarms are not read.
    alarms: Alarms | None = None
    # None: the deployment accepts no tokens.
    tokens: Tokens | None = None
    # The secrets of key pairs for AWS's SDKs.
    masters: StoredMasters = field(default_factory=lambda: StoredMasters(lambda: None))
    stage: str = ""
    region: str = "us-east-1"
    # The calls of targets that the deployment's parameters allow at a time.
    calls_at_once: int = 0
    removals: RemovalRequests | None = None
    # None: tenants can put no secrets.
    secret_key: SecretKey | None = None
    # What something in front of the API takes off the path, though its clients sign it.
    path_prefix: str = ""
    # Before the name of a page.
    runbook_url: str = "docs/runbook"
    # None: nobody signs in to the console at the issuer.
    issuer_pages: KnownIssuerPages | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What has run and what is due, for lists, summaries and comparisons."""

    runs: Table
    run_lists: RunLists
    by_time: RunsByTime
    summaries: ProjectedSummaries
    expected: ExpectedRuns
    health: JobHealth
    listed_health: ListedHealth
    upcoming: Upcoming
    failed_runs: FailedRuns
    muted: MutedGroups
    tenant_health: TenantHealth
    directory: JobDirectory

    @classmethod
    def of(cls, tables: Tables, index: DueIndex) -> History:
        """The history in these tables."""
        directory = JobDirectory(tables.jobs, Audit(tables.tenants))
        by_time = RunsByTime(tables.runs, tables.due, directory)
        health, listed_health = JobHealth(tables.runs), ListedHealth(tables.runs, by_time, directory)
        summaries = ProjectedSummaries(tables.runs, by_time)
        return cls(
            runs=tables.runs,
            run_lists=RunLists(tables.runs),
            by_time=by_time,
            summaries=summaries,
            expected=ExpectedRuns(tables.jobs, tables.runs, Audit(tables.tenants), index),
            health=health,
            listed_health=listed_health,
            upcoming=Upcoming(tables.jobs),
            failed_runs=FailedRuns(tables.jobs, tables.runs),
            muted=MutedGroups(tables.jobs),
            tenant_health=TenantHealth(tables.jobs, summaries, directory, listed_health, health),
            directory=directory,
        )


@dataclass(frozen=True, slots=True)
class Operations:
    """What operators alone use."""

    holds: Holds
    run_again: RunAgain
    deletions: Deletions
    planning: PlanningState
    rebuild: Rebuild
    ranks: TenantRanks


@dataclass(frozen=True, slots=True)
class Services:
    """The API's stores and services."""

    registry: Registry
    runs: Runs
    callbacks: Callbacks
    history: History
    manual: ManualCommands
    tenants: Tenants
    known_tenants: KnownTenants
    request_rate: RequestRate
    webhook_secrets: WebhookSecrets
    subscriptions: SubscriptionStore
    audit: Audit
    operations: Operations
    deployment: Deployment
    clock: Clock

    @classmethod
    def of(cls, settings: Config, clients: aws.Clients) -> Services:
        """The services of a deployment."""
        clock = SystemClock()
        queue_url = settings.required("executions_queue_url")
        queue = ExecutionsQueue(clients.sqs(), queue_url, clock)
        limits = Limits.of_executor(
            settings.executor_timeout_s,
            plain_http=settings.plain_http_targets,
            loopback=settings.loopback_targets,
            spread_s=settings.spread_s,
            payload_formats=PAYLOAD_FORMATS,
        )
        tokens = Tokens(of_tokens, _issuer_keys) if (of_tokens := TokenSettings.of(settings)) else None
        deployment = Deployment(
            limits,
            DeadLetters(clients.sqs(), queue_url, work_s=DEAD_LETTERS_S),
            Alarms(aws.on_first_use(clients.cloudwatch), settings.stage),
            tokens,
            StoredMasters(lambda: read_parameter(parameter_name(settings.stage))),
            settings.stage,
            region=clients.region,
            calls_at_once=settings.calls_at_once,
            secret_key=SecretKey.of(settings.secrets_key, clients.kms),
            removals=RemovalRequests(clients.sqs(), settings.planning_queue_url, clock),
            path_prefix=settings.api_path_prefix,
            runbook_url=settings.runbook_url,
            issuer_pages=_issuer_pages(of_tokens) if of_tokens else None,
        )
        return cls.wired(Tables.of(settings, clients.dynamodb), queue, clock, deployment)

    @classmethod
    def wired(cls, tables: Tables, queue: ExecutionsQueue, clock: Clock, deployment: Deployment) -> Services:
        """The services for these tables."""
        tables = tables.metered()
        limits = deployment.limits
        known_tenants = KnownTenants(tables.tenants)
        runs, secrets = Runs(tables.runs), WebhookSecrets(tables.tenants, lambda: deployment.secret_key)
        store = job_store(
            *(tables, queue, clock, known_tenants),
            guards=[schedule_guard(tables.jobs)],
            by=AWS,
            webhook_secrets=secrets,
        )
        return cls(
            registry=Registry(store, limits, ScheduleLines()),
            runs=runs,
            callbacks=Callbacks(runs, queue),
            history=History.of(tables, store.index),
            manual=ManualCommands(store, runs, queue, clock, limits.payload_formats),
            tenants=Tenants(tables.tenants, clock),
            known_tenants=known_tenants,
            request_rate=RequestRate(tables.tenants),
            webhook_secrets=secrets,
            subscriptions=SubscriptionStore(
                Subscriptions(tables.jobs), known_tenants, secrets, limits, clock
            ),
            audit=Audit(tables.tenants),
            operations=Operations(
                Holds(tables.tenants, clock),
                RunAgain(Unrecorded(tables.due, tables.runs), queue, tables.tenants, clock),
                Deletions(tables.tenants, tables.jobs, tables.runs, store.index, clock),
                PlanningState(tables.due, clock, deployment.stage),
                Rebuild(tables.jobs, tables.runs, tables.due),
                TenantRanks(tables.jobs, tables.runs, ProjectionStates(tables.due)),
            ),
            deployment=deployment,
            clock=clock,
        )

    @property
    def store(self) -> JobStore:
        """The stored jobs, where no definition has to be read."""
        return self.registry.store

    @property
    def secrets(self) -> SecretStore:
        """The tenants' secrets."""
        store = self.store
        return SecretStore(store.ledger.table, store.jobs, self.deployment.secret_key, store.audited)

    def authenticate(self, credential: str, now: float) -> Credential:
        """The credential of an API key or token. Raises Unauthenticated, IssuerUnreachable."""
        if self.deployment.tokens is not None and is_token(credential):
            return self.deployment.tokens.authenticate(credential, now)
        return self.tenants.api_keys.authenticate(credential, now)

    def issuer_pages(self) -> IssuerPages | None:
        """Where a person signs in to the console at the issuer of tokens; None without one. Never raises."""
        known = self.deployment.issuer_pages
        return known.at(self.clock.now()) if known else None

    def admit(
        self,
        credential: Credential,
        needed: Role,
        now: float,
        *,
        weight: int = 1,
        while_suspended: bool = False,
    ) -> None:
        """Count the request, which needs the role `needed`. A suspended tenant may read, and do `while_suspended`.

        Raises Unauthenticated, RateExceeded, TenantSuspended, Forbidden.
        """
        if credential.role != OPERATOR:
            rules = self.known_tenants.rules(credential.tenant, now)
            if rules is None or rules.state not in (ACTIVE, SUSPENDED):
                raise Unauthenticated  # the tenant was deleted, or never existed
            self.request_rate.take(credential.tenant, rules.quotas.requests_per_minute, now, weight)
            if credential.may(needed) and not (needed == "read" or while_suspended):
                require_active(rules, credential.tenant)
        if not credential.may(needed):
            raise Forbidden(credential.role, needed)

    def admit_target(self, tenant: str, now: float) -> None:
        """Count a request of a run's target, whose token is proven. Raises Unauthenticated, RateExceeded."""
        rules = self.known_tenants.rules(tenant, now)
        if rules is None or rules.state not in (ACTIVE, SUSPENDED):
            raise Unauthenticated
        self.request_rate.take(tenant, rules.quotas.requests_per_minute, now)

    def count_as(self, tenant: str, now: float, requests: int, counted: int = 1) -> None:
        """Count a request as so many, of which `counted` are counted already. Raises RateExceeded.

        It counts as half of the tenant's quota at most, so that a small quota allows it, too.
        """
        if rules := self.known_tenants.rules(tenant, now):
            most = rules.quotas.requests_per_minute
            if (more := min(requests, most // 2) - counted) > 0:
                self.request_rate.take(tenant, most, now, more)

    def _charge(self, tenant: str, executions: int) -> None:
        now = self.clock.now()
        if rules := self.known_tenants.rules(tenant, now):
            most = rules.quotas.requests_per_minute
            self.request_rate.charge(tenant, most, now, executions // _EXECUTIONS_A_REQUEST)

    @contextmanager
    def weighed(self) -> Iterator[None]:
        """Charge to the tenant of the request that is answered meanwhile what it costs, afterwards. Never raises."""
        meter = Meter(self.clock.thread_s)
        try:
            with metered(meter):
                yield
        finally:
            try:
                self.request_rate.settle(meter, self.clock.now())
            except Exception:  # noqa: BLE001  the request is answered: it may have changed something
                telemetry.logger().error("request not charged", exc_info=True)

    def acting_for(self, credential: Credential, author: str = "") -> Services:
        """The same services; the audit names `credential` as the author of each change, or `author`.

        What a change enqueues is charged to its tenant.
        """
        store = replace(self.store, by=author or credential.by, before_hand_over=self._charge)
        registry, manual = replace(self.registry, store=store), replace(self.manual, store=store)
        return replace(self, registry=registry, manual=manual)


def _issuer_pages(settings: TokenSettings) -> KnownIssuerPages | None:
    if not settings.console_client:
        return None
    from minute8.api.auth.issuer_pages import KnownIssuerPages

    return KnownIssuerPages(settings)


def _issuer_keys(settings: TokenSettings) -> SigningKeys:
    # Only deployments with tokens need it, and it loads slowly.
    from minute8.api.auth.issuer_keys import IssuerKeys

    return IssuerKeys(settings)
