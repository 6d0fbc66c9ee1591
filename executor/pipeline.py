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
from common.jobs.spec import returns_result
from common.limits import MAX_HOLD_S
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
from executor.admission import Skip, Wait
from executor.calling import Admitted, CallDelay, Called, Calls, Claimed, Payloads, Sending, Turns
from executor.conflict import Conflict, TakeOver, decide
from executor.due_jobs import DueJobs, is_late
from executor.permits import Permits
from executor.recorder import Recorder, Report
from executor.run_end import DeadLetters, RunEnd
from executor.targets import Kind
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS

if TYPE_CHECKING:
    from executor.failure_streak import FailureStreak
    from executor.secrets import JobSecrets
    from executor.started import Started
    from executor.throttled import ThrottledRetries

# The time between claim and call is short.
_LEASE_MARGIN_S: Final = 5
# Sending an event takes milliseconds.
EVENT_TIMEOUT_S: Final = 10
# What is claimed and not yet called waits for the lease if the executor dies. A later claim notes earlier calls.
CLAIMS_AT_ONCE: Final = 10


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the executions queue, with the receipt handle and the delivery count of SQS."""

    message_id: str
    body: str
    receipt: str = ""
    receives: int = 1


@dataclass(frozen=True, slots=True)
class Delivery:
    """One execution that a message delivers. `body` is the message that it would have alone.

    `execution` is None if the body cannot be read. `received_at` is when the batch arrived. `position`: in its message.
    `handed_over`: the positions of the message's executions that were handed over, as far as this process knows.
    """

    message: Message
    body: str
    execution: Execution | None
    received_at: float
    position: int = 0
    handed_over: set[int] = field(default_factory=set, compare=False)

    @property
    def is_in_pack(self) -> bool:
        """Whether the message also delivers other executions."""
        return self.body != self.message.body

    @property
    def is_early(self) -> bool:
        """Whether the execution is due too late to be held."""
        return self.execution is not None and self.execution.visible_at - self.received_at > MAX_HOLD_S


@dataclass(frozen=True, slots=True)
class Held:
    """An execution that is due, and its delivery."""

    delivery: Delivery
    execution: Execution


@dataclass(frozen=True, slots=True)
class Loaded:
    """A due execution with its current job. None: the job does not exist."""

    delivery: Delivery
    execution: Execution
    job: Job | None


@dataclass(frozen=True, slots=True)
class Decided:
    """An attempt that is not made, and why. `claim` is the claim that would have been written."""

    claim: Claim
    job: Job | None
    verdict: Skip | Wait | Conflict


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
    calls: Calls
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
        turns, payloads = Turns(jobs), Payloads(on_first_use(lambda: deployment.texts))
        throttled = on_first_use(lambda: _throttled(deployment))
        due_jobs = DueJobs(jobs, rules, turns, runs, throttled, clock)
        permits = Permits(Holders(deployment.tables.runs, queue, clock))
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
        recorder = Recorder(
            runs=runs,
            permits=permits,
            run_end=run_end,
            queue=queue,
            postponed=on_first_use(lambda: deployment.postponed),
            started=on_first_use(lambda: _started(deployment)),
            throttled=throttled,
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
            calls=Calls(
                clock, PAYLOAD_FORMATS, payloads.of, on_first_use(lambda: _secrets(deployment)), turns
            ),
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
                return self.calls.begin(progress).finish()
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
        execution, job = self.due_jobs.to_call(loaded.execution, loaded.job, rules, now)
        if isinstance(job, Skip | Wait):
            return Decided(Claim(execution, message_id, now, now, retention_s=retention_s), loaded.job, job)
        if execution is not loaded.execution and loaded.execution.visible_at < execution.visible_at > now:
            self.recorder.postponed.send(execution)
            return Report("sent_on", execution)
        kind = self.kinds[job.spec.target["kind"]]
        callback = self._callback_of(job, execution)
        is_awaited = returns_result(job.spec.target) or callback is not None
        durable = None
        if job.spec.target.get("durable"):
            from executor.started import name_of  # most executors never need it

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
        return Admitted(loaded.delivery.handed_over, claim, job, kind, timeout_s, is_awaited)

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
        bits = sum(1 << position for position in attempt.handed_over.copy())
        is_first = attempt.claim.called_at is None
        lease_until = _lease_until(attempt.timeout_s, now) if is_first else attempt.claim.lease_until
        claim = replace(attempt.claim, lease_until=lease_until, called_at=now + delay.s, handed_over=bits)
        return Claimed(attempt, claim, now, delay)

    def _record(self, item: Called | Decided) -> Report:
        from_at = self.clock.now()
        if isinstance(item, Called):
            report = self.recorder.called(item)
        else:
            report = self.recorder.not_called(item.claim, item.job, item.verdict)
        if self.note:
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


def _is_plain(loaded: Loaded, now: float) -> bool:
    """Whether the run has no record before its claim, and no other run, person or calendar can prevent it."""
    execution, job = loaded.execution, loaded.job
    return (
        job is not None
        and execution.trigger == SCHEDULE
        and execution.schedule_revision == job.schedule_revision
        and execution.attempt == 1
        and not execution.not_before_at
        and not is_late(execution, now)
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


def _throttled(deployment: Deployment) -> ThrottledRetries:
    from executor.throttled import ThrottledRetries

    return ThrottledRetries(deployment.tables.runs, deployment.clock)


def _started(deployment: Deployment) -> Started:
    from executor.started import Started

    return Started(deployment.rules, deployment.clock)


def _secrets(deployment: Deployment) -> JobSecrets:
    from common.tenants.secrets import SecretValues
    from executor.secrets import JobSecrets

    key = deployment.secret_key
    return JobSecrets(SecretValues(deployment.tables.tenants, key) if key else None, deployment.clock)
