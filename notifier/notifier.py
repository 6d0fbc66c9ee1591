"""One round, each minute: look at every tenant that has subscriptions, then send what is due.

Each tenant's work is bounded, and tenants share the round fairly: the first message of every tenant is sent before any
tenant's second one, and an address that failed before comes after those that did not. What a round has no time for is
the next round's.

A message is stored before it is sent, with the instant until which nobody else sends it. So a process that dies, or a
round that runs twice, repeats a message with the same id at most.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, TypeVar

from common.clock import Clock
from common.errors import NotFound
from common.notices import grouping
from common.notices.message import body, listed
from common.notices.state import Message, Problem
from common.notices.subscription import FAILURES, OVERDUE_JOBS, RECOVERIES, Subscription, Subscriptions
from common.tenants.allowed_targets import is_held
from common.tenants.rules_cache import RulesOf
from common.tenants.states import ACTIVE, SUSPENDED
from notifier.delivery import Deliver, refusal
from notifier.look import Look, Named

# A search for overdue jobs begins at most each ten minutes, as ticks do.
SEARCH_EACH_S: Final = 600
# An unchanged state is written at most this often.
_WRITTEN_EACH_S: Final = 600
# How many reported problems of a subscription are examined in one look.
_MAX_EXAMINED: Final = 25
_SAVE_TRIES: Final = 3
_log = logging.getLogger("minute8.notifier")
T = TypeVar("T")


@dataclass(slots=True)
class Seen:
    """What happened to a tenant's jobs. `named` has what filters need to know of the jobs."""

    failures: list[Problem] = field(default_factory=list)
    complete: bool = True
    overdue: list[Problem] = field(default_factory=list)
    named: dict[str, Named] = field(default_factory=dict)
    # When the search for overdue jobs began, and the job after which it goes on; None: there was none.
    searched: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A message to send. `nth` is its number among its tenant's, from 0."""

    subscription: Subscription
    message: Message
    nth: int


