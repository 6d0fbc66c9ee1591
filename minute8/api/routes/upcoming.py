"""The routes of what is coming: the next executions, and how many are due in each minute."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from common.clock import CpuBudget
from common.errors import InvalidInput
from common.history.next_fires import MAX_AHEAD_DAYS, Fires, KeyedJobs, PacedJobs, UpcomingPosition, proposal
from common.jobs.calendars import Calendars, MissingCalendar
from common.jobs.corrupt import readable
from common.jobs.job import ACTIVE
from common.planning.execution import job_key
from common.planning.platform_density import DensityPosition, PlatformDensity, check_position, count_step
from common.registration.job_warnings import catch_up_warnings
from common.storage import keys, table
from common.storage.bounded import JobId
from common.timing.density import MINUTE_S, crowded
from common.timing.durations import parse_instant
from common.timing.excluded_days import NO_DAYS, Excluded
from common.timing.fires import due_at
from common.timing.instants import DAY_S, rfc3339
from common.timing.schedule import Timing
from minute8.api.http.paging import INSTANT, bounds, read_cursor, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import A_THOUSAND_JOBS, CURSOR, Query, Response, Routes
from minute8.api.services import Services
from minute8.api.views import schedule_view

if TYPE_CHECKING:
    from common.history.job_directory import ListedJob
    from common.jobs.job import Job
    from common.preview.zone_releases import Moved
    from minute8.api.shapes.definitions import PreviewRequest

PAGE: Final = 100
MAX_PAGE: Final = 1_000
_HOUR_S: Final = 3_600
_TENANTS_SHOWN: Final = 10
_LIMIT: Final = Query(
    "limit",
    "How many at most.",
    {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE},
)
# Jobs of a page of clock changes.
MAX_JOBS: Final = 1_000
# The most timings whose fires one call compares with those of an earlier tzdata release.
MAX_COMPARED: Final = 50


def _between(default: str) -> Iterable[Query]:
    return (
        Query("from_at", "Only fire times at or after this; now unless given.", INSTANT),
        Query("until_at", f"Only fire times before this; {default} later unless given.", INSTANT),
    )


ROUTES = Routes()


@ROUTES.add(
    "GET",
    "/v1/upcoming",
    "read",
    response="UpcomingPage",
    query=(_LIMIT, CURSOR, *_between("a day")),
    weight=A_THOUSAND_JOBS,
)
def list_upcoming(services: Services, request: Request) -> Response:
    """The next executions of all jobs, the earliest fire time first.

    The executions of the next day by default, with spread, jitter and pace. A request reads the directory of jobs and
    no runs. Without `complete` there was no time for all jobs: some thousands with different schedules.
    """
    start, end = _span(request, DAY_S)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"upcoming:{start if 'from_at' in request.query else ''}:{request.query.get('until_at', '')}"
    after = read_cursor(request.tenant, list_name, request.query.get("cursor"), UpcomingPosition)
    fires, jobs = _fires(services, request)
    coming = fires.coming(jobs, max(start, after.at) if after else start, end)
    rest = (execution for execution in coming if after is None or execution[:2] > after)
    page = list(islice(rest, limit + 1))
    following = UpcomingPosition(*page[limit - 1][:2]) if len(page) > limit else None
    return Response(
        {
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "jobs_counted": fires.jobs,
            "complete": not fires.is_cut,
            "executions": [
                {
                    "job_id": execution.job_id,
                    "fire_at": rfc3339(execution.fire_at),
                    "due_at": rfc3339(execution.due_at),
                }
                for execution in page[:limit]
            ],
            "next_cursor": write_cursor(request.tenant, list_name, following),
        }
    )


def _fires(services: Services, request: Request) -> tuple[Fires, Sequence[ListedJob]]:
    """What computes fire times, and the tenant's jobs. Raises Busy while the directory of jobs is made."""
    jobs = services.directory.listed(request.tenant, request.now)
    return Fires.of(services.store.jobs, request.tenant, request.now), jobs


