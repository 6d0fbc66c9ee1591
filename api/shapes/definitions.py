"""The shapes that contain a definition of a job, a schedule or a subscription."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
    create_model,
)
from pydantic.fields import FieldInfo

from common.errors import InvalidInput
from common.ids import JOB_ID_CHARS, NOTE_CHARS, id_pattern
from common.registration.definition import JobDefinition, ScheduleDefinition
from common.registration.subscriptions import SubscriptionDefinition
from common.timing.durations import parse_instant


def checked(check: Callable[[str, object], object]) -> BeforeValidator:
    """Refuses a value in Minute8's own words: `check` gets the field's name and the value, and raises InvalidInput."""
    return BeforeValidator(lambda value, info: check(str(info.field_name), value))


def whole_number(highest: int) -> BeforeValidator:
    """Accepts 1 to `highest`."""

    def check(field: str, value: object) -> int:
        if type(value) is not int or not 1 <= value <= highest:  # True is an int, too
            raise InvalidInput(field, "is out of range", value=value, accepted=f"1 to {highest}")
        return value

    return checked(check)


Instant = Annotated[
    str,
    Field(
        description="RFC 3339, UTC.",
        json_schema_extra={"format": "date-time"},
        examples=["2026-11-21T03:18:00Z"],
    ),
]
JobId = Annotated[
    str,
    StringConstraints(pattern=id_pattern(JOB_ID_CHARS)),
    Field(description="The job's id.", examples=["nightly-report"]),
]
Revision = Annotated[int, Field(description="It rises with every change, and is the ETag.")]
# In a request: epoch seconds, as the text was read.
RequestedInstant = Annotated[
    int,
    checked(lambda field, value: parse_instant(value, field)),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T03:18:00Z"]}),
    Field(description="RFC 3339, UTC."),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


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


JobPatch: type[BaseModel] = create_model(
    "JobPatch",
    __base__=_Strict,
    __module__=__name__,
    __doc__="A JSON merge patch (RFC 7396): the fields to change; null takes one back to its default.",
    **{name: _field_of_patch(field) for name, field in JobDefinition.model_fields.items()},
)


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


class ExportedJob(NewJob):
    """One line: a job as a bulk request takes it, each line ended by a newline."""

    model_config = ConfigDict(title="ExportedJob", json_schema_extra={})

    job_id: JobId
    eventbridge: dict[str, JsonValue] | None = Field(
        default=None,
        description="The EventBridge schedule that this job was: CreateSchedule's request with its Name. "
        "EventBridge's API then lists the job.",
    )


class BulkJob(ExportedJob):
    """One line: a job that is created, or replaces the one of its id."""

    model_config = ConfigDict(title="BulkJob")


class PreviewRequest(_Strict):
    """A schedule, and how far to look ahead."""

    schedule: ScheduleDefinition
    count: Annotated[int, whole_number(100)] = Field(
        description="The number of fire times to return.", default=10, ge=1, le=100
    )
    from_at: RequestedInstant = Field(default_factory=int, description="Begin here; now if left out.")
    until_at: RequestedInstant = Field(default_factory=int, description="End before this.")
    job_id: JobId = Field(default="job", description="Resolves `H` as this job of yours would.")
    week: bool = Field(default=False, description="Return `week` as well.")


class NewSubscription(SubscriptionDefinition):
    """An address, what it gets messages about, and how they are grouped."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"target": {"kind": "http", "url": "https://hooks.example.com/minute8"}}],
        },
    )
