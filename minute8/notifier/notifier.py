"""One round, each minute: read what happened to every tenant that has subscriptions, then send what is due.

Each tenant's work is bounded, and tenants share the round fairly. The first message of every tenant is sent before any
tenant's second one, also if it failed before. A tenant whose addresses are slow uses up its own seconds of the round.
The next round does the rest.

A message is stored before it is sent, with the instant until which no other round sends it. So a process that dies, or
a round that runs twice, repeats a message with the same id at most.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Final, TypeVar

from msgspec import json
from msgspec.structs import replace

from common import events, telemetry
from common.clock import Clock
from common.errors import NotFound
from common.events import Events
from common.jobs.job import DELETED
from common.jobs.not_running import address_off, listing
from common.notices import grouping
from common.notices.message import body, described
from common.notices.store import Subscriptions, not_allowed, refusal
from common.notices.subscription import (
    ALERTS,
    FAILURES,
    NOT_RUNNING,
    RECOVERED,
    RECOVERIES,
    SEARCHED,
    Notice,
    Problem,
    Subscription,
)
from common.planning.due_index import DueIndex
from common.storage import keys
from common.storage.table import Tables
from common.storage.transactions import Transaction
from common.tenants.allowed_targets import is_blocked
from common.tenants.audit import ITSELF, Audit, AuditedCommit
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import ACTIVE, SUSPENDED
from executor.targets.http_endpoint import NOT_SIGNED
from minute8.notifier.delivery import TIMEOUT_S, Deliver
from minute8.notifier.problem_reader import AlertSpan, JobLabels, ProblemReader, Stopped

# As often as ticks plan.
MIN_SEARCH_INTERVAL_S: Final = 600
# Of an unchanged state.
_MIN_WRITE_INTERVAL_S: Final = 600
# Reported problems of one subscription in one round.
_MAX_EXAMINED: Final = 25
_MAX_SAVES: Final = 3
# Of one tenant in a round, over all threads: six tries of slow addresses.
MAX_TENANT_SEND_S: Final = 30
_log = logging.getLogger("minute8.notifier")
T = TypeVar("T")


@dataclass(slots=True)
class Happenings:
    """What happened to a tenant's jobs since the last round, with the labels of the jobs."""

    failures: list[Problem] = field(default_factory=list)
    complete: bool = True
    # Jobs that are overdue, or of which an alert has something to say.
    searched: list[Problem] = field(default_factory=list)
    searched_all: bool = True
    stopped: Stopped = field(default_factory=Stopped)
    subscriptions: frozenset[str] = frozenset()
    labels: dict[str, JobLabels] = field(default_factory=dict)
    # When the search among the jobs began, and the job after which it continues. None without a search.
    search: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class OutgoingNotice:
    """A message to send."""

    subscription: Subscription
    message: Notice

    @property
    def urgency(self) -> tuple[int, float]:
        """Sorts a tenant's messages: those that failed least come first."""
        return self.message.tries, self.message.next_at


