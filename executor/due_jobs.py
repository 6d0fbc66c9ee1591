"""Waits until an execution is due. Reads its job with the calendars, the manual override and the payload."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from common.cache import FairCache
from common.clock import Clock
from common.jobs.former_jobs import JobName, load_jobs
from common.jobs.job import Job
from common.jobs.spec import PAYLOAD_PATCH
from common.jobs.stored_text import StoredText
from common.planning.execution import BACKFILL_PREFIX, MANUAL_PREFIX, OWN_PAYLOAD_PREFIX, SCHEDULE, Execution
from common.runs import states
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import DAMAGE
from executor.admission import Skip

if TYPE_CHECKING:
    from common.jobs.calendars import RememberedCalendars
    from common.jobs.large_texts import LargeTexts

# Of the memory of 512 MB.
MAX_KEPT_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class DueJobs:
    """Waits for the second of executions, and reads their jobs, calendars and manual overrides."""

    jobs: Table
    clock: Clock

    def wait_until(self, due_at: int) -> None:
        """Return when this second has begun."""
        # In a loop: a sleep may end early, and a run must never start early.
        while (early_s := due_at - self.clock.now()) > 0:
            self.clock.sleep(early_s)

    def load(self, execution: Execution) -> Job | None:
        """The job of this execution, which may be corrupt; None if it never existed."""
        name = execution.tenant, execution.job_id
        return load_jobs(self.jobs, [name]).get(name)

    def load_together(self, executions: Sequence[Execution]) -> Mapping[JobName, Job]:
        """The jobs of these executions that one request brings.

        It leaves out jobs that are throttled, cannot be read, or do not exist: `load` finds out which.
        """
        names = dict.fromkeys((execution.tenant, execution.job_id) for execution in executions)
        jobs: dict[JobName, Job] = {}
        for item in self.jobs.get_some([keys.job(*name) for name in names]):
            with suppress(*DAMAGE):
                job = Job.from_item(item)
                jobs[job.tenant, job.job_id] = job
        return jobs

    def as_planned_now(
        self, execution: Execution, job: Job, calendars: RememberedCalendars | None = None
    ) -> Execution | Skip:
        """The execution as the present schedule has it; the same if this schedule planned it, which costs nothing."""
        if execution.trigger != SCHEDULE or execution.schedule_revision == job.schedule_revision:
            return execution
        from common.jobs.calendars import Calendars, MissingCalendar
        from common.jobs.revisions import End, as_planned_now

        try:
            excluded = (calendars or Calendars(self.jobs)).excluded(job.tenant, job.schedule)
        except MissingCalendar as missing:
            return Skip(states.INVALID, str(missing))
        planned = as_planned_now(execution, job, excluded)
        return Skip(*planned) if isinstance(planned, End) else planned

    def excluded(
        self, execution: Execution, job: Job, calendars: RememberedCalendars | None = None
    ) -> Skip | None:
        """Why the calendars that the job names exclude the execution's date. None if they do not.

        The date is checked again when the execution is due: a date stored a minute ago stops executions that were
        planned before. Later attempts of a started run are not checked, nor are runs that a person starts.
        """
        if not job.schedule.named_calendars or execution.trigger != SCHEDULE or execution.attempt > 1:
            return None
        # Most jobs name no calendar, and their executions compute no times.
        from common.jobs.calendars import Calendars, MissingCalendar
        from common.timing.excluded_days import of_parts
        from common.timing.fires import first_firing, local_date

        at = execution.fire_at
        try:
            excluded = (calendars or Calendars(self.jobs)).excluded(job.tenant, job.schedule)
        except MissingCalendar as missing:
            return Skip(states.INVALID, str(missing))
        for part, days in of_parts(job.schedule, excluded):
            date = local_date(part, at)
            if date in days and first_firing(job.schedule, at, excluded=excluded) is None:
                or_outside = ", or in none that it includes" if part.include_calendars else ""
                return Skip(states.EXCLUDED, f"{date} is in a calendar that the job names{or_outside}")
        return None

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
        from common.jobs.calendars import Calendars, MissingCalendar
        from common.timing.excluded_days import NO_DAYS, Excluded
        from common.timing.fires import first_firing

        excluded: Excluded = NO_DAYS
        if job.schedule.named_calendars:
            with suppress(MissingCalendar):
                excluded = (calendars or Calendars(self.jobs)).excluded(job.tenant, job.schedule)
        place = first_firing(job.schedule, execution.fire_at, excluded=excluded)
        return job if place is None else replace(job, spec=replace(job.spec, schedule=schedules[place]))

    def overridden(
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


class Payloads:
    """Reads and keeps payloads."""

    def __init__(self, texts: LargeTexts, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._texts = texts
        self._kept: FairCache[str] = FairCache(most_bytes, lambda text: len(text.encode()))

    def of(self, job: Job) -> str:
        """The text of the job's payload, with the patch of the schedule that fired.

        Raises MissingText, Busy, and whatever else a read raises.
        """
        text = self._stored(job)
        if (patch := job.spec.schedule.get(PAYLOAD_PATCH)) is None:
            return text
        from common.jobs.placeholders import patched_text  # few jobs have a patch

        # One for all executions of its fire times: of a large payload it takes tens of milliseconds.
        key = (job.tenant, job.job_id, job.payload.sha256, json.dumps(patch))
        return self._kept.get(key, job.tenant, lambda: patched_text(text, patch))

    def _stored(self, job: Job) -> str:
        payload = job.payload
        if payload.text is not None:
            return payload.text
        name = (job.tenant, job.job_id, payload.sha256)
        return self._kept.get(name, job.tenant, lambda: self._texts.texts(*name[:2], [payload])[0])
