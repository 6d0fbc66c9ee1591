"""Reads what happened to a tenant's jobs: failed runs, overdue jobs, what alerts say, and ended problems.

Every read is bounded.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from msgspec.structs import replace

from common.history.expected import AsOf
from common.history.failed_runs import error_of, muted_runs
from common.history.health import HEALTH_ATTRIBUTES, JobHealth
from common.jobs import not_running
from common.jobs.calendars import Calendars, RememberedCalendars
from common.jobs.corrupt import readable
from common.jobs.former_jobs import load_jobs
from common.jobs.job import ACTIVE, DELETED, PAUSED, Job
from common.jobs.muted_groups import MutedGroups
from common.jobs.not_running import PAUSED_AFTER_FAILURES, RESUMED
from common.jobs.spec import Alert
from common.limits import MAX_RETRIES
from common.notices.message import context_of
from common.notices.subscription import (
    FAILED,
    NO_SUCCESS,
    NOT_RUNNING,
    OVERDUE,
    RECOVERED,
    TOO_LONG,
    TOO_SHORT,
    Problem,
)
from common.planning.due_index import DueIndex
from common.planning.execution import SCHEDULE
from common.runs import states
from common.runs.run import REQUIRED, Run, readable_runs, retries_in
from common.runs.states import RETRYING, RUNNING, SKIPPED, SUCCEEDED
from common.storage import keys
from common.storage.table import Query, Table
from common.timing.instants import compact_time

# In one round, of one tenant. The newest ones count.
MAX_FAILURES: Final = 2_000
MAX_NOT_RUNNING: Final = 500
# Beyond those, notes are counted by reason.
MAX_COUNTED_NOTES: Final = 5_000
MAX_EXAMINED_JOBS: Final = 200
# To find the examined ones: paused and deleted jobs are read, too.
MAX_READ_JOBS: Final = 2_000
# Of a job with an alert, and of all jobs of a tenant in one round beyond the newest runs of each.
MAX_ALERT_RUNS: Final = 1_000
MAX_OLDER_RUNS: Final = 5_000
_OLDER_PAGE: Final = 100
# After a failed run, to find a success.
_MAX_NEWER_RUNS: Final = 20
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class JobLabels:
    """What filters of subscriptions read of a job."""

    name: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertSpan:
    """What alerts report: the instants since `since`, of a tenant whose runs are kept for `kept_s`."""

    since: float
    kept_s: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The jobs that do not run, and the subscriptions whose addresses are noted as switched off.

    `completed`: jobs that Minute8 deleted, when they were over; since when each was noted, too. `counted`: further ones
    by reason. `complete`: these are all.
    """

    problems: tuple[tuple[Problem, JobLabels], ...] = ()
    completed: tuple[tuple[Problem, JobLabels, float], ...] = ()
    counted: tuple[Problem, ...] = ()
    addresses: frozenset[str] = frozenset()
    complete: bool = True

    def with_addresses(self, notes: Iterable[not_running.NotRunning]) -> Stopped:
        """The same with addresses of which nobody has noted anything."""
        more = ((_stopped(note), JobLabels()) for note in notes)
        return dataclasses.replace(self, problems=(*self.problems, *more))

    @property
    def keys(self) -> frozenset[str]:
        """Of the problems that go on."""
        return frozenset(problem.key for problem, _ in self.problems)

    @property
    def completed_keys(self) -> frozenset[str]:
        """Of the jobs that Minute8 deleted, alone and counted by reason."""
        problems = [problem for problem, *_ in self.completed]
        return frozenset(each.key for problem in problems for each in (problem, replace(problem, job_id="")))