class SendTimes:
    """The seconds of a round that each tenant's messages take, of MAX_TENANT_SEND_S."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used_s: defaultdict[str, float] = defaultdict(float)

    def reserve(self, tenant: str) -> bool:
        """Whether a further try may begin. Its longest time counts until it ends."""
        with self._lock:
            if self._used_s[tenant] + TIMEOUT_S > MAX_TENANT_SEND_S:
                return False
            self._used_s[tenant] += TIMEOUT_S
            return True

    def ended(self, tenant: str, took_s: float) -> None:
        """Count what a try took instead of its longest time."""
        with self._lock:
            self._used_s[tenant] += took_s - TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Notifier:
    """`pool` runs tenants and messages in parallel; `reader` uses another pool."""

    subscriptions: Subscriptions
    reader: ProblemReader
    rules: KnownTenants
    deliver: Deliver
    clock: Clock
    pool: Executor
    commit: AuditedCommit
    events: Events

    def round(self, reads_until: float, sends_until: float) -> Counter[str]:
        """Read, then send; nothing begins after these instants. Returns how many were sent, failed, held and left."""
        tenants = list(self.subscriptions.subscribers())
        # Each round begins with another tenant, so that nobody is always the last.
        start = int(self.clock.now()) // 60 % max(1, len(tenants))

        def read(subscriber: tuple[str, str]) -> list[OutgoingNotice]:
            tenant, mark = subscriber
            return self._safely(tenant, [], lambda: self._tenant(tenant, mark, reads_until))

        times = SendTimes()

        def send(notice: OutgoingNotice) -> str:
            tenant = notice.subscription.tenant
            return self._safely(tenant, "error", lambda: self._send_in_turn(notice, sends_until, times))

        notices = self.pool.map(read, [*tenants[start:], *tenants[:start]])
        return Counter(self.pool.map(send, in_turn(notices)))

    def _send_in_turn(self, notice: OutgoingNotice, until: float, times: SendTimes) -> str:
        """Try to send one message, if its tenant has seconds left in this round."""
        tenant, began_at = notice.subscription.tenant, self.clock.now()
        if not times.reserve(tenant):
            return "left"
        try:
            return self._send(notice, until)
        finally:
            times.ended(tenant, self.clock.now() - began_at)

    def _safely(self, tenant: str, instead: T, work: Callable[[], T]) -> T:
        with telemetry.tolerated("the notices of a tenant are left to the next round", tenant=tenant):
            return work()
        return instead

    def _tenant(self, tenant: str, mark: str, until: float) -> list[OutgoingNotice]:
        """Read what happened to a tenant, store the decisions, and return what is to be sent."""
        now = self.clock.now()
        if now >= until:
            return []
        rules = self.rules.rules(tenant, now)
        if rules is None or rules.state not in (ACTIVE, SUSPENDED):
            self.subscriptions.drop_subscriber(tenant, mark)
            return []
        if rules.state == SUSPENDED:
            return []
        subscriptions, addresses_off = self.subscriptions.with_addresses_off(tenant)
        stopped = self.reader.not_running(tenant, addresses_off)
        self._note_addresses(tenant, subscriptions, stopped, now)
        if not subscriptions:
            self.subscriptions.drop_subscriber(tenant, mark)
            return []
        enabled = [subscription for subscription in subscriptions if subscription.state.disabled_at is None]
        happenings = self._happenings(tenant, enabled, rules.run_retention_s, now)
        happenings.stopped = stopped.with_addresses(not_allowed(subscriptions, rules))
        happenings.subscriptions = frozenset(subscription.name for subscription in subscriptions)
        notices: list[OutgoingNotice] = []
        for subscription in subscriptions:
            notices += self._update(subscription, happenings, now)
        return notices

    def _note_addresses(
        self, tenant: str, subscriptions: Sequence[Subscription], stopped: Stopped, now: float
    ) -> None:
        """Note, audit and publish each address that is switched off since the last round; forget those that are not."""
        off = {each.name: each.state for each in subscriptions if each.state.disabled_at is not None}
        for name in off.keys() - stopped.addresses:
            state = off[name]
            error = state.last_sent.error if state.last_sent else ""
            tx = Transaction(self.subscriptions.table.client)
            since_at = state.disabled_at or now
            tx.put(self.subscriptions.table, address_off(tenant, name, since_at, error, now))
            tx.put(self.subscriptions.table, listing(tenant, now))
            self.commit.commit(tx, tenant, "subscription.switched_off", name, now)
            about = {"tenant": tenant, "subscription": name, "since_at": int(since_at), "error": error}
            self.events.publish(events.ADDRESS_OFF, about)
        existing = {each.name for each in subscriptions}
        for name in stopped.addresses - off.keys():
            self.subscriptions.table.delete(keys.address_off(tenant, name))
            over_by = "switched_on" if name in existing else "deleted"
            over = {"tenant": tenant, "subscription": name, "over_by": over_by}
            self.events.publish(events.ADDRESS_OFF_OVER, over)

    def _happenings(
        self, tenant: str, subscriptions: Sequence[Subscription], kept_s: int, now: float
    ) -> Happenings:
        """What happened since the last round, read once for all subscriptions."""
        happenings = Happenings()
        of_failures = [subscription for subscription in subscriptions if FAILURES in subscription.kinds]
        if of_failures:
            since = min(subscription.state.looked_at for subscription in of_failures) - grouping.LATE_S
            failures, happenings.complete = self.reader.failures(tenant, since)
            happenings.failures = self.reader.without_muted(tenant, failures, now)
        if any(subscription.needs_jobs for subscription in of_failures):
            job_ids = (problem.job_id for problem in happenings.failures)
            happenings.labels = self.reader.labels(tenant, job_ids)
        searching = [
            subscription for subscription in subscriptions if SEARCHED.intersection(subscription.kinds)
        ]
        if searching:
            self._search(tenant, searching, kept_s, now, happenings)
        return happenings

    def _search(
        self,
        tenant: str,
        searching: Sequence[Subscription],
        kept_s: int,
        now: float,
        happenings: Happenings,
    ) -> None:
        """Add what a search of the jobs finds, if one is due or goes on."""
        before = searching[0].state
        if not before.searched_after and now < before.searched_at + MIN_SEARCH_INTERVAL_S:
            return
        began_at = before.searched_at if before.searched_after else now
        alerts = _alert_span(searching, began_at, kept_s)
        search = self.reader.search(tenant, before.searched_after, now, alerts)
        happenings.searched = [problem for problem, _ in search.problems]
        happenings.searched_all = search.complete
        happenings.labels |= {problem.job_id: labels for problem, labels in search.problems}
        happenings.search = (began_at, search.after_job)

    def _update(self, subscription: Subscription, happenings: Happenings, now: float) -> list[OutgoingNotice]:
        """Add what happened, decide, and store. Returns what is to be sent; nothing if another writer was faster."""
        state = subscription.state
        looked_at, before = state.looked_at, json.encode(replace(state, looked_at=0.0))
        if state.disabled_at is None:
            if happenings.search and SEARCHED.intersection(subscription.kinds):
                began_at, after_job = happenings.search
                state.searched_since = grouping.known_until(state, began_at)
                state.searched_at, state.searched_after = began_at, after_job
            self._add(subscription, happenings, now)
            self._add_stopped(subscription, happenings, looked_at)
            self._examine(subscription, now)
            self._report(subscription, now)
        messages = grouping.to_send(state, now)
        for message in messages:
            # While this round sends it.
            leased = replace(message, next_at=now + grouping.LEASE_S)
            if message is state.test:
                state.test = leased
            else:
                state.message = leased
        unchanged = before == json.encode(replace(state, looked_at=0.0))
        if unchanged and now < looked_at + _MIN_WRITE_INTERVAL_S:
            return []
        saved = self.subscriptions.save(subscription)
        if saved is None:
            return []
        return [OutgoingNotice(saved, message) for message in messages]

    def _add(self, subscription: Subscription, happenings: Happenings, now: float) -> None:
        state = subscription.state
        since = max(state.looked_at - grouping.LATE_S, subscription.created_at)

        def filtered(problems: Iterable[Problem]) -> list[Problem]:
            labelled = ((problem, happenings.labels.get(problem.job_id, JobLabels())) for problem in problems)
            return [
                problem for problem, job in labelled if subscription.takes(problem.job_id, job.name, job.tags)
            ]

        if FAILURES in subscription.kinds:
            recent = (problem for problem in happenings.failures if problem.last_at >= since)
            grouping.add(state, filtered(recent))
            state.complete = state.complete and happenings.complete
        since = max((state.searched_since or 0.0) - grouping.LATE_S, subscription.created_at)
        news = (problem for problem in happenings.searched if problem.ends or problem.last_at >= since)
        grouping.add(state, filtered(problem for problem in news if problem.kind in subscription.kinds))
        if ALERTS.intersection(subscription.kinds):
            state.complete = state.complete and happenings.searched_all
        state.looked_at = now
        grouping.forget(state, now)

    def _add_stopped(self, subscription: Subscription, happenings: Happenings, looked_at: float) -> None:
        """Add what does not run, whoever it concerns if it is an address, and end what is over.

        A job that Minute8 deleted since the look at `looked_at` is told first: it did not run.
        """
        state, stopped = subscription.state, happenings.stopped
        present: list[Problem] = []
        if NOT_RUNNING in subscription.kinds:
            since = looked_at - grouping.LATE_S  # a note is stored some time after its instant
            news = [(problem, job) for problem, job, noted_at in stopped.completed if noted_at > since]
            reported = [
                problem
                for problem, job in (*stopped.problems, *news)
                if problem.address != subscription.name
                and (problem.address or subscription.takes(problem.job_id, job.name, job.tags))
            ]
            grouping.change_reasons(state, reported)
            counted = () if subscription.is_filtered else stopped.counted
            present = grouping.named_and_counted(state, (*reported, *counted))
            grouping.add(state, present)
            state.complete = state.complete and stopped.complete and len(counted) == len(stopped.counted)
        ended = self._over(subscription, happenings, present)
        grouping.end(state, ended, state.looked_at, reports=RECOVERIES in subscription.kinds)

    def _over(
        self, subscription: Subscription, happenings: Happenings, present: Sequence[Problem]
    ) -> dict[str, str]:
        """Which of the problems that the subscription knows are over, each with a word that says how."""
        state, stopped = subscription.state, happenings.stopped
        untold = stopped.completed_keys & state.waiting.keys()
        go_on = (
            stopped.keys | untold | state.over.keys() | {problem.key for problem in present if problem.more}
        )
        known = (*state.waiting.values(), *state.reported.values())
        over = [each for each in known if each.kind == NOT_RUNNING and each.key not in go_on]
        ended = {problem.key: RECOVERED for problem in over if problem.more and stopped.complete}
        for problem in over:
            if problem.address:
                ended[problem.key] = RECOVERED if problem.address in happenings.subscriptions else DELETED
        jobs = [problem for problem in over if problem.job_id]
        return ended | self.reader.over_by(subscription.tenant, jobs) if jobs else ended

    def _examine(self, subscription: Subscription, now: float) -> None:
        """Find out which problems have ended: some reported ones, and before a message the waiting ones. Drop muted."""
        state, reports = subscription.state, RECOVERIES in subscription.kinds
        examined = [
            problem
            for problem in state.reported.values()
            if problem.is_asked and problem.key not in state.over
        ]
        examined = examined[:_MAX_EXAMINED]
        grouping.end(state, self.reader.ended(subscription.tenant, examined), now, reports=reports)
        if len(state.reported) > _MAX_EXAMINED:  # the next round examines the others
            for problem in examined:
                if problem.key in state.reported:
                    state.reported[problem.key] = state.reported.pop(problem.key)
        is_full = len(state.waiting) >= grouping.MAX_WAITING
        if is_full or grouping.may_report(state, subscription.delay_s, now):
            waiting = [problem for problem in state.waiting.values() if problem.is_asked]
            ended = self.reader.ended(subscription.tenant, waiting)
            grouping.end(state, ended, now, reports=reports)
            shown = self.reader.without_muted(subscription.tenant, list(state.waiting.values()), now)
            state.waiting = {problem.key: problem for problem in shown}

    def _report(self, subscription: Subscription, now: float) -> None:
        state = subscription.state
        if not grouping.may_report(state, subscription.delay_s, now):
            return
        digest = grouping.take_digest(state, subscription.delay_s, subscription.group_s, now)
        contexts = self.reader.contexts(subscription.tenant, described(digest))
        message_id = _message_id(subscription)
        text = body(subscription, digest, contexts, message_id, now)
        state.message = Notice(message_id, text, made_at=now, next_at=now)

    def _send(self, notice: OutgoingNotice, until: float) -> str:
        """Try to send one message, and store the result. Returns a word for the count."""
        subscription, message, now = notice.subscription, notice.message, self.clock.now()
        if now >= until:
            return "left"  # a round after the lease sends the message
        rules = self.rules.rules(subscription.tenant, now)
        if rules is None or rules.state != ACTIVE:
            return "left"
        if any(is_blocked(subscription.target, (block.pattern,)) for block in self.rules.blocks(now)):
            return "blocked"  # no failed try: the platform releases the address later
        error, address_failed = refusal(subscription.target, rules), True
        if not error:
            outcome = self.deliver(subscription, message)
            error = "" if outcome.ok else f"{outcome.error_type}: {outcome.error}"
            address_failed = outcome.error_type != NOT_SIGNED
        self._note(subscription, message, error, address_failed=address_failed)
        return "failed" if error else "sent"

    def _note(self, subscription: Subscription, message: Notice, error: str, *, address_failed: bool) -> None:
        """Store the result of a try, unless the subscription was deleted meanwhile."""
        for _ in range(_MAX_SAVES):
            now, state = self.clock.now(), subscription.state
            grouping.note_delivery(
                state, message.message_id, not error, error, now, address_failed=address_failed
            )
            if self.subscriptions.save(subscription):
                return
            try:
                subscription = self.subscriptions.get(subscription.tenant, subscription.name)
            except NotFound:
                return


def in_turn(notices: Iterable[Sequence[OutgoingNotice]]) -> list[OutgoingNotice]:
    """Every tenant's first message, then every second one, and so on. Messages that failed are last in a turn."""
    turns = [
        (number, notice)
        for of_tenant in notices
        for number, notice in enumerate(sorted(of_tenant, key=lambda notice: notice.urgency))
    ]
    turns.sort(key=lambda turn: (turn[0], turn[1].message.tries > 0, turn[1].message.next_at))
    return [notice for _, notice in turns]


