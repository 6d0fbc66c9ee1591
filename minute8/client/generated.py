"""The operations of the API, one method each.

Generated from the routes by `python -m scripts.client_operations`; a test holds that it is up to date.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from minute8.client.operations import (
    UNSET,
    Json,
    Listing,
    ListSteps,
    Operation,
    Request,
    Steps,
    all_of,
    entries_of,
    field_of,
    fields_of,
    path_of,
    whole_pages,
)
from minute8.client.shapes import (
    AuditEntry,
    AuditPage,
    Backfill,
    Backfills,
    Block,
    CalendarPage,
    CalendarView,
    CallbackAnswer,
    ChangedJob,
    ClockChangePage,
    ComingExecution,
    ConcurrencyKey,
    DeadLetterCount,
    DeadLetterList,
    DeadLettersDone,
    EndedRun,
    ErasedRun,
    ExpectedOfJob,
    ExpectedPage,
    Explanation,
    FailureGroups,
    Fires,
    Job,
    JobHealth,
    JobPage,
    Key,
    KeyPage,
    MadeKey,
    ManyDone,
    MinuteDensity,
    MovedJob,
    MutedGroup,
    Overview,
    PlatformDensity,
    PlatformPlanning,
    RanUnrecorded,
    RebuiltRuns,
    RestoredFires,
    RuleEffects,
    Run,
    RunPage,
    RunSummary,
    SchedulePreview,
    SecretView,
    SkippedFires,
    SubscriptionView,
    TargetDelivery,
    Tenant,
    TenantDeletion,
    TenantDensity,
    TenantHealth,
    TenantLine,
    TenantOverview,
    TenantPage,
    TenantRunPage,
    TenantSummary,
    TenantView,
    TzdataChangePage,
    UnrecordedPage,
    UpcomingPage,
    WithoutRecord,
)


class TenantOperations:
    """What a tenant's keys may call."""

    @Operation
    def create_job(self, definition: Json, job_id: str | None = None, *, past: bool = False) -> Request[Job]:
        """Create a job.

        The job fires from the next second on. Without a `job_id` one is generated. A paused job is created
        with `state` and `note`.

        With an `Idempotency-Key` a repeated request returns the job as it was created, for 24 hours. One
        transaction writes the job, its due entry and the audit. Executions that are due within the planned
        window are enqueued at once, and ten of them count as a further request. `conflict`: a calendar that
        the schedule names is being deleted. `already-exists`: a job has this id.
        """
        return Request(
            "POST",
            path_of("jobs"),
            body={**definition, **fields_of(job_id=job_id)},
            query=fields_of(past=past),
            key=str(uuid.uuid4()),
        )

    @Operation
    def put_job(
        self,
        job_id: str,
        definition: Json,
        revision: int | None = None,
        *,
        past: bool = False,
        dry_run: bool = False,
        only_new: bool = False,
    ) -> Request[Job]:
        """Create or replace a job.

        The whole definition is replaced; what the body leaves out gets its default. An existing job keeps its
        state, and nothing is stored if nothing changes. With `If-Match` the job is written only if that is
        its current revision, and with `If-None-Match: *` only if it does not exist yet, else
        `revision-mismatch`. `ends` names what waited and does not run by the new times; a change of the times
        reads the newest records for it.

        One transaction writes the job, its due entry and the audit. Ten executions that it enqueues count as
        a further request.
        """
        return Request(
            "PUT",
            path_of("jobs", job_id),
            body=definition,
            revision=revision,
            query=fields_of(past=past, dry_run=dry_run),
            only_new=only_new,
        )

    @Operation
    def get_job(self, job_id: str) -> Request[Job]:
        """Get a job.

        One read of the job, and one of each calendar that it names. A deleted job is `not-found`.
        """
        return Request("GET", path_of("jobs", job_id))

    @Operation
    def delete_job(self, job_id: str, revision: int | None = None) -> Request[None]:
        """Delete a job.

        The job fires no more. Executions that are in the queue are recorded as skipped; the runs stay until
        they expire. Deleting it again is `not-found`. With `If-Match` only if that is the current revision.
        One transaction.
        """
        return Request("DELETE", path_of("jobs", job_id), revision=revision)

    @Operation
    def patch_job(
        self,
        job_id: str,
        changes: Json,
        revision: int | None = None,
        *,
        past: bool = False,
        dry_run: bool = False,
    ) -> Request[Job]:
        """Change a part of a job.

        The body is a JSON merge patch: fields that it leaves out stay, null resets a field to its default,
        and objects are merged. The result is validated as a whole job. An unchanged job keeps its revision.
        One read and one transaction; ten executions that it enqueues count as a further request. `ends` is as
        for PUT.
        """
        return Request(
            "PATCH",
            path_of("jobs", job_id),
            body=changes,
            revision=revision,
            query=fields_of(past=past, dry_run=dry_run),
        )

    @Operation
    def list_jobs_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        q: str | None = None,
        kind: str | None = None,
        failing: bool = False,
        not_running: bool = False,
        sort: str | None = None,
        health: bool = False,
    ) -> Request[JobPage]:
        """A page of it.

        List jobs.

        Jobs with their definitions, in the order of their ids or by `sort`. A page ends at `limit`, at 1 MiB,
        and after 1.5 s of work. Conditions and orders use a directory of the tenant's jobs, and `matched`
        says how many it has for them. The first such request makes it: `busy` until it is done, some 10,000
        jobs a request.

        With `health=true`, 50 jobs count as a further request. Outcomes but the last run have no seconds
        then. They begin with what ticks wrote down up to a week before somebody first asked; a job without
        any there is asked itself.
        """
        return Request(
            "GET",
            path_of("jobs"),
            query=fields_of(
                limit=limit,
                cursor=cursor,
                state=state,
                tag=tag,
                name_prefix=name_prefix,
                target=target,
                q=q,
                kind=kind,
                failing=failing,
                not_running=not_running,
                sort=sort,
                health=health,
            ),
        )

    @Listing
    def list_jobs(
        self,
        *,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        q: str | None = None,
        kind: str | None = None,
        failing: bool = False,
        not_running: bool = False,
        sort: str | None = None,
        health: bool = False,
    ) -> ListSteps[Job]:
        """All entries, page by page while they are consumed.

        List jobs.

        Jobs with their definitions, in the order of their ids or by `sort`. A page ends at `limit`, at 1 MiB,
        and after 1.5 s of work. Conditions and orders use a directory of the tenant's jobs, and `matched`
        says how many it has for them. The first such request makes it: `busy` until it is done, some 10,000
        jobs a request.

        With `health=true`, 50 jobs count as a further request. Outcomes but the last run have no seconds
        then. They begin with what ticks wrote down up to a week before somebody first asked; a job without
        any there is asked itself.
        """
        return entries_of(
            path_of("jobs"),
            "jobs",
            fields_of(
                limit=200,
                state=state,
                tag=tag,
                name_prefix=name_prefix,
                target=target,
                q=q,
                kind=kind,
                failing=failing,
                not_running=not_running,
                sort=sort,
                health=health,
            ),
        )

    @Operation
    def list_targets(self) -> Request[list[TargetDelivery]]:
        """List the kinds of target.

        How often each kind is called for an execution, and by which key a repetition is known. The list is
        constant.
        """
        return Request("GET", path_of("targets"), shape=field_of("targets"))

    @Operation
    def job_health(self, job_id: str) -> Request[JobHealth]:
        """A job's last runs, failures in a row, and whether it is overdue.

        The last run, the newest 20 outcomes, the number of failures since one succeeded, and the earliest due
        instant that has no run. One query of runs.
        """
        return Request("GET", path_of("jobs", job_id, "health"))

    @Operation
    def pause_job(self, job_id: str, note: str | None = None, revision: int | None = None) -> Request[Job]:
        """Pause a job.

        The job fires no more until it is resumed, and what is in the queue is skipped. Pausing a paused job
        changes its note. A run by hand still starts. One read and one transaction.
        """
        return Request("POST", path_of("jobs", job_id, "pause"), body=fields_of(note=note), revision=revision)

    @Operation
    def resume_job(self, job_id: str, revision: int | None = None) -> Request[Job]:
        """Resume a job.

        The job fires again from the next second on. What it would have done meanwhile does not run. An active
        job stays as it is. One read and one transaction; ten executions that it enqueues count as a further
        request.
        """
        return Request("POST", path_of("jobs", job_id, "resume"), revision=revision)

    @Operation
    def next_fires(self, job_id: str, count: int | None = None) -> Request[Fires]:
        """When a job fires next.

        The next fire times with spread, jitter and local time; each says whether it was cancelled beforehand.
        A paused job has none. One read of the job, one of each calendar, and one of each fire time.
        """
        return Request("GET", path_of("jobs", job_id, "next"), query=fields_of(count=count))

    @Operation
    def pause_jobs(
        self,
        *,
        dry_run: bool = False,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
        all: bool = False,
        note: str | None = None,
    ) -> Steps[ManyDone]:
        """Pause the jobs that a filter takes.

        All conditions of the body must hold; `all` takes every job. A request pauses up to 100 jobs within 18
        s, each in a transaction of its own. A refusal of one job stops no other. Send the same body with
        `next_cursor` as `cursor` until it is null. `dry_run` counts and names the jobs only.

        A request reads up to 2,000 jobs.

        In as many requests as needed.
        """
        return all_of(
            path_of("jobs", "_all", "pause"),
            fields_of(
                dry_run=dry_run,
                state=state,
                tag=tag,
                name_prefix=name_prefix,
                target=target,
                error_type=error_type,
                fingerprint=fingerprint,
                all=all,
                note=note,
            ),
        )

    @Operation
    def resume_jobs(
        self,
        *,
        dry_run: bool = False,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
        all: bool = False,
    ) -> Steps[ManyDone]:
        """Resume the jobs that a filter takes.

        As `POST /v1/jobs/_all/pause`: the jobs fire again from the next second on, and what they missed does
        not run.

        In as many requests as needed.
        """
        return all_of(
            path_of("jobs", "_all", "resume"),
            fields_of(
                dry_run=dry_run,
                state=state,
                tag=tag,
                name_prefix=name_prefix,
                target=target,
                error_type=error_type,
                fingerprint=fingerprint,
                all=all,
            ),
        )

    @Operation
    def run_jobs(
        self,
        *,
        dry_run: bool = False,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
        all: bool = False,
        nonce: str | None = None,
    ) -> Steps[ManyDone]:
        """Run the jobs that a filter takes now.

        As `POST /v1/jobs/_all/pause`: each job is started once for a `nonce`, also if it is paused. Send a
        `nonce` of your own, so that the request can be repeated. Without `dry_run` it counts as 100 requests.

        In as many requests as needed.
        """
        return all_of(
            path_of("jobs", "_all", "run"),
            fields_of(
                dry_run=dry_run,
                state=state,
                tag=tag,
                name_prefix=name_prefix,
                target=target,
                error_type=error_type,
                fingerprint=fingerprint,
                all=all,
                nonce=nonce or uuid.uuid4().hex,
            ),
        )

    @Operation
    def delete_jobs(
        self,
        *,
        dry_run: bool = False,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
        all: bool = False,
    ) -> Steps[ManyDone]:
        """Delete the jobs that a filter takes.

        As `POST /v1/jobs/_all/pause`. A deleted job is gone: `GET /v1/jobs/_export` beforehand keeps the
        definitions.

        In as many requests as needed.
        """
        return all_of(
            path_of("jobs", "_all", "delete"),
            fields_of(
                dry_run=dry_run,
                state=state,
                tag=tag,
                name_prefix=name_prefix,
                target=target,
                error_type=error_type,
                fingerprint=fingerprint,
                all=all,
            ),
        )

    @Operation
    def retry_runs(
        self,
        *,
        from_at: str,
        dry_run: bool = False,
        until_at: str | None = None,
        job_id: str | None = None,
        tag: str | None = None,
        error_type: str | None = None,
        fingerprint: str | None = None,
    ) -> Steps[ManyDone]:
        """Try failed runs of a span once more.

        Each run that failed in the range gets one more attempt, 100 in a request. `not-found` and `conflict`
        of one run are listed and stop no other. Without `dry_run` it counts as 100 requests. Send the same
        body with `next_cursor` as `cursor` until it is null.

        In as many requests as needed.
        """
        return all_of(
            path_of("runs", "_all", "retry"),
            fields_of(
                dry_run=dry_run,
                from_at=from_at,
                until_at=until_at,
                job_id=job_id,
                tag=tag,
                error_type=error_type,
                fingerprint=fingerprint,
            ),
        )

    @Operation
    def cancel_runs(
        self,
        *,
        dry_run: bool = False,
        status: str | None = None,
        job_prefix: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        note: str | None = None,
    ) -> Steps[ManyDone]:
        """Cancel runs that wait.

        Runs that wait for their next attempt, or with `status: queued` for their first one, are recorded as
        skipped. Without a range: those of the last day. Send the same body with `next_cursor` as `cursor`
        until it is null.

        In as many requests as needed.
        """
        return all_of(
            path_of("runs", "_all", "cancel"),
            fields_of(
                dry_run=dry_run,
                status=status,
                job_prefix=job_prefix,
                from_at=from_at,
                until_at=until_at,
                note=note,
            ),
        )

    @Operation
    def list_runs_of_job_page(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: str | None = None,
        trigger: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[RunPage]:
        """A page of it.

        A job's runs, newest first.

        One query of up to `limit` runs; with a filter a request reads up to 2,000. Runs stay for the tenant's
        `retention_days`, also those of a deleted job.
        """
        return Request(
            "GET",
            path_of("jobs", job_id, "runs"),
            query=fields_of(
                limit=limit, cursor=cursor, status=status, trigger=trigger, from_at=from_at, until_at=until_at
            ),
        )

    @Listing
    def list_runs_of_job(
        self,
        job_id: str,
        *,
        status: str | None = None,
        trigger: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> ListSteps[Run]:
        """All entries, page by page while they are consumed.

        A job's runs, newest first.

        One query of up to `limit` runs; with a filter a request reads up to 2,000. Runs stay for the tenant's
        `retention_days`, also those of a deleted job.
        """
        return entries_of(
            path_of("jobs", job_id, "runs"),
            "runs",
            fields_of(limit=200, status=status, trigger=trigger, from_at=from_at, until_at=until_at),
        )

    @Operation
    def list_runs_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: str | None = None,
        trigger: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        tag: str | None = None,
        target: str | None = None,
    ) -> Request[TenantRunPage]:
        """A page of it.

        The runs of all jobs, newest first.

        A page of 50 takes some ten reads, however many jobs there are. A page with a rare `status`, `tag` or
        `target` can be empty and have a cursor: a request looks at up to 20,000 runs. Without `from_at` it
        goes back a day. `complete_from_at` says from when on all runs are listed so far.
        """
        return Request(
            "GET",
            path_of("runs"),
            query=fields_of(
                limit=limit,
                cursor=cursor,
                status=status,
                trigger=trigger,
                from_at=from_at,
                until_at=until_at,
                tag=tag,
                target=target,
            ),
        )

    @Operation
    def list_permits(self, key: str | None = None) -> Request[ConcurrencyKey]:
        """Who has the permits of a concurrency key, and who waits.

        A run is among the holders until its record shows that it has ended, even if nobody has freed its
        permit yet. A key that nobody uses has none. One read of the key, and one of the records of those that
        it names.
        """
        return Request("GET", path_of("permits"), query=fields_of(key=key))

    @Operation
    def get_run(self, execution_id: str) -> Request[Run]:
        """Get a run with its attempts.

        One read; two if the run was started with a payload of its own, which is shown. A run that has not
        been planned, or has expired, is `not-found`.
        """
        return Request("GET", path_of("runs", execution_id))

    @Operation
    def erase_run(self, execution_id: str) -> Request[ErasedRun]:
        """Erase what a run's target and caller said: payload, answer, log, error texts.

        For data that leaked into a run. The record and its outcome stay. `not_covered` names where copies may
        be. `conflict`: the run goes on. One read and one transaction.
        """
        return Request("DELETE", path_of("runs", execution_id, "details"))

    @Operation
    def summarise_job_page(
        self,
        job_id: str,
        *,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        values: bool = False,
    ) -> Request[RunSummary]:
        """A page of it.

        What became of a job's runs, by day.

        Counts, success rate, lateness and duration of each UTC day, 7 days by default and 92 at most. A
        request reads up to 10,000 runs; the cursor leads to the others. Counts of several pages add up,
        percentiles do not, unless `values` are asked for.
        """
        return Request(
            "GET",
            path_of("jobs", job_id, "summary"),
            query=fields_of(cursor=cursor, from_at=from_at, until_at=until_at, values=values),
        )

    @Listing
    def summarise_job(
        self, job_id: str, *, from_at: str | None = None, until_at: str | None = None, values: bool = False
    ) -> ListSteps[RunSummary]:
        """All pages, each when it is consumed.

        What became of a job's runs, by day.

        Counts, success rate, lateness and duration of each UTC day, 7 days by default and 92 at most. A
        request reads up to 10,000 runs; the cursor leads to the others. Counts of several pages add up,
        percentiles do not, unless `values` are asked for.
        """
        return whole_pages(
            "GET",
            path_of("jobs", job_id, "summary"),
            fields_of(from_at=from_at, until_at=until_at, values=values),
        )

    @Operation
    def summarise_page(
        self,
        *,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        values: bool = False,
    ) -> Request[RunSummary]:
        """A page of it.

        What became of the runs of all jobs, by day.

        As the summary of one job, of any number of runs, in some ten reads and on one page, with counts by
        hour. Lateness and durations have two digits. `fresh_at` says up to when runs are counted; a large
        tenant's newest half hour is not.
        """
        return Request(
            "GET",
            path_of("summary"),
            query=fields_of(cursor=cursor, from_at=from_at, until_at=until_at, values=values),
        )

    @Listing
    def summarise(
        self, *, from_at: str | None = None, until_at: str | None = None, values: bool = False
    ) -> ListSteps[RunSummary]:
        """All pages, each when it is consumed.

        What became of the runs of all jobs, by day.

        As the summary of one job, of any number of runs, in some ten reads and on one page, with counts by
        hour. Lateness and durations have two digits. `fresh_at` says up to when runs are counted; a large
        tenant's newest half hour is not.
        """
        return whole_pages(
            "GET", path_of("summary"), fields_of(from_at=from_at, until_at=until_at, values=values)
        )

    @Operation
    def list_failures_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        job_id: str | None = None,
        tag: str | None = None,
    ) -> Request[RunPage]:
        """A page of it.

        The failed runs of all jobs, latest failure first.

        One query of an index of failed runs, which has them as long as the runs are kept. With `tag` the jobs
        of the page are read, too.
        """
        return Request(
            "GET",
            path_of("failures"),
            query=fields_of(limit=limit, cursor=cursor, from_at=from_at, job_id=job_id, tag=tag),
        )

    @Listing
    def list_failures(
        self, *, from_at: str | None = None, job_id: str | None = None, tag: str | None = None
    ) -> ListSteps[Run]:
        """All entries, page by page while they are consumed.

        The failed runs of all jobs, latest failure first.

        One query of an index of failed runs, which has them as long as the runs are kept. With `tag` the jobs
        of the page are read, too.
        """
        return entries_of(
            path_of("failures"), "runs", fields_of(limit=200, from_at=from_at, job_id=job_id, tag=tag)
        )

    @Operation
    def list_failure_groups_page(
        self,
        *,
        cursor: str | None = None,
        from_at: str | None = None,
        job_id: str | None = None,
        tag: str | None = None,
    ) -> Request[FailureGroups]:
        """A page of it.

        The failed runs of the last 7 days by job and error, latest failure first.

        Errors that differ only in numbers and ids are one group. A request reads up to 2,000 failed runs; if
        there are more, the same group can be on two pages, and its counts add up.
        """
        return Request(
            "GET",
            path_of("failures", "groups"),
            query=fields_of(cursor=cursor, from_at=from_at, job_id=job_id, tag=tag),
        )

    @Operation
    def list_muted_groups(self) -> Request[list[MutedGroup]]:
        """The groups of failures that are muted now.

        Two reads; a tenant has 200 at most.
        """
        return Request("GET", path_of("failures", "muted"), shape=field_of("groups"))

    @Operation
    def mute_failures(
        self, job_id: str, fingerprint: str, note: str | None = None, until_at: str | None = None
    ) -> Request[MutedGroup]:
        """Mute a group of failures: somebody knows of it.

        The overview counts it no more, and subscriptions report it no more. Its runs stay listed. It ends at
        `until_at`; without that when the group changes: when the job, having succeeded or having been
        changed, fails again. Another error is another group. `conflict`: 200 groups are muted. It reads up to
        2,000 failed runs, and takes one transaction.
        """
        return Request(
            "PUT",
            path_of("failures", "groups", job_id, fingerprint, "mute"),
            body=fields_of(note=note, until_at=until_at),
        )

    @Operation
    def unmute_failures(self, job_id: str, fingerprint: str) -> Request[None]:
        """Unmute a group of failures.

        It counts again, and its next failure is reported. One read and one transaction.
        """
        return Request("DELETE", path_of("failures", "groups", job_id, fingerprint, "mute"))

    @Operation
    def expected_of_job_page(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
    ) -> Request[ExpectedOfJob]:
        """A page of it.

        When a job was due, and what became of each due instant.

        Each due instant of the range with its result: on time, late, skipped and why, missed, or still to
        come. A day on each side of now by default, 92 days at most. It reads the runs of the range, the audit
        of the job, and its calendars. `no_record` would be a fault of Minute8.
        """
        return Request(
            "GET",
            path_of("jobs", job_id, "expected"),
            query=fields_of(
                limit=limit, cursor=cursor, from_at=from_at, until_at=until_at, problems=problems
            ),
        )

    @Listing
    def expected_of_job(
        self, job_id: str, *, from_at: str | None = None, until_at: str | None = None, problems: bool = False
    ) -> ListSteps[ExpectedOfJob]:
        """All pages, each when it is consumed.

        When a job was due, and what became of each due instant.

        Each due instant of the range with its result: on time, late, skipped and why, missed, or still to
        come. A day on each side of now by default, 92 days at most. It reads the runs of the range, the audit
        of the job, and its calendars. `no_record` would be a fault of Minute8.
        """
        return whole_pages(
            "GET",
            path_of("jobs", job_id, "expected"),
            fields_of(limit=5000, from_at=from_at, until_at=until_at, problems=problems),
        )

    @Operation
    def list_expected_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
    ) -> Request[ExpectedPage]:
        """A page of it.

        When all jobs were due, and what became of each due instant.

        The same for all jobs, job by job in the order of their ids. A request reads up to 1,000 jobs and the
        runs of their range.
        """
        return Request(
            "GET",
            path_of("expected"),
            query=fields_of(
                limit=limit, cursor=cursor, from_at=from_at, until_at=until_at, problems=problems
            ),
        )

    @Listing
    def list_expected(
        self, *, from_at: str | None = None, until_at: str | None = None, problems: bool = False
    ) -> ListSteps[ExpectedPage]:
        """All pages, each when it is consumed.

        When all jobs were due, and what became of each due instant.

        The same for all jobs, job by job in the order of their ids. A request reads up to 1,000 jobs and the
        runs of their range.
        """
        return whole_pages(
            "GET",
            path_of("expected"),
            fields_of(limit=5000, from_at=from_at, until_at=until_at, problems=problems),
        )

    @Operation
    def explain_job(self, job_id: str, at: str | None = None) -> Request[Explanation]:
        """Why a job was, is or is not due at an instant, and what became of it.

        Tells in sentences what decided about the instant: the schedule, exclusions, a pause, the platform's
        rules, a run before it. It reads the audit of the job, the runs around the instant, and the tenant's
        rules.
        """
        return Request("GET", path_of("jobs", job_id, "explain"), query=fields_of(at=at))

    @Operation
    def list_upcoming_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[UpcomingPage]:
        """A page of it.

        The next executions of all jobs, the earliest fire time first.

        The executions of the next day by default, with spread, jitter and pace. A request reads the directory
        of jobs and no runs. Without `complete` there was no time for all jobs: some thousands with different
        schedules.
        """
        return Request(
            "GET",
            path_of("upcoming"),
            query=fields_of(limit=limit, cursor=cursor, from_at=from_at, until_at=until_at),
        )

    @Listing
    def list_upcoming(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> ListSteps[ComingExecution]:
        """All entries, page by page while they are consumed.

        The next executions of all jobs, the earliest fire time first.

        The executions of the next day by default, with spread, jitter and pace. A request reads the directory
        of jobs and no runs. Without `complete` there was no time for all jobs: some thousands with different
        schedules.
        """
        return entries_of(
            path_of("upcoming"), "executions", fields_of(limit=1000, from_at=from_at, until_at=until_at)
        )

    @Operation
    def density(self, from_at: str | None = None, until_at: str | None = None) -> Request[TenantDensity]:
        """How many executions of all jobs are due in each minute, and which minutes are crowded.

        Counts by minute for a day by default. A crowded minute has ten executions, and three times the
        average or more; it names jobs that could move, and how. Without `complete` there was no time for all
        jobs.
        """
        return Request("GET", path_of("density"), query=fields_of(from_at=from_at, until_at=until_at))

    @Operation
    def density_of_minute(self, minute_at: str | None = None) -> Request[MinuteDensity]:
        """Which jobs are due in one minute, by second.

        The minute that holds the instant, up to two days ahead. All executions count; up to 1,000 are named.
        Without `complete` there was no time for all jobs.
        """
        return Request("GET", path_of("density", "minute"), query=fields_of(minute_at=minute_at))

    @Operation
    def list_clock_changes_page(self, *, cursor: str | None = None) -> Request[ClockChangePage]:
        """A page of it.

        The jobs that the next clock change of their time zones moves.

        Each job with the change and what it does to the fire times, in words. A request reads up to 1,000
        jobs.
        """
        return Request("GET", path_of("clock-changes"), query=fields_of(cursor=cursor))

    @Listing
    def list_clock_changes(self) -> ListSteps[MovedJob]:
        """All entries, page by page while they are consumed.

        The jobs that the next clock change of their time zones moves.

        Each job with the change and what it does to the fire times, in words. A request reads up to 1,000
        jobs.
        """
        return entries_of(path_of("clock-changes"), "moved", fields_of())

    @Operation
    def list_tzdata_changes_page(
        self, *, cursor: str | None = None, since: str | None = None
    ) -> Request[TzdataChangePage]:
        """A page of it.

        The jobs whose coming year an update of the time zone data changed.

        Compares the fire times of the coming year by two releases of the time zone data. A request reads up
        to 1,000 jobs and compares 50 different timings.
        """
        return Request("GET", path_of("tzdata-changes"), query=fields_of(cursor=cursor, since=since))

    @Listing
    def list_tzdata_changes(self, *, since: str | None = None) -> ListSteps[ChangedJob]:
        """All entries, page by page while they are consumed.

        The jobs whose coming year an update of the time zone data changed.

        Compares the fire times of the coming year by two releases of the time zone data. A request reads up
        to 1,000 jobs and compares 50 different timings.
        """
        return entries_of(path_of("tzdata-changes"), "moved", fields_of(since=since))

    @Operation
    def preview_schedule(
        self,
        schedule: Json,
        count: int | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        job_id: str | None = None,
        week: bool = False,
        catch_up: str | None = None,
        start_deadline_s: int | None = None,
    ) -> Request[SchedulePreview]:
        """When a schedule fires, in words, and what may surprise you about it.

        Nothing is stored. The schedule is validated as a job's: every problem is named with its field, its
        value and what would be accepted. One read of the tenant's rules, and one of each calendar that the
        schedule names. If a calendar is missing, none is taken out, and a warning says so.
        """
        return Request(
            "POST",
            path_of("schedules", "preview"),
            body=fields_of(
                schedule=schedule,
                count=count,
                from_at=from_at,
                until_at=until_at,
                job_id=job_id,
                week=week,
                catch_up=catch_up,
                start_deadline_s=start_deadline_s,
            ),
        )

    @Operation
    def overview_of_tenant(self) -> Request[TenantOverview]:
        """What a first look needs: the jobs, 24 hours back by outcome and hour, 24 hours ahead, what needs
        attention.

        Some twenty reads and at most 40 KB, however many jobs and runs there are. `job_counts`, `ahead`,
        `failing` and `not_running` are null while the directory of jobs is made: ask again.
        """
        return Request("GET", path_of("overview"))

    @Operation
    def run_job(self, job_id: str, nonce: str | None = None, payload: Any = UNSET) -> Request[Run]:
        """Run a job now, paused or not.

        The run starts at once, beside those of the schedule. The same `nonce` starts the job once in 24
        hours, and is `conflict` with another payload. A payload of the request replaces the job's for this
        run, is kept for 30 days, and counts as a request for each 4 KiB.
        """
        return Request(
            "POST",
            path_of("jobs", job_id, "run"),
            body=fields_of(nonce=nonce) | ({} if payload is UNSET else {"payload": payload}),
            repeatable=nonce is not None,
        )

    @Operation
    def retry_run(self, execution_id: str) -> Request[Run]:
        """Try a failed run once more.

        A failed run gets one more attempt at once, also beyond its retry policy. `conflict`: the run has not
        failed. One read and one transaction.
        """
        return Request("POST", path_of("runs", execution_id, "retry"), repeatable=False)

    @Operation
    def cancel_run(self, execution_id: str, note: str | None = None) -> Request[Run]:
        """Cancel an execution: its record ends at once.

        One that has not started is recorded as skipped, with the note; it can be cancelled before it is
        planned. Any other one has failed. What it started in Step Functions, ECS or as a durable function is
        stopped within seconds; a target that calls back hears it with its next sign. Nobody can tell other
        targets: `work_until` says how long such a call can go on, and keep its permits. `conflict`: it has
        ended, or was handed over to what nobody can stop. `not-found`: the job is not due then. Two reads and
        one transaction.
        """
        return Request(
            "POST", path_of("runs", execution_id, "cancel"), body=fields_of(note=note), repeatable=False
        )

    @Operation
    def end_run(self, execution_id: str, note: str | None = None) -> Request[EndedRun]:
        """End a run by force.

        The record ends at once, and gives back its permit of `overlap` and of a concurrency key, or its place
        in line, even if its work goes on: the next run may then run beside it. Repeating it does no harm.
        Three reads, up to four writes, and an entry of the audit.
        """
        return Request("POST", path_of("runs", execution_id, "end"), body=fields_of(note=note))

    @Operation
    def call_back(
        self,
        execution_id: str,
        token: str,
        status: str,
        percent: int | None = None,
        text: str | None = None,
        result: str | None = None,
        error_type: str | None = None,
        error: str | None = None,
        permanent: bool = False,
        retry_after_s: int | None = None,
    ) -> Request[CallbackAnswer]:
        """Tell how a run with `completion: callback` goes on, or how it has ended.

        For the run's target: the token of the attempt, from the event, takes the place of a key. The same end
        again changes nothing. `unauthenticated`: not the newest attempt's token. `conflict`: it has ended
        otherwise, or its time is over. It counts as a request of the tenant. One read and one write.
        """
        return Request(
            "POST",
            path_of("runs", execution_id, "callback"),
            body=fields_of(
                token=token,
                status=status,
                percent=percent,
                text=text,
                result=result,
                error_type=error_type,
                error=error,
                permanent=permanent,
                retry_after_s=retry_after_s,
            ),
        )

    @Operation
    def skip_fires(
        self, job_id: str, count: int | None = None, note: str | None = None
    ) -> Request[SkippedFires]:
        """Cancel a job's next fire times beforehand, those within 366 days.

        The job stays active. Each cancelled fire time is a run that is recorded as skipped, with the note.
        The same request again cancels the same ones, until the first of them has passed. `conflict`: the job
        is paused or fires no more. Each fire time counts as a request.
        """
        return Request("POST", path_of("jobs", job_id, "skip"), body=fields_of(count=count, note=note))

    @Operation
    def unskip_fires(self, job_id: str) -> Request[RestoredFires]:
        """Undo the cancellation of the next fire times, 50 at most.

        They will run after all, but for those within a minute, whose message may have come. It reads up to
        1,000 runs, and each fire time counts as a request.
        """
        return Request("DELETE", path_of("jobs", job_id, "skip"))

    @Operation
    def start_backfill(self, job_id: str, backfill: Json) -> Request[Backfill]:
        """Run the fire times of a past range, or count them.

        Every fire time of [`start_at`, `end_at`) runs once more by the present schedule, `concurrency` at a
        time; 10,000 at most. With `dry_run` they are counted, and the status is 200. The same `backfill_id`
        is the same backfill. `conflict`: the id belongs to another backfill, or a calendar is missing.

        Each execution counts as a request, the backfill as half of the tenant's `requests_per_minute` at
        most.
        """
        return Request(
            "POST",
            path_of("jobs", job_id, "backfills"),
            body=backfill,
            repeatable=bool(backfill.get("dry_run")),
        )

    @Operation
    def get_backfill(self, job_id: str, backfill_id: str) -> Request[Backfill]:
        """How far a backfill is.

        The number of executions that are enqueued so far. One read. A backfill is known for 90 days.
        """
        return Request("GET", path_of("jobs", job_id, "backfills", backfill_id))

    @Operation
    def list_backfills(self, job_id: str) -> Request[Backfills]:
        """A job's backfills of the last 90 days, the newest first; 200 at most.

        `more`: there are others, whose runs `GET /v1/jobs/{job_id}/runs?trigger=backfill` lists. One query of
        up to 2,000 backfills, and one read of the job. A deleted job is `not-found`.
        """
        return Request("GET", path_of("jobs", job_id, "backfills"))

    @Operation
    def cancel_backfill(self, job_id: str, backfill_id: str, note: str | None = None) -> Request[Backfill]:
        """Cancel what a backfill has not started.

        Executions that have begun still end. Cancelling it again changes nothing. One read and one
        transaction.
        """
        return Request(
            "POST", path_of("jobs", job_id, "backfills", backfill_id, "cancel"), body=fields_of(note=note)
        )

    @Operation
    def put_calendar(
        self, name: str, calendar: Json, revision: int | None = None, *, only_new: bool = False
    ) -> Request[CalendarView]:
        """Create or replace a calendar.

        An added date stops executions that have not begun. A removed date takes effect with the next window,
        at most 25 minutes later. With `If-Match` only if that is the current revision, with `If-None-Match:
        *` only if there is none yet. The same dates change nothing. `conflict`: the tenant has 100 calendars.
        `warnings` name the jobs that fire never again by these dates. A change reads the tenant's jobs.
        """
        return Request("PUT", path_of("calendars", name), body=calendar, revision=revision, only_new=only_new)

    @Operation
    def get_calendar(self, name: str) -> Request[CalendarView]:
        """Get a calendar.

        The dates, the note of their origin, and the revision, which is the ETag. One read.
        """
        return Request("GET", path_of("calendars", name))

    @Operation
    def delete_calendar(self, name: str) -> Request[None]:
        """Delete a calendar that no job names.

        `conflict`: a job names it; the problem lists three of them. It reads the tenant's jobs, and takes one
        transaction.
        """
        return Request("DELETE", path_of("calendars", name))

    @Operation
    def list_calendars_page(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[CalendarPage]:
        """A page of it.

        List calendars.

        Calendars with their dates, in the order of their names. A page reads one query of up to `limit`
        entries.
        """
        return Request("GET", path_of("calendars"), query=fields_of(limit=limit, cursor=cursor))

    @Listing
    def list_calendars(self) -> ListSteps[CalendarView]:
        """All entries, page by page while they are consumed.

        List calendars.

        Calendars with their dates, in the order of their names. A page reads one query of up to `limit`
        entries.
        """
        return entries_of(path_of("calendars"), "calendars", fields_of(limit=200))

    @Operation
    def put_secret(self, name: str, value: str) -> Request[SecretView]:
        """Store a secret, or replace its value.

        Jobs name it as `secret://name`. No route returns the value. Calls use a new value within a minute.
        `conflict`: the tenant has 100 secrets, or the deployment keeps none. One call of KMS, one read and
        one transaction.
        """
        return Request("PUT", path_of("secrets", name), body=fields_of(value=value))

    @Operation
    def list_secrets(self) -> Request[list[SecretView]]:
        """List secrets.

        All names, and when each value was last put; never a value. One query.
        """
        return Request("GET", path_of("secrets"), shape=field_of("secrets"))

    @Operation
    def delete_secret(self, name: str) -> Request[None]:
        """Delete a secret that no job names.

        `conflict`: a job names it; the problem lists three of them. Put another value to take the present one
        out of use. It reads the tenant's jobs, and takes one transaction.
        """
        return Request("DELETE", path_of("secrets", name))

    @Operation
    def list_subscriptions(self) -> Request[list[SubscriptionView]]:
        """All addresses that get messages about failures, recoveries and overdue jobs.

        One query; a tenant has 20 at most.
        """
        return Request("GET", path_of("subscriptions"), shape=field_of("subscriptions"))

    @Operation
    def put_subscription(self, name: str, subscription: Json) -> Request[SubscriptionView]:
        """Create or replace a subscription; a disabled address is enabled again.

        A webhook or an SNS topic gets messages about failed jobs, recoveries, overdue jobs and what alerts
        say. The platform has to allow the address. `conflict`: the tenant has 20 subscriptions. One query and
        one transaction.
        """
        return Request("PUT", path_of("subscriptions", name), body=subscription)

    @Operation
    def get_subscription(self, name: str) -> Request[SubscriptionView]:
        """A subscription, and how its deliveries went.

        Its last tries, what waits to be reported, and whether the address is disabled. One read.
        """
        return Request("GET", path_of("subscriptions", name))

    @Operation
    def delete_subscription(self, name: str) -> Request[None]:
        """Delete a subscription; what waits is not sent.

        Its address gets no further message. One read and one transaction.
        """
        return Request("DELETE", path_of("subscriptions", name))

    @Operation
    def test_subscription(self, name: str) -> Request[SubscriptionView]:
        """Have a test message sent, within two minutes.

        The message goes to the address even if nothing failed; `delivery.last_test` shows the result. While a
        test waits, another one is not added. One read and one transaction.
        """
        return Request("POST", path_of("subscriptions", name, "test"))

    @Operation
    def get_webhook_secret(self) -> Request[str]:
        """The secret that signs calls of HTTP targets; made when first asked for.

        HTTP targets and webhooks verify signatures with it, as Standard Webhooks describes. One read; the
        first request writes.
        """
        return Request("GET", path_of("webhook-secret"), shape=field_of("secret"))

    @Operation
    def rotate_webhook_secret(self) -> Request[str]:
        """A new secret; the one before goes on signing for a day.

        Calls are signed with both secrets for 24 hours. `conflict`: three earlier secrets still sign. One
        read and one transaction.
        """
        return Request(
            "POST", path_of("webhook-secret", "rotate"), repeatable=False, shape=field_of("secret")
        )

    @Operation
    def get_own_tenant(self) -> Request[Tenant]:
        """Who you are.

        The tenant of the key or token, what the platform allows it, and how much it uses. One read.
        """
        return Request("GET", path_of("tenant"))

    @Operation
    def list_keys_page(self, *, limit: int | None = None, cursor: str | None = None) -> Request[KeyPage]:
        """A page of it.

        List the tenant's keys.

        All of each key but the key itself, oldest first. A revoked key stays in the list for 30 days.
        """
        return Request("GET", path_of("keys"), query=fields_of(limit=limit, cursor=cursor))

    @Listing
    def list_keys(self) -> ListSteps[Key]:
        """All entries, page by page while they are consumed.

        List the tenant's keys.

        All of each key but the key itself, oldest first. A revoked key stays in the list for 30 days.
        """
        return entries_of(path_of("keys"), "keys", fields_of(limit=200))

    @Operation
    def create_key(
        self, role: str, name: str | None = None, expires_at: str | None = None, aws: bool = False
    ) -> Request[MadeKey]:
        """Create a key, which is shown this once.

        The response is the only place that shows the key: Minute8 stores its hash. `aws` makes a pair for
        AWS's SDKs. `conflict`: the tenant has the most keys that are possible. One query and one transaction.
        """
        return Request(
            "POST",
            path_of("keys"),
            body=fields_of(name=name, expires_at=expires_at, role=role, aws=aws),
            repeatable=False,
        )

    @Operation
    def revoke_key(self, key_id: str) -> Request[Key]:
        """Revoke a key: within a minute it is refused everywhere.

        A key may revoke itself. Revoking it again changes nothing. One read and one transaction.
        """
        return Request("DELETE", path_of("keys", key_id))

    @Operation
    def list_audit_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[AuditPage]:
        """A page of it.

        Who changed what, newest first.

        Each change with its author and the values before and after; entries stay for 400 days. A request
        reads up to 2,000 entries, so a page of a filtered list can be short and have a next one.
        """
        return Request(
            "GET",
            path_of("audit"),
            query=fields_of(
                limit=limit, cursor=cursor, subject=subject, action=action, from_at=from_at, until_at=until_at
            ),
        )

    @Listing
    def list_audit(
        self,
        *,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> ListSteps[AuditEntry]:
        """All entries, page by page while they are consumed.

        Who changed what, newest first.

        Each change with its author and the values before and after; entries stay for 400 days. A request
        reads up to 2,000 entries, so a page of a filtered list can be short and have a next one.
        """
        return entries_of(
            path_of("audit"),
            "entries",
            fields_of(limit=200, subject=subject, action=action, from_at=from_at, until_at=until_at),
        )

    @Operation
    def get_version(self) -> Request[str]:
        """The version.

        The version of Minute8 that answers, as `minute8 --version` prints the command's. No read.
        """
        return Request("GET", path_of(), shape=field_of("version"))


class PlatformOperations:
    """What an operator's keys may call."""

    @Operation
    def density_of_platform_page(
        self, *, cursor: str | None = None, from_at: str | None = None, until_at: str | None = None
    ) -> Request[PlatformDensity]:
        """A page of it.

        How many executions of all tenants are due in each minute; of a minute or less, in each second.

        Counts of an hour by default, from the entries that ticks read. Dates that calendars exclude are
        counted. The counts of pages add up.
        """
        return Request(
            "GET",
            path_of("operator-density"),
            query=fields_of(cursor=cursor, from_at=from_at, until_at=until_at),
        )

    @Listing
    def density_of_platform(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> ListSteps[PlatformDensity]:
        """All pages, each when it is consumed.

        How many executions of all tenants are due in each minute; of a minute or less, in each second.

        Counts of an hour by default, from the entries that ticks read. Dates that calendars exclude are
        counted. The counts of pages add up.
        """
        return whole_pages("GET", path_of("operator-density"), fields_of(from_at=from_at, until_at=until_at))

    @Operation
    def end_run_of_tenant(
        self, tenant_id: str, execution_id: str, note: str | None = None
    ) -> Request[EndedRun]:
        """End a tenant's run by force.

        As the tenant's own administrators can.
        """
        return Request(
            "POST", path_of("tenants", tenant_id, "runs", execution_id, "end"), body=fields_of(note=note)
        )

    @Operation
    def create_tenant(self, tenant_id: str, settings: Json | None = None) -> Request[TenantView]:
        """Create a tenant.

        The tenant may call no target until `allowed_targets` has a pattern. `already-exists`: a tenant has
        this id, or had it within 31 days. One transaction.
        """
        return Request(
            "POST", path_of("tenants"), body={**(settings or {}), "tenant_id": tenant_id}, repeatable=False
        )

    @Operation
    def list_tenants_page(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[TenantPage]:
        """A page of it.

        List tenants.

        Tenants in the order of their ids. A page reads one query of up to `limit` entries.
        """
        return Request("GET", path_of("tenants"), query=fields_of(limit=limit, cursor=cursor))

    @Listing
    def list_tenants(self) -> ListSteps[TenantSummary]:
        """All entries, page by page while they are consumed.

        List tenants.

        Tenants in the order of their ids. A page reads one query of up to `limit` entries.
        """
        return entries_of(path_of("tenants"), "tenants", fields_of(limit=200))

    @Operation
    def get_tenant(self, tenant_id: str) -> Request[TenantView]:
        """Get a tenant.

        What the tenant may do, and how much of its quotas it uses. One read.
        """
        return Request("GET", path_of("tenants", tenant_id))

    @Operation
    def patch_tenant(self, tenant_id: str, changes: Json, revision: int | None = None) -> Request[TenantView]:
        """Change what a tenant may.

        Fields that the body leaves out stay, and null means the default; `add_targets` and `remove_targets`
        change single patterns. It takes effect within 15 s, also for runs that wait. With `If-Match` only if
        that is the current revision. One read and one transaction.
        """
        return Request("PATCH", path_of("tenants", tenant_id), body=changes, revision=revision)

    @Operation
    def suspend_tenant(self, tenant_id: str, note: str | None = None) -> Request[TenantView]:
        """Stop a tenant's jobs and changes.

        Within 15 s its executions are skipped and its changes refused; it can still read everything, and the
        note. One read and one transaction. `conflict`: the tenant is being deleted.
        """
        return Request("POST", path_of("tenants", tenant_id, "suspend"), body=fields_of(note=note))

    @Operation
    def resume_tenant(self, tenant_id: str) -> Request[TenantView]:
        """Let a suspended tenant go on.

        Within 15 s its jobs fire again and it can make changes. What was skipped does not run. One read and
        one transaction.
        """
        return Request("POST", path_of("tenants", tenant_id, "resume"))

    @Operation
    def delete_tenant(self, tenant_id: str) -> Request[TenantDeletion]:
        """Stop a tenant at once and for good, and remove all of it in the background.

        Within 15 s its keys are refused and its executions skipped. A minute later the ticks remove its jobs,
        runs, keys and audit. It cannot be undone, and the id is taken for 31 days. The status is 202, and 200
        when all is removed; the same request again changes nothing.
        """
        return Request("DELETE", path_of("tenants", tenant_id))

    @Operation
    def get_tenant_deletion(self, tenant_id: str) -> Request[TenantDeletion]:
        """How far the removal of a tenant is.

        The number of items that were removed so far, and whether it has finished. One read. `not-found`: the
        tenant is not being deleted, or was removed over 31 days ago.
        """
        return Request("GET", path_of("tenants", tenant_id, "deletion"))

    @Operation
    def rebuild_projection_page(
        self, tenant_id: str, *, cursor: str | None = None, days: int | None = None
    ) -> Request[RebuiltRuns]:
        """A page of it.

        Write down the tenant's runs by time again.

        What lists across jobs read is made again from the runs of its jobs: a day of up to 200 jobs a
        request, or 20,000 runs of these. Repeat it with the answer's cursor until that is null. It is needed
        if what lists show differs from a job's own list.
        """
        return Request(
            "POST", path_of("tenants", tenant_id, "projection"), query=fields_of(cursor=cursor, days=days)
        )

    @Listing
    def rebuild_projection(self, tenant_id: str, *, days: int | None = None) -> ListSteps[RebuiltRuns]:
        """All pages, each when it is consumed.

        Write down the tenant's runs by time again.

        What lists across jobs read is made again from the runs of its jobs: a day of up to 200 jobs a
        request, or 20,000 runs of these. Repeat it with the answer's cursor until that is null. It is needed
        if what lists show differs from a job's own list.
        """
        return whole_pages("POST", path_of("tenants", tenant_id, "projection"), fields_of(days=days))

    @Operation
    def list_keys_of_tenant_page(
        self, tenant_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[KeyPage]:
        """A page of it.

        List a tenant's keys.

        As the tenant's own list.
        """
        return Request(
            "GET", path_of("tenants", tenant_id, "keys"), query=fields_of(limit=limit, cursor=cursor)
        )

    @Listing
    def list_keys_of_tenant(self, tenant_id: str) -> ListSteps[Key]:
        """All entries, page by page while they are consumed.

        List a tenant's keys.

        As the tenant's own list.
        """
        return entries_of(path_of("tenants", tenant_id, "keys"), "keys", fields_of(limit=200))

    @Operation
    def create_key_of_tenant(
        self,
        tenant_id: str,
        role: str,
        name: str | None = None,
        expires_at: str | None = None,
        aws: bool = False,
    ) -> Request[MadeKey]:
        """Create a key for a tenant, which is shown this once.

        The first key of a tenant is made this way. The response is the only place that shows the key.
        """
        return Request(
            "POST",
            path_of("tenants", tenant_id, "keys"),
            body=fields_of(name=name, expires_at=expires_at, role=role, aws=aws),
            repeatable=False,
        )

    @Operation
    def revoke_key_of_tenant(self, tenant_id: str, key_id: str) -> Request[Key]:
        """Revoke a key: within a minute it is refused everywhere.

        Revoking it again changes nothing. One read and one transaction.
        """
        return Request("DELETE", path_of("tenants", tenant_id, "keys", key_id))

    @Operation
    def list_operator_keys_page(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[KeyPage]:
        """A page of it.

        List the platform's own keys.

        All of each key but the key itself, oldest first. A revoked key stays in the list for 30 days.
        """
        return Request("GET", path_of("operator-keys"), query=fields_of(limit=limit, cursor=cursor))

    @Listing
    def list_operator_keys(self) -> ListSteps[Key]:
        """All entries, page by page while they are consumed.

        List the platform's own keys.

        All of each key but the key itself, oldest first. A revoked key stays in the list for 30 days.
        """
        return entries_of(path_of("operator-keys"), "keys", fields_of(limit=200))

    @Operation
    def create_operator_key(self, name: str | None = None, expires_at: str | None = None) -> Request[MadeKey]:
        """Create a key of the platform's own, which is shown this once.

        The response is the only place that shows the key. The first operator key is made with AWS
        credentials, by `minute8 operator-keys create`.
        """
        return Request(
            "POST",
            path_of("operator-keys"),
            body=fields_of(name=name, expires_at=expires_at),
            repeatable=False,
        )

    @Operation
    def revoke_operator_key(self, key_id: str) -> Request[Key]:
        """Revoke a key: within a minute it is refused everywhere.

        A key may revoke itself. Revoking it again changes nothing. One read and one transaction.
        """
        return Request("DELETE", path_of("operator-keys", key_id))

    @Operation
    def list_audit_of_tenant_page(
        self,
        tenant_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[AuditPage]:
        """A page of it.

        Who changed what of a tenant's, newest first.

        As the tenant's own list, with changes of the platform's operators. The tenant must exist.
        """
        return Request(
            "GET",
            path_of("tenants", tenant_id, "audit"),
            query=fields_of(
                limit=limit, cursor=cursor, subject=subject, action=action, from_at=from_at, until_at=until_at
            ),
        )

    @Listing
    def list_audit_of_tenant(
        self,
        tenant_id: str,
        *,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> ListSteps[AuditEntry]:
        """All entries, page by page while they are consumed.

        Who changed what of a tenant's, newest first.

        As the tenant's own list, with changes of the platform's operators. The tenant must exist.
        """
        return entries_of(
            path_of("tenants", tenant_id, "audit"),
            "entries",
            fields_of(limit=200, subject=subject, action=action, from_at=from_at, until_at=until_at),
        )

    @Operation
    def list_operator_audit_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[AuditPage]:
        """A page of it.

        Who made and revoked the platform's keys and deleted tenants, newest first.

        Also blocks, dead letters and executions that were sent again. Entries stay for 400 days.
        """
        return Request(
            "GET",
            path_of("operator-audit"),
            query=fields_of(
                limit=limit, cursor=cursor, subject=subject, action=action, from_at=from_at, until_at=until_at
            ),
        )

    @Listing
    def list_operator_audit(
        self,
        *,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> ListSteps[AuditEntry]:
        """All entries, page by page while they are consumed.

        Who made and revoked the platform's keys and deleted tenants, newest first.

        Also blocks, dead letters and executions that were sent again. Entries stay for 400 days.
        """
        return entries_of(
            path_of("operator-audit"),
            "entries",
            fields_of(limit=200, subject=subject, action=action, from_at=from_at, until_at=until_at),
        )

    @Operation
    def tenant_health(
        self, tenant_id: str, from_at: str | None = None, until_at: str | None = None
    ) -> Request[TenantHealth]:
        """How a tenant is: counts and lateness of its runs in a range, failing and overdue jobs.

        Nothing of what jobs and runs contain. The last day by default, 31 days at most: what ticks wrote down
        of all runs, and up to 10,000 runs of 1,000 jobs of a range that begins before. Overdue are those of
        the first 500 jobs.
        """
        return Request(
            "GET",
            path_of("tenants", tenant_id, "health"),
            query=fields_of(from_at=from_at, until_at=until_at),
        )

    @Operation
    def check_tenant(
        self, tenant_id: str, changes: Json, revision: int | None = None
    ) -> Request[RuleEffects]:
        """What a change of a tenant's rules would break; changes nothing.

        The body is that of the change. It reads up to 2,000 of the tenant's jobs and tells how many the new
        rules would stop. With `If-Match` only if that is the current revision.
        """
        return Request("POST", path_of("tenants", tenant_id, "check"), body=changes, revision=revision)

    @Operation
    def planning_of_platform(self, windows: int | None = None) -> Request[PlatformPlanning]:
        """Up to when all is planned, how the last windows went, what is set aside, and findings.

        Also alarms that ring, and what the doctor's checks find that read only what ticks wrote down. It
        reads the progress, its shares, the windows and what is set aside.
        """
        return Request("GET", path_of("operator-planning"), query=fields_of(windows=windows))

    @Operation
    def list_blocks(self) -> Request[list[Block]]:
        """The targets that the platform blocks.

        The oldest block first. One query.
        """
        return Request("GET", path_of("blocks"), shape=field_of("blocks"))

    @Operation
    def block_target(self, pattern: str, note: str | None = None) -> Request[list[Block]]:
        """Skip the runs of all tenants that would call a target.

        Takes effect within 15 s, also for runs that wait; they are recorded as skipped (`blocked`). Blocking
        a pattern again changes its note. One read and one transaction.
        """
        return Request(
            "POST", path_of("blocks"), body=fields_of(pattern=pattern, note=note), shape=field_of("blocks")
        )

    @Operation
    def release_target(self, pattern: str) -> Request[list[Block]]:
        """Let a blocked target be called again.

        Takes effect within 15 s. What was skipped does not run. `not-found`: the pattern is not blocked. One
        read and one transaction.
        """
        return Request(
            "POST",
            path_of("blocks", "release"),
            body=fields_of(pattern=pattern),
            repeatable=False,
            shape=field_of("blocks"),
        )

    @Operation
    def list_unrecorded_page(
        self, *, limit: int | None = None, cursor: str | None = None, from_at: str | None = None
    ) -> Request[UnrecordedPage]:
        """A page of it.

        The executions that were enqueued and have no record.

        Such an execution was lost with its message, or its record with the table. The ticks find such
        executions. They stay in the list for 30 days.
        """
        return Request(
            "GET",
            path_of("platform", "unrecorded"),
            query=fields_of(limit=limit, cursor=cursor, from_at=from_at),
        )

    @Listing
    def list_unrecorded(self, *, from_at: str | None = None) -> ListSteps[WithoutRecord]:
        """All entries, page by page while they are consumed.

        The executions that were enqueued and have no record.

        Such an execution was lost with its message, or its record with the table. The ticks find such
        executions. They stay in the list for 30 days.
        """
        return entries_of(
            path_of("platform", "unrecorded"), "executions", fields_of(limit=200, from_at=from_at)
        )

    @Operation
    def run_unrecorded(self, execution_ids: Sequence[str], send: bool = False) -> Request[RanUnrecorded]:
        """Send executions again that have no record.

        Only with `send` up to 100 executions are enqueued again. They are the same executions: each has one
        record. What is known to have had one is only recorded anew, as dispatched. If nobody knows that only
        its record was lost, it is called again. One that has a record meanwhile is not sent. `not-found`: an
        id is not in the list.
        """
        return Request(
            "POST",
            path_of("platform", "unrecorded", "run"),
            body=fields_of(execution_ids=execution_ids, send=send),
        )

    @Operation
    def count_dead_letters(self) -> Request[list[DeadLetterCount]]:
        """How many messages were given up, by queue.

        A request to SQS for each queue; the counts are approximate.
        """
        return Request("GET", path_of("dead-letters"), shape=field_of("queues"))

    @Operation
    def list_dead_letters(self, queue: str, limit: int | None = None) -> Request[DeadLetterList]:
        """What the given-up messages of a queue are about.

        Up to 100 messages without their texts, within 15 s. The messages stay in their queue.
        """
        return Request("GET", path_of("dead-letters", queue), query=fields_of(limit=limit))

    @Operation
    def redrive_dead_letters(
        self,
        queue: str,
        message_ids: Sequence[str] | None = None,
        all: bool = False,
        began_at: str | None = None,
    ) -> Request[DeadLettersDone]:
        """Send given-up messages to their queue again.

        By their ids, or `all`, of which a request takes 100. A message that cannot be read stays. It ends
        after 15 s at the latest, and `more` tells whether to repeat it, with the same `began_at`: then each
        is met once, and a registration that is refused again stays, with the reason.
        """
        return Request(
            "POST",
            path_of("dead-letters", queue, "redrive"),
            body=fields_of(message_ids=message_ids, all=all, began_at=began_at),
        )

    @Operation
    def discard_dead_letters(
        self,
        queue: str,
        message_ids: Sequence[str] | None = None,
        all: bool = False,
        began_at: str | None = None,
    ) -> Request[DeadLettersDone]:
        """Delete given-up messages.

        By their ids, or `all`, of which a request takes 100. What the messages ask for will not happen. It
        ends after 15 s at the latest, and `more` tells whether to repeat it, with the same `began_at`.
        """
        return Request(
            "POST",
            path_of("dead-letters", queue, "discard"),
            body=fields_of(message_ids=message_ids, all=all, began_at=began_at),
        )

    @Operation
    def overview_of_platform_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
        sort: str | None = None,
    ) -> Request[Overview]:
        """A page of it.

        All tenants with their use of quotas and their runs, the platform's runs by hour, and what is blocked.

        The runs of the last day by default, of 7 days at most, by hours of their fire times: what ticks wrote
        down up to `fresh_at`, some ten to thirty minutes ago. With `problems` only suspended tenants, and
        those with failed runs or jobs that do not run. Of the first ten tenants of a page with failed runs it
        names up to three jobs that fail now; of each tenant up to three jobs that do not run.

        It reads up to 5,000 tenants, a hundred in a request to DynamoDB, and what does not run of up to 200.
        """
        return Request(
            "GET",
            path_of("operator-overview"),
            query=fields_of(
                limit=limit, cursor=cursor, from_at=from_at, until_at=until_at, problems=problems, sort=sort
            ),
        )

    @Listing
    def overview_of_platform(
        self,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
        sort: str | None = None,
    ) -> ListSteps[TenantLine]:
        """All entries, page by page while they are consumed.

        All tenants with their use of quotas and their runs, the platform's runs by hour, and what is blocked.

        The runs of the last day by default, of 7 days at most, by hours of their fire times: what ticks wrote
        down up to `fresh_at`, some ten to thirty minutes ago. With `problems` only suspended tenants, and
        those with failed runs or jobs that do not run. Of the first ten tenants of a page with failed runs it
        names up to three jobs that fail now; of each tenant up to three jobs that do not run.

        It reads up to 5,000 tenants, a hundred in a request to DynamoDB, and what does not run of up to 200.
        """
        return entries_of(
            path_of("operator-overview"),
            "tenants",
            fields_of(limit=200, from_at=from_at, until_at=until_at, problems=problems, sort=sort),
        )