@dataclass(slots=True)
class Search:
    """What a look at the next jobs found, the job after which to continue, and whether all their runs were read."""

    problems: list[tuple[Problem, JobLabels]] = field(default_factory=list)
    after_job: str = ""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class ProblemReader:
    """Reads the tables. `pool` runs the reads of single jobs."""

    jobs: Table
    runs: Table
    index: DueIndex
    pool: Executor

    def failures(self, tenant: str, since: float) -> tuple[list[Problem], bool]:
        """The failed runs of a tenant since an instant, the oldest first, and whether these are all."""
        newest = Query(
            tenant,
            index=keys.FAILURES,
            since=since,
            newest_first=True,
            page=_PAGE,
            attributes=(*REQUIRED, "failed_at"),
        )
        runs = list(islice(readable_runs(self.runs.query(newest)), MAX_FAILURES + 1))
        return [_failure(run) for run in reversed(runs[:MAX_FAILURES])], len(runs) <= MAX_FAILURES

    def not_running(self, tenant: str, addresses_off: Sequence[not_running.NotRunning]) -> Stopped:
        """What does not run now: one query, and a read of the jobs that it names. The addresses are read before."""
        noted = list(not_running.of_tenant(self.jobs, tenant, MAX_COUNTED_NOTES))
        noted.sort(key=lambda note: note.noted_at, reverse=True)
        notes, further = noted[:MAX_NOT_RUNNING], noted[MAX_NOT_RUNNING:]
        jobs = self._jobs(tenant, [note.name for note in notes])
        problems = [
            (_stopped(note), _labels(job))
            for note in notes
            if (job := jobs.get(note.name)) and job.state != DELETED and job.not_running == note.reason
        ]
        problems += [(_stopped(note), JobLabels()) for note in addresses_off]
        completed = [
            (_stopped(note), _labels(job), float(note.noted_at))
            for note in notes
            if (job := jobs.get(note.name)) and job.state == DELETED
        ]
        addresses = frozenset(note.subject for note in addresses_off)
        is_all = len(noted) < MAX_COUNTED_NOTES
        return Stopped(tuple(problems), tuple(completed), tuple(_counted(further)), addresses, is_all)

    def over_by(self, tenant: str, problems: Sequence[Problem]) -> dict[str, str]:
        """Of jobs whose notes are gone: why, in a word, by the problem's key, without those that have one again."""
        jobs = self._jobs(tenant, [problem.job_id for problem in problems])
        over = ((problem.key, jobs.get(problem.job_id), problem.reason) for problem in problems)
        return {
            key: _over_by(job, reason)
            for key, job, reason in over
            if job is None or job.state == DELETED or not job.not_running
        }

    def _jobs(self, tenant: str, job_ids: Sequence[str]) -> dict[str, Job]:
        """The jobs by id, and deleted ones."""
        jobs = load_jobs(self.jobs, [(tenant, job_id) for job_id in sorted(set(job_ids))])
        return {job_id: job for (_, job_id), job in jobs.items()}

    def without_muted(self, tenant: str, problems: Sequence[Problem], now: float) -> list[Problem]:
        """The problems without failed runs whose error is muted. Without failed runs it reads nothing."""
        failed = [(problem.job_id, problem.run_name) for problem in problems if problem.kind == FAILED]
        if not failed:
            return list(problems)
        quiet = muted_runs(self.runs, tenant, MutedGroups(self.jobs).now_muted(tenant, now), failed)
        return [
            problem
            for problem in problems
            if problem.kind != FAILED or (problem.job_id, problem.run_name) not in quiet
        ]

    def labels(self, tenant: str, job_ids: Iterable[str]) -> dict[str, JobLabels]:
        """Name and tags of jobs; a job that does not exist has neither."""
        unique_ids = sorted(set(job_ids))
        items = self.jobs.get_many([keys.job(tenant, job_id) for job_id in unique_ids], consistent=False)
        stored = {job.job_id: _labels(job) for job in readable(items)}
        return dict.fromkeys(unique_ids, JobLabels()) | stored

    def ended(self, tenant: str, problems: Sequence[Problem]) -> dict[str, str]:
        """The ended problems by their keys, each with a word that says how; with one query for each problem."""
        over = self.pool.map(lambda problem: self._over(tenant, problem), problems)
        return {problem.key: word for problem, word in zip(problems, over, strict=True) if word}

    def _over(self, tenant: str, problem: Problem) -> str:
        """How it ended: the overdue run has begun, or will not; the failed run, or a later one, has succeeded."""
        items = self.runs.query(
            Query(
                keys.runs_of_job(tenant, problem.job_id),
                sk_between=(problem.run_name, keys.LAST),
                newest_first=True,
                page=_MAX_NEWER_RUNS,
                attributes=REQUIRED,
                consistent=False,
            )
        )
        newer = readable_runs(islice(items, _MAX_NEWER_RUNS))
        if problem.kind == OVERDUE:
            states = {run.status for run in newer if run.trigger == SCHEDULE}
            return (RECOVERED if states != {SKIPPED} else SKIPPED) if states else ""
        is_over = any(
            run.status == SUCCEEDED
            and (
                problem.kind == NO_SUCCESS
                or run.run_name == problem.run_name
                or (run.trigger == SCHEDULE and not problem.by_hand)
            )
            for run in newer
        )
        return RECOVERED if is_over else ""

    def search(self, tenant: str, after_job: str, now: float, alerts: AlertSpan | None) -> Search:
        """The overdue jobs among the next ones, and with `alerts` what these say."""
        progress = self.index.progress()
        if progress is None:
            return Search()
        jobs, following = self._active(tenant, after_job)
        calendars = RememberedCalendars(Calendars(self.jobs))
        as_of = AsOf(now, progress.surely_until, -math.inf)
        health = JobHealth(self.runs).of_jobs(jobs, as_of, calendars)
        search, older_runs = Search(after_job=following), 0
        for job in jobs:
            labels, newest = _labels(job), health[job.job_id].outcomes
            if (run := health[job.job_id].overdue) is not None:
                search.problems.append((_overdue(job.job_id, run.due_at, run.fire_at), labels))
            if alerts and job.spec.alert:
                runs, complete = self._runs_for(job, job.spec.alert, newest, alerts.since)
                problems = alert_problems(job, job.spec.alert, runs, alerts.since, now, alerts.kept_s)
                search.problems += [(problem, labels) for problem in problems]
                search.complete = search.complete and complete
                older_runs += max(0, len(runs) - len(newest))
                if older_runs >= MAX_OLDER_RUNS:  # the next round continues
                    search.after_job = job.job_id
                    break
        return search

    def _runs_for(
        self, job: Job, alert: Alert, newest: Sequence[Run], since: float
    ) -> tuple[list[Run], bool]:
        """The newest runs that an alert needs, and whether all that may be too long or too short are among them."""
        from_at, lacks_success = read_from(alert, since), alert.no_success_for_s is not None
        runs: list[Run] = []
        retries = 0
        for run in chain(newest, self._older(job, newest)):
            if run.fire_at < from_at and not lacks_success:
                break
            if len(runs) == MAX_ALERT_RUNS or retries >= MAX_RETRIES:
                return runs, run.fire_at < from_at
            runs.append(run)
            retries += retries_in(run)
            lacks_success = lacks_success and run.status != SUCCEEDED
        return runs, True

    def _older(self, job: Job, newest: Sequence[Run]) -> Iterator[Run]:
        """The runs before the newest ones, one query for each page that is needed."""
        if newest:
            items = self.runs.query(
                Query(
                    keys.runs_of_job(job.tenant, job.job_id),
                    after=newest[-1].key,
                    newest_first=True,
                    page=_OLDER_PAGE,
                    attributes=HEALTH_ATTRIBUTES,
                    consistent=False,
                )
            )
            yield from readable_runs(items)

    def _active(self, tenant: str, after_job: str) -> tuple[list[Job], str]:
        """The active jobs among the next ones, and the last job that was read; empty at the end."""
        items = self.jobs.query(
            Query(
                tenant,
                sk_prefix=keys.JOB_PREFIX,
                after=keys.job(tenant, after_job) if after_job else None,
                limit=MAX_READ_JOBS + 1,
                page=MAX_EXAMINED_JOBS + 1,
                consistent=False,
            )
        )
        jobs: list[Job] = []
        last = ""
        for read, item in enumerate(items):
            if read == MAX_READ_JOBS or len(jobs) == MAX_EXAMINED_JOBS:
                return jobs, last
            last = item["sk"].removeprefix(keys.JOB_PREFIX)
            jobs += (job for job in readable([item]) if job.state == ACTIVE)
        return jobs, ""

    def contexts(self, tenant: str, problems: Sequence[Problem]) -> dict[str, dict[str, str]]:
        """By the problem's key: the error of the last run, and the job's owner and runbook."""
        job_ids = sorted({problem.job_id for problem in problems})
        items = self.jobs.get_many([keys.job(tenant, job_id) for job_id in job_ids], consistent=False)
        jobs = {job.job_id: job for job in readable(items)}
        failed = {
            (problem.job_id, problem.run_name)
            for problem in problems
            if problem.kind == FAILED and problem.recovered_at is None
        }
        run_keys = [keys.run(tenant, *job_and_run) for job_and_run in sorted(failed)]
        stored = readable_runs(self.runs.get_many(run_keys, consistent=False))
        runs = {(run.job_id, run.run_name): run for run in stored}
        return {
            problem.key: _context(
                tenant, problem, jobs.get(problem.job_id), runs.get((problem.job_id, problem.run_name))
            )
            for problem in problems
        }