def notifier(
    tables: Tables,
    clock: Clock,
    rules: KnownTenants,
    deliver: Deliver,
    pool: Executor,
    reads: Executor,
    publisher: Events,
) -> Notifier:
    """The notifier. `pool` runs tenants and messages, `reads` the reads of single jobs."""
    reader = ProblemReader(tables.jobs, tables.runs, DueIndex(tables.due), reads)
    commit = AuditedCommit(Audit(tables.tenants), ITSELF, clock)
    return Notifier(Subscriptions(tables.jobs), reader, rules, deliver, clock, pool, commit, publisher)


def _alert_span(subscriptions: Sequence[Subscription], began_at: float, kept_s: int) -> AlertSpan | None:
    """What the alerts are to report to these subscriptions, in a search that began then. None: nothing."""
    known = [
        max(grouping.known_until(subscription.state, began_at) - grouping.LATE_S, subscription.created_at)
        for subscription in subscriptions
        if ALERTS.intersection(subscription.kinds)
    ]
    return AlertSpan(min(known), kept_s) if known else None


def _message_id(subscription: Subscription) -> str:
    """The same id if two rounds make the same message: only one of them can store it."""
    parts = (subscription.tenant, subscription.name, subscription.created_at, subscription.version)
    return f"ntc_{hashlib.sha256('#'.join(map(str, parts)).encode()).hexdigest()[:32]}"
