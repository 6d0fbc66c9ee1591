"""Executions from their messages to their records: hold → load → admit → claim → call → record.

Each stage takes a list, and hands it on. For several executions of one second, the stages up to the claim make joint
requests. Each is made once, and what it brings goes on at once. What it leaves out, such as an item of a throttled
partition, stays at its stage, and takes the remaining stages in its own thread: a list of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from common import telemetry
from common.clock import Clock
from common.deployment import Deployment
from common.jobs.job import CORRUPT, Job
from common.jobs.placeholders import PayloadFormats
from common.jobs.spec import returns_result
from common.planning.execution import SCHEDULE, Execution
from common.runs.claims import Callback, Claim
from common.runs.holders import Holders
from common.runs.records import Runs
from common.runs.run import Durable, Run
from common.runs.states import DISPATCHED
from common.storage.aws import on_first_use
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import ACTIVE, SUSPENDED, TenantRules
from common.timing.instants import DAY_S
from common.timing.windows import MISSED_AFTER_S
from executor.admission import Skip, Wait, admit, admit_tenant, put_off, too_late
from executor.calling import NO_TURN, PayloadReader, Sending, Turns
from executor.conflict import Conflict, TakeOver, decide
from executor.due_jobs import DueJobs, Payloads
from executor.permits import Permits
from executor.recorder import Recorder, Report
from executor.run_end import DeadLetters, RunEnd
from executor.stages import (
    Admitted,
    CallDelay,
    Called,
    Claimed,
    Decided,
    Delivery,
    Held,
    Loaded,
)
from executor.targets import Kind
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS

if TYPE_CHECKING:
    from common.jobs.calendars import RememberedCalendars
    from executor.durable import DurableExecutions
    from executor.failure_streak import FailureStreak
    from executor.secrets import JobSecrets
    from executor.stops import Stops
    from executor.throttled import ThrottledRetries

# The time between claim and call is short.
_LEASE_MARGIN_S: Final = 5
# Most batches are over by then.
_AFTER_TURN_S: Final = 15
# Sending an event takes milliseconds.
EVENT_TIMEOUT_S: Final = 10
# What is claimed and not yet called waits for the lease if the executor dies. A later claim notes earlier calls.
CLAIMS_AT_ONCE: Final = 10

Progress = Delivery | Held | Loaded | Admitted | Claimed | Sending | Called | Decided | Report
# Is told each result that was recorded, and since when it was being recorded.
Note = Callable[[Called | Decided, Report, float], None]


@dataclass(frozen=True, slots=True)
class Executor:
    """Takes executions through the stages. `kinds`: those of targets. `tenants` returns each tenant's rules."""

    due_jobs: DueJobs
    runs: Runs
    permits: Permits
    recorder: Recorder
    clock: Clock
    kinds: Mapping[str, Kind]
    tenants: KnownTenants
    payload_formats: PayloadFormats
    payload_of: PayloadReader
    secrets: JobSecrets
    turns: Turns
    # Where targets reach the API.
    api_url: str = ""
    stage: str = ""
    # From a claim by itself to its call, and from a joint claim.
    call_delay: CallDelay = field(default_factory=CallDelay)
    joint_call_delay: CallDelay = field(default_factory=CallDelay)
    # For spans; None: there are none.
    note: Note | None = None

    @classmethod
    def of(cls, deployment: Deployment, kinds: Mapping[str, Kind]) -> Executor:
        """The executor of a deployment. What most batches do not need is made, and imported, on its first use."""
        clock, queue, rules = deployment.clock, deployment.queue, deployment.rules
        jobs, runs = deployment.tables.jobs, deployment.runs
        due_jobs, payloads = DueJobs(jobs, clock), Payloads(on_first_use(lambda: deployment.texts))
        permits = Permits(Holders(deployment.tables.runs, queue, clock))
        turns = Turns(jobs)
        letters = DeadLetters(runs, rules, PAYLOAD_FORMATS, payloads.of, due_jobs.as_scheduled, turns, clock)
        run_end = RunEnd(
            failure_streak=on_first_use(lambda: _failure_streak(deployment)),
            dead_letters=letters,
            backfills=on_first_use(lambda: deployment.backfills),
            ended_jobs=on_first_use(lambda: deployment.ended_jobs),
            removals=on_first_use(lambda: deployment.removals),
            events=deployment.events,
            queue=queue,
            clock=clock,
        )
        postponed, stops = (
            on_first_use(lambda: deployment.postponed),
            on_first_use(lambda: _stops(deployment)),
        )
        recorder = Recorder(
            runs=runs,
            permits=permits,
            run_end=run_end,
            queue=queue,
            postponed=postponed,
            stops=stops,
            durables=on_first_use(lambda: _durables(deployment)),
            throttled=on_first_use(lambda: _throttled(deployment)),
            clock=clock,
        )
        return cls(
            due_jobs=due_jobs,
            runs=runs,
            permits=permits,
            recorder=recorder,
            clock=clock,
            kinds=kinds,
            tenants=rules,
            payload_formats=PAYLOAD_FORMATS,
            payload_of=payloads.of,
            secrets=on_first_use(lambda: _secrets(deployment)),
            turns=turns,
            api_url=deployment.settings.api_url,
            stage=deployment.settings.stage,
        )

    def next_stage(self, progress: Progress) -> Progress:
        """Take an execution through its next stage.

        Raises:
            UnreadableMessage: the message is not an execution; it will end in the dead-letter queue.
            StillRunning: an earlier delivery is making the attempt; the message must be delivered again later.
        """
        match progress:
            case Delivery():
                return self._hold(progress)
            case Held():
                return self._load(progress)
            case Loaded():
                return self._admit(progress, self.clock.now())
            case Admitted():
                return self._claim(progress)
            case Claimed():
                return self.sending(progress).finish()
            case Sending():
                return progress.finish()
            case Called() | Decided():
                return self._record(progress)
            case Report():
                return progress

    def prepare(self, deliveries: Sequence[Delivery]) -> Iterator[list[Progress]]:
        """Take the executions of one second as far as joint requests go, at most until they are claimed.

        Yields them in their order: those of a request of claims go on before the next ones are claimed, so that an
        executor that dies has claimed little that it has not called.
        """
        progress: list[Progress] = list(deliveries)
        if len(deliveries) < 2:
            yield progress
            return
        for stage in (self._hold_all, self._load_together, self._admit_all):
            progress = _or_each_alone(stage, progress)
        for first in range(0, len(progress), CLAIMS_AT_ONCE):
            yield self._claim_together(progress[first : first + CLAIMS_AT_ONCE])

    def sending(self, claimed: Claimed) -> Sending:
        """The call of a claimed attempt, before its first step."""
        return Sending(claimed, self.clock, self.payload_formats, self.payload_of, self.secrets, self.turns)

    def is_unclaimed(self, execution: Execution) -> bool:
        """Whether no message has claimed this attempt."""
        record = self.runs.get(execution)
        return record is None or record.waits_for(execution.attempt)

    def _hold(self, delivery: Delivery) -> Held | Report:
        execution = delivery.execution or Execution.decode(delivery.body)
        if delivery.position in delivery.handed_over:
            return Report("duplicate", execution, detail=DISPATCHED)
        if delivery.is_early:
            self.recorder.postponed.send(execution)
            return Report("sent_on", execution)
        self.due_jobs.wait_until(execution.visible_at)
        return Held(delivery, execution)

    def _hold_all(self, batch: Sequence[Progress]) -> list[Progress]:
        return [self._hold(item) if isinstance(item, Delivery) else item for item in batch]

    def _load(self, held: Held) -> Loaded:
        execution, job = held.execution, self.due_jobs.load(held.execution)
        if job and job.state == CORRUPT:
            self.recorder.run_end.unreadable(job)
            # Its message waits among the dead letters until the job is put again.
            raise ValueError(f"job {execution.job_id!r} of {execution.tenant!r} is {job.note}")
        return Loaded(held.delivery, execution, job)

    def _load_together(self, batch: Sequence[Progress]) -> list[Progress]:
        """Read the jobs that one request brings."""
        held = [item.execution for item in batch if isinstance(item, Held)]
        jobs = self.due_jobs.load_together(held) if len(held) > 1 else {}
        loaded: list[Progress] = []
        for item in batch:
            if isinstance(item, Held) and (job := jobs.get((item.execution.tenant, item.execution.job_id))):
                loaded.append(Loaded(item.delivery, item.execution, job))
            else:
                loaded.append(item)
        return loaded

    def _admit(self, loaded: Loaded, now: float) -> Admitted | Decided | Report:
        message_id = loaded.delivery.message.message_id
        rules = self.tenants.rules(loaded.execution.tenant, now)
        retention_s = _kept_s(rules)
        execution, job = self._to_call(loaded, rules, now)
        if isinstance(job, Skip | Wait):
            return Decided(Claim(execution, message_id, now, now, retention_s=retention_s), loaded.job, job)
        if execution.visible_at > loaded.execution.visible_at and execution.visible_at > now:
            self.recorder.postponed.send(execution)
            return Report("sent_on", execution)
        kind = self.kinds[job.spec.target["kind"]]
        callback = self._callback_of(job, execution)
        is_awaited = returns_result(job.spec.target) or callback is not None
        durable = None
        if job.spec.target.get("durable"):
            from executor.durable import name_of  # most executors never need it

            durable = Durable.of(execution.attempt, name_of(self.stage, execution), job.spec.target)
        timeout_s = job.spec.timeout_s if is_awaited and not durable else EVENT_TIMEOUT_S
        claim = Claim(
            execution,
            message_id,
            now,
            _lease_until(timeout_s, now),
            retention_s=retention_s,
            callback=callback,
            concurrency_key=job.spec.concurrency.key if job.spec.concurrency else "",
            durable=durable,
        )
        return Admitted(loaded.delivery, claim, job, kind, timeout_s, is_awaited)

    def _admit_all(self, batch: Sequence[Progress]) -> list[Progress]:
        """Decide about those that need no request of their own, and whose tenants' rules are known."""
        now = self.clock.now()
        plain = [item for item in batch if isinstance(item, Loaded) and _is_plain(item, now)]
        known = (
            self.tenants.learn({loaded.execution.tenant for loaded in plain}, now) if len(plain) > 1 else ()
        )
        admitted: dict[int, Progress] = {}
        for loaded in plain:
            if loaded.execution.tenant in known:
                with telemetry.tolerated("not admitted together: its own thread tries again"):
                    admitted[id(loaded)] = self._admit(loaded, now)
        return [admitted.get(id(item), item) for item in batch]

    def _callback_of(self, job: Job, execution: Execution) -> Callback | None:
        """What the attempt's target needs to call back; None: its answer is the end."""
        if job.spec.callback_timeout_s is None:
            return None
        url = f"{self.api_url}/v1/runs/{execution.execution_id}/callback"
        return Callback(url, job.spec.callback_timeout_s)

    def _to_call(
        self, loaded: Loaded, rules: TenantRules | None, now: float
    ) -> tuple[Execution, Job | Skip | Wait]:
        """The execution as the present schedule has it, and the job to call, or what becomes of the execution."""
        execution, job = loaded.execution, loaded.job
        skip = admit_tenant(rules, job, self.tenants.holds(now)) or admit(execution, job)
        wait = put_off(execution, job, skip, now) if skip else None
        if job is None or isinstance(wait, Skip):
            return execution, wait if isinstance(wait, Skip) else Skip("deleted", "")
        if not job.schedule.named_calendars:
            return self._planned(execution, job, wait, now)
        with self.turns.of(job.tenant) as turn:
            if turn is None:
                return execution, Wait(int(now) + _AFTER_TURN_S, NO_TURN.error)
            return self._planned(execution, job, wait, now, turn.calendars)

    def _planned(
        self,
        execution: Execution,
        job: Job,
        wait: Wait | None,
        now: float,
        calendars: RememberedCalendars | None = None,
    ) -> tuple[Execution, Job | Skip | Wait]:
        planned = self.due_jobs.as_planned_now(execution, job, calendars)
        if isinstance(planned, Skip):
            return execution, self.due_jobs.excluded(execution, job, calendars) or planned
        if planned.due_at > now and not wait:
            return planned, job
        return planned, (
            too_late(planned, job, now)
            or wait
            or self.due_jobs.excluded(planned, job, calendars)
            or self._in_turn(planned, job, now)
            or self.due_jobs.overridden(planned, job, calendars)
        )

    def _in_turn(self, execution: Execution, job: Job, now: float) -> Wait | None:
        """What comes late, such as after an outage, waits for a second that no other late run of the job has."""
        if execution.attempt > 1 or execution.trigger != SCHEDULE or not _is_late(execution, now):
            return None
        if self.runs.get(execution):  # it has waited, or was claimed
            return None
        at = self.recorder.throttled.turn_at(job, execution)
        if at is None or at <= now:
            return None
        return Wait(at, "it is late, and other late runs of the job are before it", is_told=False)

    def _claim(self, attempt: Admitted) -> Claimed | Decided:
        """Claim one attempt, with its permits: take a dead executor's attempt over, or report the conflict."""
        now = self.clock.now()
        lease_until = _lease_until(attempt.timeout_s, now)
        permits = self.permits.take(attempt.job, attempt.claim.execution, lease_until, now)
        at_most_once = attempt.job.spec.on_crash == "fail"
        if isinstance(permits, Run):
            no_permits = "other runs have its permits"
            conflict = Conflict(permits, no_takeover=no_permits, permanent=at_most_once)
            return Decided(attempt.claim, attempt.job, conflict)
        if isinstance(permits, Skip | Wait):
            return Decided(attempt.claim, attempt.job, permits)
        if permits:
            attempt = replace(attempt, claim=replace(attempt.claim, permits=permits))
        claimed = self._with_claim(attempt, self.clock.now(), self.call_delay)
        refusal = self.runs.claim(claimed.claim, attempt.status)
        if refusal is None:
            return claimed
        conflict = Conflict(refusal.run, takes_over=True)
        if at_most_once:
            conflict = Conflict(refusal.run, no_takeover="the job's on_crash is fail", permanent=True)
        if isinstance(dead := decide(conflict, claimed.claim, attempt.claim.started_at), TakeOver):
            refusal = self.runs.take_over(claimed.claim, attempt.status, dead.record)
            if refusal is None:
                return claimed
            conflict = Conflict(refusal.run)
        self.permits.give_back(permits)
        return Decided(claimed.claim, attempt.job, conflict)

    def _claim_together(self, batch: Sequence[Progress]) -> list[Progress]:
        """Claim those that a joint request certainly claims. Every other attempt claims by itself, in its own thread.

        If it is not certain that a claim was written, the attempt's own request finds out by the same claim.
        """
        # One attempt of each execution: a copy of a message claims by itself.
        attempts: dict[str, Admitted] = {}
        for item in batch:
            if isinstance(item, Admitted):
                attempts.setdefault(item.claim.execution.execution_id, item)
        if len(attempts) < 2:
            return list(batch)
        now = self.clock.now()
        claimed = [self._with_claim(attempt, now, self.joint_call_delay) for attempt in attempts.values()]
        certain = [False] * len(claimed)
        with telemetry.tolerated("not claimed together: each claims by itself"):
            certain = self.runs.claim_together([(item.claim, item.attempt.status) for item in claimed])
        done = {
            id(item.attempt): item if is_certain else replace(item.attempt, claim=item.claim)
            for item, is_certain in zip(claimed, certain, strict=True)
        }
        return [done.get(id(item), item) for item in batch]

    def _with_claim(self, attempt: Admitted, now: float, delay: CallDelay) -> Claimed:
        """The attempt with a claim that is sent now, from when its lease counts.

        A claim that was sent before may have been written: then that lease stays.
        """
        # A copy: other threads add to it.
        bits = sum(1 << position for position in attempt.delivery.handed_over.copy())
        is_first = attempt.claim.called_at is None
        lease_until = _lease_until(attempt.timeout_s, now) if is_first else attempt.claim.lease_until
        claim = replace(attempt.claim, lease_until=lease_until, called_at=now + delay.s, handed_over=bits)
        return Claimed(attempt, claim, now, delay)

    def _record(self, item: Called | Decided) -> Report:
        job = item.job if isinstance(item, Decided) else item.claimed.attempt.job
        if self.note is None:
            return self.recorder.record(item.claim, job, item.verdict)
        from_at = self.clock.now()
        report = self.recorder.record(item.claim, job, item.verdict)
        self.note(item, report, from_at)
        return report


