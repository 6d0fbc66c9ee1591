"""Waits until an execution is due, reads its job, and finds what the execution does now, or why it does nothing.

Its calendars, its manual override and the turns of late runs are read only for jobs that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from common.clock import Clock
from common.jobs.job import Job
from common.jobs.stored_text import StoredText
from common.planning.execution import BACKFILL_PREFIX, MANUAL_PREFIX, OWN_PAYLOAD_PREFIX, SCHEDULE, Execution
from common.runs import states
from common.runs.records import Runs
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import DAMAGE
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import TenantRules
from common.timing.windows import MISSED_AFTER_S
from executor.admission import Skip, Wait, admit, admit_tenant, put_off, too_late
from executor.calling import NO_TURN, Turns

if TYPE_CHECKING:
    from common.jobs.calendars import RememberedCalendars
    from executor.throttled import ThrottledRetries

# Most batches are over by then.
_AFTER_TURN_S: Final = 15


@dataclass(frozen=True, slots=True)
class DueJobs:
    """Waits for the second of executions, and reads their jobs, calendars and manual overrides."""

    jobs: Table
    tenants: KnownTenants
    turns: Turns
    runs: Runs
    throttled: ThrottledRetries
    clock: Clock

    def wait_until(self, due_at: int) -> None:
        """Return when this second has begun."""
        # In a loop: a sleep may end early, and a run must never start early.
        while (early_s := due_at - self.clock.now()) > 0:
            self.clock.sleep(early_s)

    def load(self, execution: Execution) -> Job | None:
        """The job of this execution, which may be corrupt; None if it never existed."""
        from common.jobs.corrupt import stored_job  # executors rarely read a job alone

        name = execution.tenant, execution.job_id
        if item := self.jobs.get(keys.job(*name)):
            return stored_job(item)
        from common.jobs.former_jobs import former_job

        former = self.jobs.get(keys.former_job(*name))
        return former_job(former) if former else None

    def load_together(self, executions: Sequence[Execution]) -> Mapping[tuple[str, str], Job]:
        """The jobs of these executions that one request brings.

        It leaves out jobs that are throttled, cannot be read, or do not exist: `load` finds out which.
        """
        names = dict.fromkeys((execution.tenant, execution.job_id) for execution in executions)
        jobs: dict[tuple[str, str], Job] = {}
        for item in self.jobs.get_some([keys.job(*name) for name in names]):
            with suppress(*DAMAGE):
                job = Job.from_item(item)
                jobs[job.tenant, job.job_id] = job
        return jobs

    def to_call(
        self, execution: Execution, job: Job | None, rules: TenantRules | None, now: float
    ) -> tuple[Execution, Job | Skip | Wait]:
        """The execution as the present schedule has it, and the job to call, or what becomes of the execution."""
        skip = admit_tenant(rules, job, self.tenants.blocks(now)) or admit(execution, job)
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
        """As `to_call`. `calendars`: None if the job names none."""
        planned = _as_planned_now(execution, job, calendars)
        if isinstance(planned, Skip):
            return execution, (calendars and _excluded(execution, job, calendars)) or planned
        if planned.due_at > now and not wait:
            return planned, job
        return planned, (
            too_late(planned, job, now)
            or wait
            or (calendars and _excluded(planned, job, calendars))
            or self._in_turn(planned, job, now)
            or self._overridden(planned, job, calendars)
        )

    def _in_turn(self, execution: Execution, job: Job, now: float) -> Wait | None:
        """What comes late, such as after an outage, waits for a second that no other late run of the job has."""
        if execution.attempt > 1 or execution.trigger != SCHEDULE or not is_late(execution, now):
            return None
        if self.runs.get(execution):  # it has waited, or was claimed
            return None
        at = self.throttled.turn_at(job, execution)
        if at is None or at <= now:
            return None
        return Wait(at, "it is late, and other late runs of the job are before it", is_told=False)

    def as_scheduled(
        self, execution: Execution, job: Job, calendars: RememberedCalendars | None = None
    ) -> Job:
        """The job with that one of its schedules that fired: the first in order, by the calendars of now.

        No schedule fired what a person starts. Nor does one if it has changed since: then no patch applies.
        """
        schedules = job.spec.schedule.get("schedules")
        if not schedules or execution.trigger_id.startswith((MANUAL_PREFIX, OWN_PAYLOAD_PREFIX)):
            return job
        # Most jobs have one schedule, and their executions compute no times.
        from common.jobs.calendars import MissingCalendar
        from common.timing.excluded_days import NO_DAYS, Excluded
        from common.timing.fires import first_firing

        excluded: Excluded = NO_DAYS
        if calendars:
            with suppress(MissingCalendar):
                excluded = calendars.excluded(job.tenant, job.schedule)
        place = first_firing(job.schedule, execution.fire_at, excluded=excluded)
        return job if place is None else replace(job, spec=replace(job.spec, schedule=schedules[place]))

    def _overridden(
        self, execution: Execution, job: Job, calendars: RememberedCalendars | None = None
    ) -> Job | Skip:
        """The job with what a person requested for this run: a payload of its own, or that its backfill ends.

        Scheduled runs cost no read.
        """
        tenant, job_id, trigger_id = execution.tenant, execution.job_id, execution.trigger_id
        if trigger_id.startswith(OWN_PAYLOAD_PREFIX):
            item = self.jobs.get(
                keys.asked_by_hand(tenant, job_id, trigger_id.removeprefix(OWN_PAYLOAD_PREFIX))
            )
            if item is None or "payload" not in item:
                return Skip(states.INVALID, "the payload of this run was kept for 30 days, and has expired")
            secrets = (*job.secrets, *item.get("secrets", ()))
            return replace(job, payload=StoredText(item["payload"]), secrets=secrets)
        if trigger_id.startswith(BACKFILL_PREFIX):
            item = self.jobs.get(keys.backfill(tenant, job_id, trigger_id.removeprefix(BACKFILL_PREFIX)))
            if item and item.get("cancelled_at"):
                return Skip(states.CANCELLED, "its backfill was cancelled")
        return self.as_scheduled(execution, job, calendars)


def _as_planned_now(
    execution: Execution, job: Job, calendars: RememberedCalendars | None
) -> Execution | Skip:
    """The execution as the present schedule has it; the same if this schedule planned it, which costs nothing."""
    if execution.trigger != SCHEDULE or execution.schedule_revision == job.schedule_revision:
        return execution
    from common.jobs.calendars import MissingCalendar
    from common.jobs.revisions import End, as_planned_now
    from common.timing.excluded_days import NO_DAYS

    try:
        excluded = calendars.excluded(job.tenant, job.schedule) if calendars else NO_DAYS
    except MissingCalendar as missing:
        return Skip(states.INVALID, str(missing))
    planned = as_planned_now(execution, job, excluded)
    return Skip(*planned) if isinstance(planned, End) else planned


def _excluded(execution: Execution, job: Job, calendars: RememberedCalendars) -> Skip | None:
    """Why the calendars that the job names exclude the execution's date. None if they do not.

    The date is checked again when the execution is due: a date stored a minute ago stops executions that were
    planned before. Later attempts of a started run are not checked, nor are runs that a person starts.
    """
    if execution.trigger != SCHEDULE or execution.attempt > 1:
        return None
    # Most jobs name no calendar, and their executions compute no times.
    from common.jobs.calendars import MissingCalendar
    from common.timing.excluded_days import of_parts
    from common.timing.fires import first_firing, local_date

    at = execution.fire_at
    try:
        excluded = calendars.excluded(job.tenant, job.schedule)
    except MissingCalendar as missing:
        return Skip(states.INVALID, str(missing))
    for part, days in of_parts(job.schedule, excluded):
        date = local_date(part, at)
        if date in days and first_firing(job.schedule, at, excluded=excluded) is None:
            or_outside = ", or in none that it includes" if part.include_calendars else ""
            return Skip(states.EXCLUDED, f"{date} is in a calendar that the job names{or_outside}")
    return None


def is_late(execution: Execution, now: float) -> bool:
    """Whether ticks no longer plan what was due then."""
    return now - execution.due_at > MISSED_AFTER_S