def _failure(run: Run) -> Problem:
    at = float(run.failed_at)
    return Problem(FAILED, run.job_id, at, at, run.run_name, by_hand=run.trigger != SCHEDULE)


def _stopped(note: not_running.NotRunning) -> Problem:
    job_id, address = ("", note.subject) if note.is_address else (note.name, "")
    since_at = float(note.since_at)
    return Problem(
        NOT_RUNNING,
        job_id,
        since_at,
        float(note.noted_at),
        run_name="",
        runs=0,
        reason=note.reason,
        detail=note.detail,
        address=address,
        is_share=note.is_share,
    )


def _counted(notes: Sequence[not_running.NotRunning]) -> Iterator[Problem]:
    """The notes as one problem for each reason."""
    for reason, more in Counter(note.reason for note in notes).items():
        first_at = min(note.since_at for note in notes if note.reason == reason)
        last_at = max(note.noted_at for note in notes if note.reason == reason)
        yield Problem(NOT_RUNNING, "", float(first_at), float(last_at), "", runs=0, reason=reason, more=more)


def _over_by(job: Job | None, reason: str) -> str:
    if job is None or job.state in (DELETED, PAUSED):
        return job.state if job else DELETED
    return RESUMED if reason == PAUSED_AFTER_FAILURES else RECOVERED