def _or_each_alone(
    stage: Callable[[Sequence[Progress]], list[Progress]], progress: list[Progress]
) -> list[Progress]:
    with telemetry.tolerated("stage not taken together: each takes it by itself", stage=stage.__name__):
        return stage(progress)
    return progress


def _lease_until(timeout_s: float, now: float) -> float:
    """When the lease of an attempt ends whose claim is sent now."""
    return now + timeout_s + _LEASE_MARGIN_S


def _is_late(execution: Execution, now: float) -> bool:
    return now - execution.due_at > MISSED_AFTER_S


def _is_plain(loaded: Loaded, now: float) -> bool:
    """Whether the run has no record before its claim, and no other run, person or calendar can prevent it."""
    execution, job = loaded.execution, loaded.job
    return (
        job is not None
        and execution.trigger == SCHEDULE
        and execution.schedule_revision == job.schedule_revision
        and execution.attempt == 1
        and not execution.not_before_at
        and not _is_late(execution, now)
        and job.spec.overlap == "allow"
        and job.spec.concurrency is None
        and not job.schedule.named_calendars
    )


def _kept_s(rules: TenantRules | None) -> int:
    """Write nothing for a deleted tenant: nobody could read it, and its name may be used again."""
    return rules.run_retention_s if rules and rules.state in (ACTIVE, SUSPENDED) else DAY_S


def _failure_streak(deployment: Deployment) -> FailureStreak:
    from executor.failure_streak import FailureStreak

    return FailureStreak(deployment.stored_jobs, deployment.tables.runs, deployment.events)


def _stops(deployment: Deployment) -> Stops:
    from executor.stops import Stops

    return Stops(deployment.rules, deployment.clock)


def _throttled(deployment: Deployment) -> ThrottledRetries:
    from executor.throttled import ThrottledRetries

    return ThrottledRetries(deployment.tables.runs, deployment.clock)


def _durables(deployment: Deployment) -> DurableExecutions:
    from executor.durable import DurableExecutions

    return DurableExecutions(deployment.rules, deployment.clock)


def _secrets(deployment: Deployment) -> JobSecrets:
    from common.tenants.secrets import SecretValues
    from executor.secrets import JobSecrets

    key = deployment.secret_key
    return JobSecrets(SecretValues(deployment.tables.tenants, key) if key else None, deployment.clock)
