"""Whether a job's calendars exclude the date of an execution, checked again when it is due."""

from __future__ import annotations

from common.jobs.job import Job
from common.planning.execution import SCHEDULE, Execution
from common.runs import states
from common.storage.table import Table
from executor.admission import Skip


def excluded(jobs: Table, execution: Execution, job: Job) -> Skip | None:
    """None if it may run. Reads each calendar that the job names.

    A date stored a minute ago therefore stops executions that were planned before. Later attempts of a started run are
    not checked, nor are runs that a person starts.
    """
    if not job.schedule.calendars or execution.trigger != SCHEDULE or execution.attempt > 1:
        return None
    # Most jobs name no calendar, and their executions compute no times.
    from common.jobs.calendars import Calendars, MissingCalendar
    from common.timing.fires import local_date

    date = local_date(job.schedule, execution.fire_at)
    try:
        dates = Calendars(jobs).excluded(job.tenant, job.schedule.calendars)
    except MissingCalendar as missing:
        return Skip(states.INVALID, str(missing))
    if date in dates:
        return Skip(states.EXCLUDED, f"{date} is in a calendar that the job names")
    return None