@ROUTES.add(
    "GET",
    "/v1/density",
    "read",
    response="TenantDensity",
    query=_between("a day"),
    weight=A_THOUSAND_JOBS,
)
def density(services: Services, request: Request) -> Response:
    """How many executions of all jobs are due in each minute, and which minutes are crowded.

    Counts by minute for a day by default. A crowded minute has ten executions, and three times the average or more;
    it names jobs that could move, and how. Without `complete` there was no time for all jobs.
    """
    start, end = _span(request, DAY_S)
    fires, jobs = _fires(services, request)
    counted = fires.density(jobs, start, end)
    full = crowded(counted.minutes, end - start)
    names = list({name for minute, _ in full for name in counted.named[minute]})
    loaded = services.store.load_all(request.tenant, names)
    proposals = {name: proposal(job) for name, job in loaded.items()}
    return Response(
        {
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "jobs_counted": fires.jobs,
            "complete": not fires.is_cut,
            **_density_view(counted.minutes),
            "paces": _paces_view(counted.paces),
            "concurrency": _keys_view(counted.concurrency),
            "crowded": [
                {
                    "minute_at": rfc3339(minute),
                    "executions": count,
                    "jobs": [
                        {"job_id": name, "proposal": proposals[name]}
                        for name in counted.named[minute]
                        if name in proposals
                    ],
                }
                for minute, count in full
            ],
        }
    )


@ROUTES.add(
    "GET",
    "/v1/density/minute",
    "read",
    response="MinuteDensity",
    query=(Query("minute_at", "An instant in the minute; now unless given.", INSTANT),),
    weight=A_THOUSAND_JOBS,
)
def density_of_minute(services: Services, request: Request) -> Response:
    """Which jobs are due in one minute, by second.

    The minute that holds the instant, up to two days ahead. All executions count; up to 1,000 are named. Without
    `complete` there was no time for all jobs.
    """
    text = request.query.get("minute_at", rfc3339(int(request.now)))
    minute = parse_instant(text, "minute_at") // MINUTE_S * MINUTE_S
    ahead_s = minute - request.now
    if not -MINUTE_S < ahead_s <= MAX_AHEAD_DAYS * DAY_S:
        raise InvalidInput(
            "minute_at",
            "is too far away",
            value=rfc3339(minute),
            accepted=f"a minute of the next {MAX_AHEAD_DAYS} days",
        )
    fires, jobs = _fires(services, request)
    executions = fires.minute(jobs, minute)
    names = {job.job_id: job.name for job in jobs}
    seconds = Counter(execution.due_at for execution in executions)
    return Response(
        {
            "minute_at": rfc3339(minute),
            "executions": len(executions),
            "jobs_counted": fires.jobs,
            "complete": not fires.is_cut,
            "seconds": [{"at": rfc3339(at), "executions": count} for at, count in sorted(seconds.items())],
            "jobs": [
                {"job_id": due.job_id, "name": names[due.job_id], "due_at": rfc3339(due.due_at)}
                for due in executions[:MAX_PAGE]
            ],
        }
    )


@ROUTES.add(
    "GET",
    "/v1/operator-density",
    "operator",
    response="PlatformDensity",
    query=(CURSOR, *_between("an hour")),
)
def density_of_platform(services: Services, request: Request) -> Response:
    """How many executions of all tenants are due in each minute; of a minute or less, in each second.

    Counts of an hour by default, from the entries that ticks read. Dates that calendars exclude are
    counted. The counts of pages add up.
    """
    start, end = _span(request, _HOUR_S)
    list_name = f"density:{request.query.get('from_at', '')}:{request.query.get('until_at', '')}"
    text = request.query.get("cursor")
    position = read_cursor(keys.OPERATORS, list_name, text, DensityPosition, check_position)
    density = PlatformDensity(max(start, math.ceil(request.now)), end)
    following = count_step(services.store.index, density, position or DensityPosition())
    next_cursor = write_cursor(keys.OPERATORS, list_name, following)
    return Response({"from_at": rfc3339(start), **_platform_view(density, next_cursor)})


def _platform_view(density: PlatformDensity, next_cursor: str | None) -> dict[str, Any]:
    minutes: Counter[int] = Counter()
    for at, count in density.counts.items():
        minutes[at - at % MINUTE_S] += count
    seconds = sorted(density.counts.items()) if density.is_by_second else None
    return {
        "until_at": rfc3339(density.end),
        "jobs_counted": density.jobs,
        "unreadable": density.unreadable,
        **_density_view(minutes),
        "seconds": seconds and [{"at": rfc3339(at), "executions": count} for at, count in seconds],
        "crowded": [
            {"minute_at": rfc3339(minute), "executions": count}
            for minute, count in crowded(minutes, density.end - density.start)
        ],
        "tenants": [
            {"tenant_id": tenant, "executions": count}
            for tenant, count in density.tenants.most_common(_TENANTS_SHOWN)
        ],
        "next_cursor": next_cursor,
    }


