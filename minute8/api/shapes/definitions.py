"""The shapes that contain a definition of a job, a schedule or a subscription."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct, structs

from common.jobs.revisions import EndedFire
from common.jobs.spec import CatchUp
from common.limits import NOTE_CHARS
from common.registration.definition import JobDefinition
from common.registration.schedule_definition import ScheduleDefinition
from common.registration.subscriptions import SubscriptionDefinition
from minute8.api.shapes.base import Instant, JobId, JobState, RequestBody, RequestedInstant, Revision


class NewJob(JobDefinition, frozen=True, kw_only=True):
    """A job as a client writes it, with an id that the client chooses."""

    examples: ClassVar = [
        {
            "schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"},
            "target": {"kind": "lambda", "arn": "arn:aws:lambda:eu-west-1:123456789012:function:report"},
            "payload": {"customer": 7},
        }
    ]

    job_id: Annotated[JobId | None, Meta(description="Generated if left out.")] = None
    state: Annotated[
        Literal["active", "paused"],
        Meta(description="In which it is created; one that exists keeps its own."),
    ] = "active"
    note: Annotated[str, Meta(max_length=NOTE_CHARS, description="Why it is created paused.")] = ""


def _patched(hint: Any) -> Any:
    """The type of a field in a patch: texts and lists without bounds, and objects with a part of their fields.

    The job is validated after the merge.
    """
    base, arguments = get_origin(hint), get_args(hint)
    if base is Annotated:
        bounds = [note for note in arguments[1:] if isinstance(note, Meta) and note.ge is not None]
        inner = _patched(arguments[0])
        return Annotated[inner, *(Meta(ge=note.ge, le=note.le) for note in bounds)] if bounds else inner
    if base in (Union, UnionType):
        return reduce(or_, dict.fromkeys(map(_patched, arguments)))
    if base is list:
        return list[_patched(arguments[0])]  # type: ignore[misc]
    is_struct = isinstance(hint, type) and issubclass(hint, Struct)
    return dict[str, Any] if is_struct else hint


def _field_of_patch(field: structs.FieldInfo) -> tuple[str, Any, Any]:
    described = next(note for note in get_args(field.type) if isinstance(note, Meta) and note.description)
    hint = _patched(field.type)
    if hint is not Any:
        hint = hint | NoneType | UnsetType
    return field.name, Annotated[hint, Meta(description=described.description)], UNSET


JobPatch: type[Struct] = defstruct(
    "JobPatch",
    [_field_of_patch(field) for field in structs.fields(JobDefinition)],
    module=__name__,
    forbid_unknown_fields=True,
    namespace={
        "__doc__": "A JSON merge patch (RFC 7396): the fields to change; null takes one back to its default."
    },
)


class _Added(Struct, kw_only=True):
    job_id: JobId
    schedule_resolved: Annotated[
        dict[str, Any],
        Meta(description="The schedule with `H` resolved, the anchor set and instants in UTC."),
    ]
    schedule_words: Annotated[str, Meta(description="The schedule as a sentence.")]
    function_timeout_s: Annotated[
        int | None,
        Meta(
            description="The own timeout of the Lambda function, as it was when the job was registered: after a "
            "`TimedOut` the function can go on so long, and others wait for it. null: not known, or nobody waits."
        ),
    ]
    state: JobState
    note: Annotated[str, Meta(description="Why the job is paused.")]
    revision: Revision
    schedule_revision: Annotated[int, Meta(description="Moves when the times change.")]
    created_at: Instant
    updated_at: Instant
    next_fire_at: Instant | None
    next_due_at: Annotated[
        Instant | None, Meta(description="When that execution starts: with spread and jitter.")
    ]


_Warnings = Annotated[
    list[str] | None, Meta(description="Of one job: what its owner should know, each in a sentence.")
]
_Ends = Annotated[
    list[EndedFire] | None,
    Meta(description="Of an edit: the first fire times that waited and do not run by the new times."),
]
# An answer holds every field, also what the client left out.
Job: type[Struct] = defstruct(
    "Job",
    [
        *((field.name, field.type) for field in (*structs.fields(JobDefinition), *structs.fields(_Added))),
        ("warnings", _Warnings, None),
        ("ends", _Ends, None),
    ],
    module=__name__,
    namespace={"__doc__": "A job with its definition, its state, and when it fires next."},
)


class ExportedJob(NewJob, frozen=True, kw_only=True):
    """One line: a job as a bulk request takes it, each line ended by a newline."""

    examples: ClassVar = []

    job_id: JobId
    eventbridge: Annotated[
        dict[str, Any] | None,
        Meta(
            description="The EventBridge schedule that this job was: CreateSchedule's request with its Name. "
            "EventBridge's API then lists the job."
        ),
    ] = None


class BulkJob(ExportedJob, frozen=True, kw_only=True):
    """One line: a job that is created, or replaces the one of its id."""


class PreviewRequest(RequestBody, kw_only=True):
    """A schedule, and how far to look ahead."""

    schedule: ScheduleDefinition
    count: Annotated[int, Meta(ge=1, le=100, description="The number of fire times to return.")] = 10
    from_at: Annotated[RequestedInstant | None, Meta(description="Begin here; now if left out.")] = None
    until_at: Annotated[RequestedInstant | None, Meta(description="End before this.")] = None
    job_id: Annotated[JobId, Meta(description="Resolves `H` as this job of yours would.")] = "job"
    week: Annotated[bool, Meta(description="Return `week` as well.")] = False
    catch_up: Annotated[CatchUp, Meta(description="The job's; only for `warnings`.")] = "none"
    start_deadline_s: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="The job's; only for `warnings`.")
    ] = None


class NewSubscription(SubscriptionDefinition, frozen=True, kw_only=True):
    """An address, what it gets messages about, and how they are grouped."""

    examples: ClassVar = [{"target": {"kind": "http", "url": "https://hooks.example.com/minute8"}}]
