"""Jobs and runs as JSON: instants in RFC 3339, durations in seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from msgspec import to_builtins

from common.jobs.job import ACTIVE, Job
from common.jobs.not_running import NotRunning
from common.limits import SKIPPED_AHEAD_S
from common.planning.execution import trace_id
from common.preview.words import describe
from common.projection.totals import LATE_S, HourlyTotals, due, success_rate
from common.registration.definition import definition_of
from common.runs.run import Attempt, Run
from common.runs.states import DISPATCHED, RUNNING
from common.timing.excluded_days import Excluded
from common.timing.fires import due_at, fires, next_fires
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule

_RUN_FIELDS = (
    "status",
    "reason",
    "detail",
    "trigger",
    "schedule_revision",
    "fire_at",
    "due_at",
    "started_at",
    "finished_at",
    "erased_at",
    "next_attempt_at",
    "lateness_s",
    "waited_s",
    "duration_s",
    "skipped_count",
    "skipped_from_at",
    "dead_letter_error",
    "error_type",
    "error",
)

_UNKNOWN: Final = "unknown"
_DIED: Final = {
    "outcome": _UNKNOWN,
    "error_type": "ExecutorDied",
    "error": "the executor died before it recorded the outcome; the attempt was made again",
}


def job_view(job: Job, now: float, excluded: Excluded) -> dict[str, Any]:
    """A job with its definition, its state, and when it fires next; `excluded` as for `coming_fires`."""
    next_at = _next_fire_at(job, now, excluded)
    return {
        "job_id": job.job_id,
        **definition_of(job),
        "schedule_resolved": schedule_view(job.schedule),
        "schedule_words": describe(job.schedule, job.spec.schedule.get("max_runs")),
        "function_timeout_s": job.function_timeout_s or None,
        "state": job.state,
        "note": job.note,
        "revision": job.revision,
        "schedule_revision": job.schedule_revision,
        "created_at": rfc3339(job.created_at),
        "updated_at": rfc3339(job.updated_at),
        "next_fire_at": None if next_at is None else rfc3339(next_at),
        "next_due_at": None if next_at is None else rfc3339(due_at(job.schedule, job.key, next_at)),
    }


def _next_fire_at(job: Job, now: float, excluded: Excluded) -> int | None:
    """The first fire time that is not skipped. Behind the last skip it costs as much as without skips."""
    if job.state != ACTIVE:
        return None
    from_at = max(math.ceil(now), job.effective_at)
    skips = {at for at in job.skips if from_at <= at < now + SKIPPED_AHEAD_S}
    if not skips:
        return next(iter(next_fires(job.schedule, from_at, 1, excluded=excluded)), None)
    behind = max(skips) + 1
    between = (at for at in fires(job.schedule, from_at, behind, excluded=excluded) if at not in skips)
    next_times = list(islice(between, 1)) or next_fires(job.schedule, behind, 1, excluded=excluded)
    return next_times[0] if next_times else None


def job_line(job: Job) -> dict[str, Any]:
    """A job as a line of a bulk request. Sending the line creates the same job."""
    line = {"job_id": job.job_id, **definition_of(job)}
    return line if job.state == ACTIVE else {**line, "state": job.state, "note": job.note}


def coming_fires(job: Job, now: float, count: int, excluded: Excluded) -> list[int]:
    """The next fire times; none while the job is paused. `excluded` are the dates of the job's calendars."""
    if job.state != ACTIVE:
        return []
    return next_fires(job.schedule, max(math.ceil(now), job.effective_at), count, excluded=excluded)


def schedule_view(schedule: Schedule) -> dict[str, Any]:
    """What the schedule means: `H` resolved, the anchor set, instants in UTC."""
    instants = ("at", "anchor_at", "start_at", "end_at")
    view = {
        name: rfc3339(value) if name in instants else value for name, value in to_builtins(schedule).items()
    }
    return view | {"schedules": list(map(schedule_view, schedule.parts))} if "schedules" in view else view