def _paces_view(paces: Mapping[str, PacedJobs]) -> list[dict[str, Any]]:
    loads = [
        {"key": key, "per_second": load.per_second, **load.forecast()._asdict()}
        for key, load in paces.items()
    ]
    return sorted(loads, key=lambda load: (-load["over"], -load["delayed"], load["key"]))


def _keys_view(keyed: Mapping[str, KeyedJobs]) -> list[dict[str, Any]]:
    loads = [
        {"key": key, "limit": jobs.limit, "executions": jobs.due.total(), "crowded": jobs.crowded}
        for key, jobs in keyed.items()
    ]
    return sorted(loads, key=lambda load: (-load["crowded"], load["key"]))


def _density_view(minutes: Mapping[int, int]) -> dict[str, Any]:
    return {
        "executions": sum(minutes.values()),
        "minutes": [
            {"minute_at": rfc3339(minute), "executions": count} for minute, count in sorted(minutes.items())
        ],
    }


def _span(request: Request, default_s: int) -> tuple[int, int]:
    """The requested range of fire times, from now on. Raises InvalidInput."""
    now = int(request.now)
    span = bounds(request.query)
    start = max(now, span.get("from_at", now))
    end = span.get("until_at", start + default_s)
    if end < now and not {"from_at", "cursor"} & request.query.keys():  # later pages may come after it
        raise InvalidInput(
            "until_at",
            "is before now, where the range begins",
            value=request.query["until_at"],
            accepted=f"{rfc3339(now)} or later",
        )
    if end - start > MAX_AHEAD_DAYS * DAY_S:
        raise InvalidInput(
            "until_at",
            "is too far from from_at",
            value=rfc3339(end),
            accepted=f"a range of up to {MAX_AHEAD_DAYS} days, from now on",
        )
    return start, max(start, end)


def after_job_id(request: Request, list_name: str) -> str:
    """The last job of the page before; empty at the beginning. Raises InvalidInput."""
    job_id: str | None = read_cursor(request.tenant, list_name, request.query.get("cursor"), JobId)
    return job_id or ""


def _active_jobs(services: Services, tenant: str, after_job: str) -> tuple[list[Job], str]:
    """The active ones of the next MAX_JOBS jobs, and the last one's id; empty if no job follows."""
    after = keys.job(tenant, after_job) if after_job else None
    query = table.Query(tenant, sk_prefix=keys.JOB_PREFIX, after=after, limit=MAX_JOBS + 1)
    items = list(services.store.jobs.query(query))
    jobs = readable(items[:MAX_JOBS])  # lists of jobs name those that cannot be read
    last_job = items[MAX_JOBS - 1]["sk"].removeprefix(keys.JOB_PREFIX) if len(items) > MAX_JOBS else ""
    return [job for job in jobs if job.state == ACTIVE], last_job


@ROUTES.add(
    "GET", "/v1/clock-changes", "read", response="ClockChangePage", query=(CURSOR,), weight=A_THOUSAND_JOBS
)
def list_clock_changes(services: Services, request: Request) -> Response:
    """The jobs that the next clock change of their time zones moves.

    Each job with the change and what it does to the fire times, in words. A request reads up to 1,000 jobs.
    """
    # Imported here: only routes that describe schedules need it.
    from common.preview.preview import clock_change_at, next_clock_change

    after = after_job_id(request, "clock-changes")
    jobs, after_job = _active_jobs(services, request.tenant, after)
    moved: list[tuple[Job, tuple[int, str]]] = []
    budget = CpuBudget()
    for number, job in enumerate(jobs):
        if number and budget.is_spent:
            after_job = jobs[number - 1].job_id
            break
        change = next_clock_change(job.schedule, int(request.now)) or clock_change_at(job.spec.schedule)
        if change and change[0] >= request.now:
            moved.append((job, change))
    return Response(
        {
            "moved": [
                {
                    "job_id": job.job_id,
                    # `at` is stored as an instant, without its zone.
                    "timezone": job.spec.schedule.get("timezone") or job.schedule.timezone,
                    "change_at": rfc3339(at),
                    "text": text,
                }
                for job, (at, text) in moved
            ],
            "next_cursor": write_cursor(request.tenant, "clock-changes", after_job or None),
        }
    )


