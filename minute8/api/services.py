"""The stores and services that the routes use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from common import telemetry
from common.deployment import Deployment, Part
from common.errors import Forbidden, Unauthenticated
from common.history.expected_runs import ExpectedRuns
from common.history.failed_runs import FailedRuns
from common.history.health import JobHealth
from common.history.job_directory import JobDirectory
from common.history.listed_health import ListedHealth, TenantHealth
from common.history.projected_summary import ProjectedSummaries
from common.history.runs_by_time import RunLists, RunsByTime
from common.jobs.ledger import require_active
from common.jobs.muted_groups import MutedGroups
from common.jobs.store import JobStore
from common.notices.store import Subscriptions
from common.platform.alarms import Alarms
from common.platform.api_keys import OPERATOR, Credential, Role
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
from common.runs.holders import Holders
from common.runs.unrecorded import Unrecorded
from common.storage.aws import on_first_use, read_parameter
from common.storage.metering import Meter, metered
from common.storage.table import Tables
from common.tenants.audit import AWS, Audit
from common.tenants.blocks import Blocks
from common.tenants.tenant import ACTIVE, SUSPENDED
from minute8.api.auth.tokens import SigningKeys, Tokens, TokenSettings, is_token
from minute8.eventbridge.import_lines import ScheduleLines
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS

if TYPE_CHECKING:
    from minute8.api.auth.issuer_pages import IssuerPages, KnownIssuerPages

# How many executions that a change of a job enqueues count as one more request.
_EXECUTIONS_A_REQUEST: Final = 10
# After these seconds a request about dead letters receives no more: the function may run for 29 s.
DEAD_LETTERS_S: Final = 15


T = TypeVar("T")


def part(make: Callable[[Services], T]) -> Part[T]:
    """A part that is made so."""
    return Part(make)


class Services(Deployment):
    """The API's stores and services. `acting_for` makes copies, which share the parts."""

    @part
    def _own_store(self) -> JobStore:
        ledger = replace(self.stored_jobs.ledger, hmac_of=self.masters.hmac_of)
        return replace(self.stored_jobs, by=AWS, ledger=ledger)

    _acting_store: JobStore | None = None

    tables = part(lambda s: Tables.of(s.settings, s.clients.dynamodb).metered())

    @part
    def limits(self) -> Limits:
        """What tenants may request."""
        from common.registration.functions import Functions

        settings = self.settings
        limits = Limits.of_executor(
            settings.executor_timeout_s,
            plain_http=settings.plain_http_targets,
            loopback=settings.loopback_targets,
            spread_s=settings.spread_s,
            payload_formats=PAYLOAD_FORMATS,
        )
        functions = Functions(self.clients.functions, self.clock)
        return replace(limits, function_timeout_s=functions.timeout_s, check_function=functions.check)

    region = part(lambda s: s.clients.region())
    token_settings = part(lambda s: TokenSettings.of(s.settings))
    # None: the deployment accepts no tokens.
    tokens = part(lambda s: Tokens(s.token_settings, _issuer_keys) if s.token_settings else None)
    # The secrets of key pairs for AWS's SDKs, and the key of the audit's HMACs.
    masters = part(lambda s: StoredMasters(lambda: read_parameter(parameter_name(s.settings.stage))))
    tenants = part(lambda s: Tenants(s.tables.tenants, s.clock))
    request_rate = part(lambda s: RequestRate(s.tables.tenants))
    audit = part(lambda s: Audit(s.tables.tenants))
    callbacks = part(lambda s: Callbacks(s.runs, s.queue))
    stored_subscriptions = part(lambda s: Subscriptions(s.tables.jobs))
    subscriptions = part(
        lambda s: SubscriptionStore(
            s.stored_subscriptions, s.known_tenants, s.webhook_secrets, s.limits, s.clock
        )
    )

    # What has run and what is due.
    directory = part(lambda s: JobDirectory(s.tables.jobs, s.audit))
    run_lists = part(lambda s: RunLists(s.tables.runs))
    by_time = part(lambda s: RunsByTime(s.tables.runs, s.tables.due, s.directory))
    summaries = part(lambda s: ProjectedSummaries(s.tables.runs, s.by_time))
    expected = part(lambda s: ExpectedRuns(s.tables.jobs, s.tables.runs, s.audit, s.index))
    health = part(lambda s: JobHealth(s.tables.runs))
    listed_health = part(lambda s: ListedHealth(s.tables.runs, s.by_time, s.directory))
    failed_runs = part(lambda s: FailedRuns(s.tables.jobs, s.tables.runs))
    muted = part(lambda s: MutedGroups(s.tables.jobs))
    tenant_health = part(
        lambda s: TenantHealth(s.tables.jobs, s.summaries, s.directory, s.listed_health, s.health)
    )

    # What operators alone use.
    alarms = part(lambda s: Alarms(on_first_use(s.clients.cloudwatch), s.settings.stage))
    dead_letters = part(
        lambda s: DeadLetters(s.sqs, s.settings.required("executions_queue_url"), work_s=DEAD_LETTERS_S)
    )
    blocks = part(lambda s: Blocks(s.tables.tenants, s.clock))
    run_again = part(
        lambda s: RunAgain(Unrecorded(s.tables.due, s.tables.runs), s.queue, s.tables.tenants, s.clock)
    )
    deletions = part(lambda s: Deletions(s.tables.tenants, s.tables.jobs, s.tables.runs, s.index, s.clock))
    planning = part(lambda s: PlanningState(s.tables.due, s.clock, s.settings.stage))
    rebuild = part(lambda s: Rebuild(s.tables.jobs, s.tables.runs, s.tables.due))
    ranks = part(lambda s: TenantRanks(s.tables.jobs, s.tables.runs, ProjectionStates(s.tables.due)))

    @part
    def _issuer_pages(self) -> KnownIssuerPages | None:
        settings = self.token_settings
        if settings is None or not settings.console_client:
            return None
        from minute8.api.auth.issuer_pages import KnownIssuerPages

        return KnownIssuerPages(settings)

    @property
    def store(self) -> JobStore:
        """The stored jobs, where no definition has to be read. The audit names who is acted for."""
        return self._acting_store or self._own_store

    @property
    def registry(self) -> Registry:
        """Reads definitions, and stores them."""
        return Registry(self.store, self.limits, ScheduleLines())

    @property
    def manual(self) -> ManualCommands:
        """What a person does with runs."""
        holders = Holders(self.tables.runs, self.queue, self.clock)
        formats = self.limits.payload_formats
        return ManualCommands(self.store, self.runs, self.queue, self.clock, formats, holders)

    @property
    def secrets(self) -> SecretStore:
        """The tenants' secrets."""
        store = self.store
        return SecretStore(store.ledger.table, store.jobs, self.secret_key, store.audited)

    def authenticate(self, credential: str, now: float) -> Credential:
        """The credential of an API key or token. Raises Unauthenticated, IssuerUnreachable."""
        if self.tokens is not None and is_token(credential):
            return self.tokens.authenticate(credential, now)
        return self.tenants.api_keys.authenticate(credential, now)

    def issuer_pages(self) -> IssuerPages | None:
        """Where a person signs in to the console at the issuer of tokens; None without one. Never raises."""
        known = self._issuer_pages
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

    def is_suspended(self, tenant: str, now: float) -> bool:
        """Whether the platform has suspended the tenant."""
        rules = self.known_tenants.rules(tenant, now)
        return rules is not None and rules.state == SUSPENDED

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
            with telemetry.tolerated("request not charged"):  # it is answered, and may have changed something
                self.request_rate.settle(meter, self.clock.now())

    def acting_for(self, credential: Credential, author: str = "") -> Services:
        """The same services; the audit names `credential` as the author of each change, or `author`.

        What a change enqueues is charged to its tenant.
        """
        acting = copy(self)
        by = author or credential.by
        acting._acting_store = replace(self._own_store, by=by, before_hand_over=self._charge)
        return acting


def _issuer_keys(settings: TokenSettings) -> SigningKeys:
    # Only deployments with tokens need it, and it loads slowly.
    from minute8.api.auth.issuer_keys import IssuerKeys

    return IssuerKeys(settings)
