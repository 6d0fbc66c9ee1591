"""One execution from its message to its record: parse → hold → load → admit → claim → call → record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from common.clock import Clock
from common.jobs.job import Job
from common.jobs.payload_formats import PayloadFormats
from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.states import DISPATCHED, QUEUED, RETRYING, RUNNING
from common.storage import outgoing
from common.storage.steps import Steps, at_once
from common.storage.wire import Item
from common.tenants.rules import TenantRules
from common.tenants.rules_cache import RulesOf
from common.tenants.states import ACTIVE, SUSPENDED
from common.timing.instants import DAY_S
from executor.admission import Skip, admit, admit_tenant
from executor.asked import as_asked
from executor.calling import call
from executor.due_jobs import DueJobs, Jobs
from executor.exclusions import excluded
from executor.lead import Lead
from executor.locks import OverlapPolicy
from executor.overlap import Wait
from executor.recorder import Dispatched, Lost, Recorder, Report
from executor.targets import Kind

# The time between claim and call is short.
_LEASE_MARGIN_S: Final = 5
# Sending an event takes milliseconds.
EVENT_TIMEOUT_S: Final = 10
_NO_JOBS: Final[Jobs] = {}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the executions queue, or the part of a pack that is one execution."""

    message_id: str
    body: str
    # The receipt handle and the delivery count of SQS.
    receipt: str = ""
    receives: int = 1


@dataclass(frozen=True, slots=True)
class Loaded:
    """An execution that is due, with its current job and tenant's rules; not yet claimed."""

    claim: Claim
    job: Job | None
    rules: TenantRules | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that may be made: its claim, which is written or to be written, and the target's kind."""

    claim: Claim
    job: Job
    kind: Kind
    timeout_s: float
    is_awaited: bool
    is_claimed: bool = False
    # When its claim was sent.
    claimed_at: float = 0.0

    def claimed(self, at: float, lead_s: float) -> Attempt:
        """With a claim that is sent now, and foresees that the call goes out after `lead_s`."""
        return replace(self, claimed_at=at, claim=replace(self.claim, called_at=at + lead_s))

    @property
    def is_ready(self) -> bool:
        """Whether nothing but its call is left to do, which waits for no result and has steps."""
        return self.is_claimed and not self.is_awaited and self.kind.in_steps is not None

    @property
    def status(self) -> str:
        """Of the run while the attempt is made."""
        return RUNNING if self.is_awaited else DISPATCHED


_NONE_BEGUN: Final[Mapping[Message, Attempt]] = {}