@ROUTES.add(
    "GET",
    "/v1/tzdata-changes",
    "read",
    response="TzdataChangePage",
    query=(
        CURSOR,
        Query(
            "since",
            "An earlier tzdata release, such as 2026e; the one before the present one unless given.",
            {"type": "string", "minLength": 1, "maxLength": 10},
        ),
    ),
    weight=A_THOUSAND_JOBS,
)
def list_tzdata_changes(services: Services, request: Request) -> Response:
    """The jobs whose coming year an update of the time zone data changed.

    Compares the fire times of the coming year by two releases of the time zone data. A request reads up to 1,000
    jobs and compares 50 different timings.
    """
    # Imported here: no other route needs it.
    from common.preview.zone_releases import check_release, compared, moved
    from common.timing.zones import TZDATA_VERSION

    since = check_release(request.query.get("since"))
    list_name = f"tzdata-changes:{since}"
    jobs, after_job = _active_jobs(services, request.tenant, after_job_id(request, list_name))
    timings: set[Timing] = set()
    changes: list[tuple[Job, Moved]] = []
    budget = CpuBudget()
    for number, job in enumerate(jobs):
        timings.update(compared(job.schedule, since))
        if number and (len(timings) > MAX_COMPARED or budget.is_spent):
            after_job = jobs[number - 1].job_id
            break
        if change := moved(job.schedule, since, int(request.now)):
            changes.append((job, change))
    return Response(
        {
            "tzdata": TZDATA_VERSION,
            "since": since,
            "moved": [
                {
                    "job_id": job.job_id,
                    "timezone": job.schedule.timezone,
                    "before_at": rfc3339(change.before_at) if change.before_at is not None else None,
                    "after_at": rfc3339(change.after_at) if change.after_at is not None else None,
                }
                for job, change in changes
            ],
            "next_cursor": write_cursor(request.tenant, list_name, after_job or None),
        }
    )


@ROUTES.add("POST", "/v1/schedules/preview", "read", response="SchedulePreview")
def preview_schedule(services: Services, request: Request, body: PreviewRequest) -> Response:
    """When a schedule fires, in words, and what may surprise you about it.

    Nothing is stored. The schedule is validated as a job's: every problem is named with its field, its value and
    what would be accepted. One read of the tenant's rules, and one of each calendar that the schedule names. If a
    calendar is missing, none is taken out, and a warning says so.
    """
    # Imported here: no other route describes schedules in words.
    from common.preview.preview import first_of_hours, read_schedule
    from common.preview.preview import preview as look_ahead

    key = job_key(request.tenant, body.job_id)
    begin_at = int(request.now) if body.from_at is None else body.from_at
    schedule, _ = read_schedule(body.schedule.written(), job_key=key, now=begin_at)
    excluded: Excluded | None = None
    with suppress(MissingCalendar):
        excluded = Calendars(services.store.jobs).excluded(request.tenant, schedule)
    ahead = look_ahead(
        body.schedule.written(),
        now=begin_at,
        count=body.count,
        until=body.until_at,
        job_key=key,
        excluded=excluded,
        default_spread_s=services.registry.default_spread_s(request.tenant),
    )
    schedule = ahead.schedule
    week = first_of_hours(schedule, ahead.timezone, begin_at, excluded or NO_DAYS) if body.week else []
    return Response(
        {
            "sentence": ahead.sentence,
            "warnings": [*ahead.warnings, *catch_up_warnings(body.catch_up, body.start_deadline_s)],
            "schedule_resolved": schedule_view(schedule),
            "timezone": ahead.timezone,
            "fires": [
                {
                    "fire_at": rfc3339(fire.at),
                    "local": fire.local,
                    "due_at": rfc3339(due_at(schedule, key, fire.at)),
                }
                for fire in ahead.fires
            ],
            **({"week": [rfc3339(at) for at in week]} if body.week else {}),
            "tzdata": ahead.tzdata,
        }
    )