def run_view(run: Run, now: float) -> dict[str, Any]:
    """One run with its attempts, as it is at `now`."""
    last = run.last_attempt
    view: dict[str, Any] = {
        "execution_id": run.execution_id,
        "job_id": run.job_id,
        "trace_id": trace_id(run.execution_id),
        "attempt": run.attempt,
    }
    fields = to_builtins(run) | {"status": run.status_at(now)}
    if last and not run.error_type:  # else it ended without an attempt
        fields |= {"error_type": last.error_type, "error": last.error}
    view |= {name: fields[name] for name in _RUN_FIELDS if fields.get(name, "") != ""}
    return _instants(view) | _signs(run, now) | {"attempts": _calls(run, now)}


def callback_view(run: Run, *, stop: bool) -> dict[str, Any]:
    """What a target hears that calls back."""
    is_open = run.status == RUNNING and run.reported_attempt != run.attempt
    return {
        "execution_id": run.execution_id,
        "status": run.status,
        "attempt": run.attempt,
        "callback_until": rfc3339(run.lease_until) if is_open else None,
        "stop": stop,
    }


def _signs(run: Run, now: float) -> dict[str, Any]:
    """What the target of the newest attempt has told, and a person wants of it."""
    signs: dict[str, Any] = {}
    if run.status == RUNNING and 0 < run.attempt == run.accepted_attempt:
        signs["look_at" if run.durable_execution else "callback_until"] = rfc3339(run.lease_until)
        signs |= {"look_problem": run.look_problem} if run.look_problem else {}
    if run.started_arns:
        signs["started"] = list(run.started_arns)
    if run.progress:
        signs["progress"] = _instants(to_builtins(run.progress))
    if run.work_until > now:
        signs["work_until"] = rfc3339(run.work_until)
    if run.stop and run.is_to_stop:
        signs["stop"] = {"requested_at": rfc3339(run.stop.at), "note": run.stop.note}
        signs["stop"] |= {"problem": run.stop_problem} if run.stop_problem else {}
    return signs


def stopped_view(note: NotRunning) -> dict[str, Any]:
    """A job or an address that does not run, without the details."""
    name = "subscription" if note.is_address else "job_id"
    about = {"reason": note.reason, "since_at": rfc3339(int(note.since_at))}
    return {"job_id": None, "subscription": None, name: note.subject, **about}


def hours_view(hourly: HourlyTotals) -> list[dict[str, Any]]:
    """Counts by hour of the fire times, the earliest first."""
    return [
        {
            "at": rfc3339(hour),
            "runs": totals.runs,
            "statuses": dict(sorted(totals.statuses.items())),
            "due": due(totals.statuses, totals.reasons),
            "success_rate": success_rate(totals.statuses, totals.reasons),
            "started": sum(totals.lateness_s.values()),
            "late": sum(count for value, count in totals.lateness_s.items() if value > LATE_S),
        }
        for hour, totals in sorted(hourly.hours.items())
    ]


def _calls(run: Run, now: float) -> list[dict[str, Any]]:
    """Every call, in order: those that ended, those whose executor died, and the one that is being made."""
    ended = list(map(_attempt_view, run.attempts))
    lost_calls = [{**_instants(to_builtins(call)), **_DIED} for call in run.lost_calls]
    calls = sorted([*ended, *lost_calls], key=lambda call: (call["attempt"], call["outcome"] != _UNKNOWN))
    newest = run.last_attempt.attempt if run.last_attempt else 0
    if run.status in (RUNNING, DISPATCHED) and run.attempt > newest:
        going = {"attempt": run.attempt, "started_at": rfc3339(run.started_at), "outcome": run.status_at(now)}
        if run.attempt == 1 and run.lateness_s is not None:
            going["lateness_s"] = run.lateness_s
        calls.append(going)
    return calls


def _attempt_view(attempt: Attempt) -> dict[str, Any]:
    duration_s = max(0.0, attempt.finished_at - attempt.started_at)
    return _instants({**to_builtins(attempt), "duration_s": round(duration_s, 3)})


def _instants(view: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: rfc3339(value) if name == "at" or name.endswith("_at") else value
        for name, value in view.items()
    }
