"""What shapes have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from common.errors import InvalidInput
from common.ids import JOB_ID_CHARS, NONCE_CHARS, NOTE_CHARS, check_id, check_note, id_pattern
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
Seconds = Annotated[float, Field(description="Seconds.", ge=0)]
JobId = Annotated[
    str,
    StringConstraints(pattern=id_pattern(JOB_ID_CHARS)),
    Field(description="The job's id.", examples=["nightly-report"]),
]
TenantId = Annotated[str, Field(description="The tenant's id.")]
ExecutionId = Annotated[
    str, Field(description="The execution's id: tenant, job, fire time and the revision of the job's times.")
]
JobState = Annotated[
    Literal["active", "paused"], Field(description="Whether the job fires. A paused job does not.")
]
RunStatus = Annotated[
    Literal["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"],
    Field(description="How far the run is. `dispatched`: the target took an event and returns no result."),
]
Trigger = Annotated[
    str, Field(description="What started the run: `schedule`, `manual`, `retry` or `backfill`.")
]
ErrorType = Annotated[
    str, Field(description="The type of the error, such as an exception's name or `Timeout`.")
]
Timezone = Annotated[str, Field(description="The IANA time zone.")]
ScheduleRevision = Annotated[
    int, Field(description="The revision of the job's times. It rises when they change.")
]
Revision = Annotated[int, Field(description="It rises with every change, and is the ETag.")]
Note = Annotated[
    str,
    StringConstraints(max_length=NOTE_CHARS),
    BeforeValidator(check_note),
    Field(description="Why, for people."),
]
Nonce = Annotated[
    str,
    StringConstraints(pattern=id_pattern(NONCE_CHARS)),
    checked(lambda field, value: check_id(field, value, NONCE_CHARS)),
]
# In a request: epoch seconds, as the text was read.
RequestedInstant = Annotated[
    int,
    checked(lambda field, value: parse_instant(value, field)),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-21T03:18:00Z"]}),
    Field(description="RFC 3339, UTC."),
]
NextCursor = Annotated[str | None, Field(description="The `cursor` of the next page; null on the last one.")]


class RequestBody(BaseModel):
    """What a client sends. "60" is no number and 1 is no boolean. An unknown field is probably a typing error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ResponseBody(BaseModel):
    """What the API returns."""

    model_config = ConfigDict(extra="ignore")


class FieldProblem(ResponseBody):
    """One thing that is wrong."""

    field: str = Field(
        description="The field's path in the body, with dots between names; or the parameter's name."
    )
    message: str = Field(description="What is wrong with it.")
    position: int | None = Field(
        default=None, description="The place in the text, from 0, of malformed JSON or of a cron expression."
    )
    value: str | None = Field(default=None, description="The value that was sent, shortened.")
    accepted: str | None = Field(default=None, description="What would be accepted.")


class QuotaProblem(ResponseBody):
    """Which quota is in the way: `used` of `most` are taken, and `wanted` more would be needed."""

    name: str = Field(description="The quota's name.")
    most: int = Field(description="The quota.")
    used: int = Field(description="How much of it is used.")
    wanted: int = Field(description="How much more the request needs.")


class LineProblem(ResponseBody):
    """Why a line is refused: RFC 9457, cut to three errors."""

    type: str = Field(
        description="The kind of problem: a stable URN, for programs.",
        examples=["urn:minute8:problem:invalid-input"],
    )
    title: str = Field(description="The kind of problem, in words.")
    status: int = Field(description="The HTTP status that the line would have had alone.")
    detail: str = Field(description="What is wrong, in a sentence.")
    line: int = Field(description="The line's number, from 1.")
    errors: list[FieldProblem] | None = Field(default=None, description="The first three errors of the line.")
    quota: QuotaProblem | None = None


class BulkLine(ResponseBody):
    """The result of a line, or its result without `dry_run`."""

    line: int = Field(description="The line's number in the request, from 1; of a JSON array the element's.")
    job_id: str | None = Field(description="Null where the line has no valid one.")
    result: Literal["created", "replaced", "unchanged", "refused"] = Field(
        description="What became of the job."
    )
    revision: Revision | None = None
    changed: list[str] | None = Field(default=None, description="The fields that a replaced job changes.")
    problem: LineProblem | None = None


class Problem(ResponseBody):
    """A refusal: RFC 9457."""

    type: str = Field(
        description="The kind of problem: a stable URN, for programs.",
        examples=["urn:minute8:problem:invalid-input"],
    )
    title: str = Field(description="The kind of problem, in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong, in a sentence.")
    request_id: str = Field(description="The id of the request. Logs have it.")
    errors: list[FieldProblem] | None = Field(
        default=None, description="Each field that is wrong, of `invalid-input` and `malformed-json`."
    )
    current_revision: int | None = Field(
        default=None, description="The present revision, of `revision-mismatch`."
    )
    quota: QuotaProblem | None = None
    results: list[BulkLine] | None = Field(default=None, description="The lines that are in the way.")


class Version(ResponseBody):
    """What is deployed."""

    version: str = Field(description="Of Minute8, as `minute8 --version` prints the command's.")