@dataclass(frozen=True, slots=True)
class Notifier:
    """`pool` runs tenants and messages in parallel; `look` uses another pool."""

    subscriptions: Subscriptions
    look: Look
    rules: RulesOf
    deliver: Deliver
    clock: Clock
    pool: Executor

    def round(self, looks_until: float, sends_until: float) -> Counter[str]:
        """Look, and send; no look or try begins after its end. Returns what was done, by word."""
        done: Counter[str] = Counter()
        tenants = list(self.subscriptions.subscribers())
        # Each round begins elsewhere, so that nobody is always the last.
        start = int(self.clock.now()) // 60 % max(1, len(tenants))

        def looked(listed: tuple[str, str]) -> list[Due]:
            tenant, mark = listed
            return self._safely(tenant, [], lambda: self._tenant(tenant, mark, looks_until))

        def tried(due: Due) -> str:
            return self._safely(due.subscription.tenant, "error", lambda: self._send(due, sends_until))

        found = self.pool.map(looked, [*tenants[start:], *tenants[:start]])
        fairly = sorted(
            chain.from_iterable(found), key=lambda one: (one.message.tries > 0, one.nth, one.message.next_at)
        )
        done.update(self.pool.map(tried, fairly))
        return done

    def _safely(self, tenant: str, instead: T, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception:  # noqa: BLE001  the other tenants go on after any error
            _log.exception("the notices of a tenant: %s", tenant)
            return instead

    def _tenant(self, tenant: str, mark: str, until: float) -> list[Due]:
        """Look at a tenant, store what was found, and return what is to be sent."""
        now = self.clock.now()
        if now >= until:
            return []
        rules = self.rules.rules(tenant, now)
        if rules is None or rules.state not in (ACTIVE, SUSPENDED):
            self.subscriptions.drop_subscriber(tenant, mark)
            return []
        if rules.state == SUSPENDED:
            return []
        found = self.subscriptions.of_tenant(tenant)
        if not found:
            self.subscriptions.drop_subscriber(tenant, mark)
            return []
        seen = self._seen(tenant, [one for one in found if one.state.disabled_at is None], now)
        due: list[Due] = []
        for subscription in found:
            due += self._update(subscription, seen, now, len(due))
        return due

    def _seen(self, tenant: str, subscriptions: Sequence[Subscription], now: float) -> Seen:
        """What happened since the subscriptions' last look; read once for all of them."""
        seen = Seen()
        hear_failures = [one for one in subscriptions if FAILURES in one.kinds]
        if hear_failures:
            since = min(one.state.looked_at for one in hear_failures) - grouping.LATE_S
            seen.failures, seen.complete = self.look.failures(tenant, since)
        if any(one.needs_jobs for one in hear_failures):
            seen.named = self.look.named(tenant, (one.job_id for one in seen.failures))
        hear_overdue = [one.state for one in subscriptions if OVERDUE_JOBS in one.kinds]
        if hear_overdue:
            before = hear_overdue[0]
            if before.searched_after or now >= before.searched_at + SEARCH_EACH_S:
                late, after = self.look.overdue(tenant, before.searched_after, now)
                seen.overdue = [problem for problem, _ in late]
                seen.named |= {problem.job_id: named for problem, named in late}
                seen.searched = (before.searched_at if before.searched_after else now, after)
        return seen

    def _update(self, subscription: Subscription, seen: Seen, now: float, nth: int) -> list[Due]:
        """Take in what happened, decide, store; what is to be sent, or nothing if another writer was faster."""
        state, stored_at = subscription.state, subscription.state.looked_at
        before = replace(state, looked_at=0.0).to_text()
        if state.disabled_at is None:
            if seen.searched and OVERDUE_JOBS in subscription.kinds:
                state.searched_at, state.searched_after = seen.searched
            self._take_in(subscription, seen, now)
            self._examine(subscription, now)
            self._report(subscription, now)
        sends = grouping.to_send(state, now)
        for message in sends:
            if message is state.test:
                state.test = grouping.lease(message, now)
            else:
                state.message = grouping.lease(message, now)
        unchanged = before == replace(state, looked_at=0.0).to_text()
        if unchanged and now < stored_at + _WRITTEN_EACH_S:
            return []
        saved = self.subscriptions.save(subscription)
        return [Due(saved, message, nth + at) for at, message in enumerate(sends)] if saved else []

    def _take_in(self, subscription: Subscription, seen: Seen, now: float) -> None:
        state = subscription.state
        since = max(state.looked_at - grouping.LATE_S, subscription.created_at)

        def wanted(problems: Iterable[Problem]) -> list[Problem]:
            named = ((one, seen.named.get(one.job_id, Named())) for one in problems)
            return [one for one, job in named if subscription.takes(one.job_id, job.name, job.tags)]

        if FAILURES in subscription.kinds:
            grouping.notice(state, wanted(one for one in seen.failures if one.last_at >= since))
            state.complete = state.complete and seen.complete
        if OVERDUE_JOBS in subscription.kinds:
            grouping.notice(state, wanted(seen.overdue))
        state.looked_at = now
        grouping.forget(state, now)

    def _examine(self, subscription: Subscription, now: float) -> None:
        """Find out which problems have ended: some of the reported ones, and the waiting ones before a message."""
        state, reports = subscription.state, RECOVERIES in subscription.kinds
        reported = [one for one in state.reported.values() if one.key not in state.over][:_MAX_EXAMINED]
        grouping.end(state, self.look.ended(subscription.tenant, reported), now, reports=reports)
        if len(state.reported) > _MAX_EXAMINED:  # the others next time
            for one in reported:
                if one.key in state.reported:
                    state.reported[one.key] = state.reported.pop(one.key)
        is_full = len(state.waiting) >= grouping.MAX_WAITING
        if is_full or grouping.may_report(state, subscription.delay_s, now):
            ended = self.look.ended(subscription.tenant, list(state.waiting.values()))
            grouping.end(state, ended, now, reports=reports)

    def _report(self, subscription: Subscription, now: float) -> None:
        state = subscription.state
        if not grouping.may_report(state, subscription.delay_s, now):
            return
        reported = grouping.report(state, subscription.group_s, now)
        about = self.look.about(subscription.tenant, listed(reported))
        message_id = _message_id(subscription)
        text = body(subscription, reported, about, message_id, now)
        state.message = Message(message_id, text, made_at=now, next_at=now)

    def _send(self, due: Due, until: float) -> str:
        """One try of one message, and its result stored. Returns a word for the count."""
        subscription, message, now = due.subscription, due.message, self.clock.now()
        if now >= until:
            return "left"  # to the round after its lease
        rules = self.rules.rules(subscription.tenant, now)
        if rules is None or rules.state != ACTIVE:
            return "left"
        if any(is_held(subscription.target, (hold.pattern,)) for hold in self.rules.holds(now)):
            return "held"  # until the platform releases it; this does not count as a failed try
        error = refusal(subscription.target, rules)
        if not error:
            outcome = self.deliver(subscription, message)
            error = "" if outcome.ok else f"{outcome.error_type}: {outcome.error}"
        self._note(subscription, message, error)
        return "failed" if error else "sent"

    def _note(self, subscription: Subscription, message: Message, error: str) -> None:
        """Store the result of a try. A subscription that was deleted meanwhile needs none."""
        for _ in range(_SAVE_TRIES):
            grouping.sent(subscription.state, message.message_id, not error, error, self.clock.now())
            if self.subscriptions.save(subscription):
                return
            try:
                subscription = self.subscriptions.get(subscription.tenant, subscription.name)
            except NotFound:
                return


def _message_id(subscription: Subscription) -> str:
    """The same if two rounds make the same message: only one of them can store it."""
    parts = (subscription.tenant, subscription.name, subscription.created_at, subscription.version)
    return f"ntc_{hashlib.sha256('#'.join(map(str, parts)).encode()).hexdigest()[:32]}"