@dataclass(frozen=True, slots=True)
class Executor:
    """Stage two. `kinds` are the supported kinds of target.

    `tenants` returns each tenant's rules.
    """

    due_jobs: DueJobs
    runs: Runs
    overlap: OverlapPolicy
    recorder: Recorder
    clock: Clock
    kinds: Mapping[str, Kind]
    payload_formats: PayloadFormats
    tenants: RulesOf
    # The times from a single claim to its call, and from a claim together with others.
    lead: Lead = field(default_factory=Lead)
    lead_together: Lead = field(default_factory=Lead)

    def execute(
        self,
        message: Message,
        jobs: Jobs = _NO_JOBS,
        came_at: float | None = None,
        leases: dict[Message, float] | None = None,
        begun: Mapping[Message, Attempt] = _NONE_BEGUN,
    ) -> Report:
        """Process one message completely. A job that is not among `jobs` is read. `came_at` is now by default.

        The lease of the attempt is added to `leases`. An attempt among `begun` is admitted, and may be claimed.

        Raises:
            UnreadableMessage: it is not an execution; it will end in the dead-letter queue.
            StillRunning: it must be delivered again later.
        """
        if attempt := begun.get(message):
            return at_once(self.make(attempt))
        execution = Execution.decode(message.body)
        if not self.due_jobs.hold(execution, self.clock.now() if came_at is None else came_at):
            return Report("sent_on", execution)
        loaded = self._load(execution, message, jobs)
        admitted = self._admit(loaded)
        if isinstance(admitted, Skip):
            return self.recorder.record(loaded.claim, loaded.job, admitted)
        if leases is not None:
            leases[message] = admitted.claim.lease_until
        return at_once(self.make(admitted))

    def admit(self, message: Message, execution: Execution, jobs: Jobs) -> Skip | Attempt:
        """The attempt of an execution that is due now, or why it is not made."""
        return self._admit(self._load(execution, message, jobs))

    def claim_together(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Claim these first attempts in few requests. Those that are certainly claimed say so."""
        now = self.clock.now()
        claimed = [attempt.claimed(now, self.lead_together.s) for attempt in attempts]
        certain = self.runs.claim_together([(attempt.claim, attempt.status) for attempt in claimed])
        return [replace(attempt, is_claimed=won) for attempt, won in zip(claimed, certain, strict=True)]

    def is_unclaimed(self, execution: Execution) -> bool:
        """Whether no message has claimed this attempt."""
        record = self.runs.get(execution)
        return record is None or _is_to_come(execution, record)

    def _load(self, execution: Execution, message: Message, jobs: Jobs) -> Loaded:
        name = execution.tenant, execution.job_id
        job = jobs[name] if name in jobs else self.due_jobs.load(execution)
        now = self.clock.now()
        rules = self.tenants.rules(execution.tenant, now)
        return Loaded(Claim(execution, message.message_id, now, now, kept_s=_kept_s(rules)), job, rules)

    def _admit(self, loaded: Loaded) -> Skip | Attempt:
        claim, job, rules = loaded.claim, loaded.job, loaded.rules
        execution, now = claim.execution, claim.started_at
        skip = admit_tenant(rules, job, self.tenants.holds(now)) or admit(execution, job, now)
        if skip or job is None:
            return skip or Skip("deleted", "")
        if skip := excluded(self.due_jobs.jobs, execution, job):
            return skip
        asked = as_asked(self.due_jobs.jobs, execution, job)
        if isinstance(asked, Skip):
            return asked
        job = asked
        kind = self.kinds[job.target["kind"]]
        is_awaited = kind.is_awaited(job.target)
        timeout_s = job.timeout_s if is_awaited else EVENT_TIMEOUT_S
        leased = replace(claim, lease_until=now + timeout_s + _LEASE_MARGIN_S)
        return Attempt(leased, job, kind, timeout_s, is_awaited)

    def _take_turn(self, attempt: Attempt) -> Skip | Wait | Lost | None:
        """None if no other run of the job prevents it."""
        claim, job = attempt.claim, attempt.job
        if (lock := self.overlap.take(job, claim)) is None:
            return None
        record = self.runs.get(claim.execution)
        if record is not None and not _is_to_come(claim.execution, record):
            return Lost(record, no_takeover="another run has the job's lock")
        return self.overlap.wait(job, claim.execution, lock, claim.started_at)

    def _claim(self, attempt: Attempt) -> Lost | None:
        once = attempt.job.on_crash == "fail"
        record = self.runs.claim(attempt.claim, attempt.status, not once)
        if record is None:
            return None
        return Lost(record, no_takeover="the job's on_crash is fail" if once else "", permanent=once)

    def make(self, attempt: Attempt) -> Steps[Report]:
        """Claim the attempt if it is not, make it and record it. Raises StillRunning.

        The first step of one that `is_ready` sends its call, if that does not have to wait.
        """
        lead = self.lead_together if attempt.is_claimed else self.lead
        if not attempt.is_claimed:
            if held := self._take_turn(attempt):
                return self.recorder.record(attempt.claim, attempt.job, held)
            attempt = attempt.claimed(self.clock.now(), lead.s)
            if lost := self._claim(attempt):
                return self.recorder.record(attempt.claim, attempt.job, lost)
        outcome, called_at = yield from self._call(attempt)
        lead.saw(called_at - attempt.claimed_at)
        verdict = Dispatched() if outcome.ok and not attempt.is_awaited else outcome
        if not isinstance(verdict, Dispatched) or attempt.job.after_completion != "keep":
            yield None  # what follows takes requests
        return self.recorder.record(replace(attempt.claim, called_at=called_at), attempt.job, verdict)

    def _call(self, attempt: Attempt) -> Steps[tuple[Outcome, float]]:
        """The outcome, and when the call went out."""
        began_at = self.clock.now()
        outgoing.forget()
        outcome = yield from call(
            attempt.kind, attempt.job, attempt.claim, attempt.timeout_s, self.payload_formats
        )
        ago_s = outgoing.went_s_ago()
        return outcome, began_at if ago_s is None else self.clock.now() - ago_s


def _kept_s(rules: TenantRules | None) -> int:
    """Write nothing for a deleted tenant: nobody could read it, and its name may be used again."""
    return rules.runs_kept_s if rules and rules.state in (ACTIVE, SUSPENDED) else DAY_S


def _is_to_come(execution: Execution, record: Item) -> bool:
    """Whether the record waits for this attempt."""
    if execution.attempt == 1:
        return bool(record["status"] == QUEUED)
    return bool(record["status"] == RETRYING and record["attempt"] == execution.attempt - 1)