def _overdue(job_id: str, due_at: int, fire_at: int) -> Problem:
    return Problem(OVERDUE, job_id, float(due_at), float(due_at), compact_time(fire_at), runs=0)


def _labels(job: Job) -> JobLabels:
    return JobLabels(job.spec.name, tuple(job.spec.tags))


def _context(tenant: str, problem: Problem, job: Job | None, run: Run | None) -> dict[str, str]:
    error_type, error = error_of(run) if run else ("", "")
    names_run = run is not None or problem.kind in (TOO_LONG, TOO_SHORT)
    execution_id = f"{tenant}:{problem.job_id}:{problem.run_name}" if names_run else ""
    owner, runbook = (job.spec.owner, job.spec.runbook) if job else ("", "")
    return context_of(execution_id, error_type, error, owner, runbook)


# A run that begins, or succeeds after retries, so long after its fire time is still found.
LATE_RUN_S: Final = 3_600


# A run is too long from one instant on, and too short when it ends. So each look reports only the instants since the
# look before. The time without a success is compared anew in each look.


def read_from(alert: Alert, since: float) -> float:
    """The fire time from which a look needs the runs, apart from the last success."""
    if alert.longer_than_s is None and alert.shorter_than_s is None:
        return math.inf
    return since - (alert.longer_than_s or 0) - LATE_RUN_S


def alert_problems(
    job: Job, alert: Alert, newest: Iterable[Run], since: float, now: float, kept_s: int
) -> list[Problem]:
    """What is wrong with an active job, in the order of time.

    `newest` are its runs from `read_from` on, and back to a success if it has one. Runs are kept for `kept_s`.
    """
    runs = list(newest)
    problems = [
        problem
        for run in runs
        for problem in _of_run(job, alert, run, now)
        if since <= problem.last_at <= now
    ]
    problems += _no_success(job, alert, runs, now, kept_s)
    return sorted(problems, key=lambda problem: problem.last_at)


def _of_run(job: Job, alert: Alert, run: Run, now: float) -> Iterator[Problem]:
    started_at = run.first_started_at or run.started_at
    if not started_at:
        return
    status, ended_at = run.status, run.finished_at or now
    took_s = (now if status in (RUNNING, RETRYING) else ended_at) - started_at
    is_begun = status in (RUNNING, RETRYING, SUCCEEDED, states.FAILED)
    if alert.longer_than_s is not None and is_begun and took_s > alert.longer_than_s:
        at = started_at + alert.longer_than_s
        yield Problem(TOO_LONG, job.job_id, at, at, run.run_name, took_s=took_s, limit_s=alert.longer_than_s)
    call_s = math.inf if run.duration_s is None else run.duration_s
    if alert.shorter_than_s is not None and status == SUCCEEDED and call_s < alert.shorter_than_s:
        limit_s = alert.shorter_than_s
        yield Problem(TOO_SHORT, job.job_id, ended_at, ended_at, run.run_name, took_s=call_s, limit_s=limit_s)


def _no_success(job: Job, alert: Alert, runs: Iterable[Run], now: float, kept_s: int) -> Iterator[Problem]:
    limit_s = alert.no_success_for_s
    if limit_s is None:
        return
    last = max(
        (run for run in runs if run.status == SUCCEEDED), key=lambda run: run.finished_at, default=None
    )
    if last is None and limit_s > kept_s:
        return  # the record of a success may have expired
    since_at = max(float(job.effective_at), last.finished_at if last else 0.0)
    if now - since_at > limit_s:
        first_name = compact_time(last.fire_at + 1 if last else job.effective_at)
        at = since_at + limit_s
        yield Problem(NO_SUCCESS, job.job_id, at, at, first_name, runs=0, limit_s=limit_s)
