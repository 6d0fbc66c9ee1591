"""Jobs."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, create_model
from pydantic.fields import FieldInfo

from api.shapes.base import (
    ExecutionId,
    Instant,
    JobId,
    JobState,
    NextCursor,
    Note,
    RequestBody,
    ResponseBody,
    Revision,
    RunStatus,
    Seconds,
    Timezone,
    Trigger,
)
from common.ids import NOTE_CHARS
from common.registration.definition import JobDefinition


class NewJob(JobDefinition):
    """A job as a client writes it, with an id that the client chooses."""

    model_config = ConfigDict(
        title="NewJob",
        json_schema_extra={
            "examples": [
                {
                    "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"},
                    "target": {
                        "kind": "lambda",
                        "arn": "arn:aws:lambda:eu-west-1:123456789012:function:report",
                    },
                    "payload": {"customer": 7},
                }
            ]
        },
    )

    job_id: JobId | None = Field(default=None, description="Generated if left out.")
    state: Literal["active", "paused"] = Field(
        default="active", description="In which it is created; one that exists keeps its own."
    )
    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = Field(
        default="", description="Why it is created paused."
    )


def _patched(annotation: Any) -> Any:
    """The type of a field in a patch: texts and lists without bounds, and objects with a part of their fields.

    The job is validated after the merge.
    """
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return dict[str, JsonValue]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _patched(arguments[0])
    if origin is list:
        return list[_patched(arguments[0])]  # type: ignore[misc]
    if origin in (UnionType, Union):
        return reduce(or_, map(_patched, arguments))
    return annotation


def _field_of_patch(field: FieldInfo) -> Any:
    bounds = [bound for bound in field.metadata if isinstance(bound, Ge | Le)]
    annotation = _patched(field.annotation)
    if annotation is not JsonValue:  # it includes null
        annotation = (Annotated[annotation, *bounds] if bounds else annotation) | None
    return annotation, Field(default=None, description=field.description)


JobPatch: type[RequestBody] = create_model(
    "JobPatch",
    __base__=RequestBody,
    __module__=__name__,
    __doc__="A JSON merge patch (RFC 7396): the fields to change; null takes one back to its default.",
    **{name: _field_of_patch(field) for name, field in JobDefinition.model_fields.items()},
)


class Pause(RequestBody):
    """Why a job is paused."""

    note: Note = ""


class Job(JobDefinition):
    """A job with its definition, its state, and when it fires next."""

    # An answer holds every field, also what the client left out.
    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)

    job_id: JobId
    schedule_resolved: dict[str, Any] = Field(
        description="The schedule with `H` resolved, the anchor set and instants in UTC."
    )
    schedule_words: str = Field(description="The schedule as a sentence.")
    state: Literal["active", "paused"] = Field(description="Paused jobs do not fire.")
    note: str = Field(description="Why the job is paused.")
    revision: Revision
    schedule_revision: int = Field(description="Moves when the times change.")
    created_at: Instant
    updated_at: Instant
    next_fire_at: Instant | None
    next_due_at: Instant | None = Field(description="When that execution starts: with spread and jitter.")


class RunOutcome(ResponseBody):
    """One of a job's newest runs, in short."""

    fire_at: Instant
    status: RunStatus
    trigger: Trigger
    reason: str | None = Field(default=None, description="Why it was skipped.")
    lateness_s: Seconds | None = None
    duration_s: Seconds | None = None


class LastRun(RunOutcome):
    """The newest run."""

    execution_id: ExecutionId
    error_type: str | None = Field(
        default=None, description="The type of the error, such as an exception's name or `Timeout`."
    )
    error: str | None = Field(
        default=None, description="The error's text, as the target returned it or as Minute8 observed it."
    )


class Overdue(ResponseBody):
    """The earliest due instant since the last scheduled run that has passed without a run."""

    fire_at: Instant
    due_at: Instant
    late_s: Seconds
    detail: str = Field(description="Why no run of it is recorded, in a sentence.")


class JobHealth(ResponseBody):
    """How a job is, at a glance."""

    last_run: LastRun | None
    outcomes: list[RunOutcome] = Field(description="The newest 20 runs, the newest first.")
    failures_in_row: int = Field(
        description="Scheduled runs that failed since one succeeded, or the job changed."
    )
    overdue: Overdue | None


class CorruptJob(ResponseBody):
    """A job whose stored item was damaged. It does not run. Put it again, or delete it."""

    job_id: JobId
    problem: str = Field(description="What is wrong with the stored item.")


class JobPage(ResponseBody):
    """Some jobs, in the order of the list, and where it goes on."""

    jobs: list[Job] = Field(description="The jobs of this page.")
    health: dict[str, JobHealth] | None = Field(
        default=None, description="With `health=true`: the health of each job of this page, by its id."
    )
    corrupt: list[CorruptJob] = Field(
        description="The jobs of this page that cannot be read; only in lists without a search."
    )
    matched: int | None = Field(
        default=None, description="How many jobs meet the conditions; null for the list of all jobs."
    )
    next_cursor: NextCursor


class Fire(ResponseBody):
    """One coming fire time."""

    fire_at: Instant
    due_at: Instant = Field(description="When the target is really called: with the jitter.")
    local: str = Field(description="On the schedule's own clock.")
    skipped: bool = Field(description="Whether it was cancelled beforehand.")


class Fires(ResponseBody):
    """When a job fires next; empty while it is paused."""

    job_id: JobId
    state: JobState
    timezone: Timezone
    fires: list[Fire] = Field(description="The fire times, the earliest first.")
