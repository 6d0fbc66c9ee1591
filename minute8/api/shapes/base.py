"""What shapes have in common."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from msgspec import Meta, Struct

from common.ids import id_pattern, words_of_ids
from common.limits import JOB_ID_CHARS, NONCE_CHARS, NOTE_CHARS
from common.timing.durations import parse_instant


class EpochSeconds(int):
    """An instant that a client writes as text."""

    @classmethod
    def of_client(cls, path: str, text: object) -> Self:
        """Raises InvalidInput."""
        return cls(parse_instant(text, path))


Instant = Annotated[
    str,
    Meta(
        description="RFC 3339, UTC.",
        extra_json_schema={"format": "date-time"},
        examples=["2026-11-21T03:18:00Z"],
    ),
]
Seconds = Annotated[float, Meta(description="Seconds.", ge=0)]
JobId = Annotated[
    str,
    Meta(
        pattern=id_pattern(JOB_ID_CHARS),
        description="The job's id.",
        examples=["nightly-report"],
        extra={"accepted": words_of_ids(JOB_ID_CHARS)},
    ),
]
TenantId = Annotated[str, Meta(description="The tenant's id.")]
ExecutionId = Annotated[
    str, Meta(description="The execution's id: tenant, job, fire time and the revision of the job's times.")
]
JobState = Annotated[
    Literal["active", "paused"], Meta(description="Whether the job fires. A paused job does not.")
]
RunStatus = Annotated[
    Literal["queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"],
    Meta(
        description="How far the run is. `dispatched`: the target took an event and returns no result; "
        "`dispatching`: for 15 s it may still refuse it."
    ),
]
Trigger = Annotated[
    str, Meta(description="What started the run: `schedule`, `manual`, `retry` or `backfill`.")
]
ErrorType = Annotated[
    str, Meta(description="The type of the error, such as an exception's name or `Timeout`.")
]
ErrorText = Annotated[
    str, Meta(description="The error's text, as the target returned it or as Minute8 observed it.")
]
Timezone = Annotated[str, Meta(description="The IANA time zone.")]
ScheduleRevision = Annotated[
    int, Meta(description="The revision of the job's times. It rises when they change.")
]
Revision = Annotated[int, Meta(description="It rises with every change, and is the ETag.")]
Note = Annotated[str, Meta(max_length=NOTE_CHARS, description="Why, for people.")]
Nonce = Annotated[str, Meta(pattern=id_pattern(NONCE_CHARS), extra={"accepted": words_of_ids(NONCE_CHARS)})]
RequestedInstant = Annotated[
    EpochSeconds,
    Meta(
        description="RFC 3339, UTC.",
        extra_json_schema={"type": "string", "format": "date-time"},
        examples=["2026-11-21T03:18:00Z"],
        extra={"accepted": "an instant such as 2026-11-21T03:18:00Z"},
    ),
]
NextCursor = Annotated[str | None, Meta(description="The `cursor` of the next page; null on the last one.")]


class RequestBody(Struct, forbid_unknown_fields=True):
    """What a client sends."""

    def __post_init__(self) -> None:
        """Instants are handed on as plain integers, as whoever stores them expects."""
        for name in self.__struct_fields__:
            if isinstance(value := getattr(self, name), EpochSeconds):
                setattr(self, name, int(value))


class ResponseBody(Struct):
    """What the API returns."""


class FieldProblem(ResponseBody):
    """One thing that is wrong."""

    field: Annotated[
        str,
        Meta(description="The field's path in the body, with dots between names; or the parameter's name."),
    ]
    message: Annotated[str, Meta(description="What is wrong with it.")]
    position: Annotated[
        int | None,
        Meta(description="The place in the text, from 0, of malformed JSON or of a cron expression."),
    ] = None
    value: Annotated[str | None, Meta(description="The value that was sent, shortened.")] = None
    accepted: Annotated[str | None, Meta(description="What would be accepted.")] = None


class QuotaProblem(ResponseBody):
    """Which quota is in the way: `used` of `most` are taken, and `wanted` more would be needed."""

    name: Annotated[str, Meta(description="The quota's name.")]
    most: Annotated[int, Meta(description="The quota.")]
    used: Annotated[int, Meta(description="How much of it is used.")]
    wanted: Annotated[int, Meta(description="How much more the request needs.")]


class _Refusal(ResponseBody):
    type: Annotated[
        str,
        Meta(
            description="The kind of problem: a stable URN, for programs.",
            examples=["urn:minute8:problem:invalid-input"],
        ),
    ]
    title: Annotated[str, Meta(description="The kind of problem, in words.")]
    status: Annotated[
        int, Meta(description="The HTTP status; of a line, the one that it would have had alone.")
    ]
    detail: Annotated[str, Meta(description="What is wrong, in a sentence.")]
    errors: Annotated[
        list[FieldProblem] | None,
        Meta(
            description="Each field that is wrong, of `invalid-input` and `malformed-json`; three of a line."
        ),
    ] = None
    current_revision: Annotated[
        int | None, Meta(description="The present revision, of `revision-mismatch`.")
    ] = None
    quota: QuotaProblem | None = None


class LineProblem(_Refusal, kw_only=True):
    """Why a line is refused: RFC 9457, cut to three errors."""

    line: Annotated[int, Meta(description="The line's number, from 1.")]


class BulkLine(ResponseBody):
    """The result of a line, or its result without `dry_run`."""

    line: Annotated[
        int, Meta(description="The line's number in the request, from 1; of a JSON array the element's.")
    ]
    job_id: Annotated[str | None, Meta(description="Null where the line has no valid one.")]
    result: Annotated[
        Literal["created", "replaced", "unchanged", "refused"], Meta(description="What became of the job.")
    ]
    revision: Revision | None = None
    changed: Annotated[list[str] | None, Meta(description="The fields that a replaced job changes.")] = None
    warnings: Annotated[list[str] | None, Meta(description="What its owner should know of the job.")] = None
    problem: LineProblem | None = None


class Problem(_Refusal, kw_only=True):
    """A refusal: RFC 9457."""

    request_id: Annotated[str, Meta(description="The id of the request. Logs have it.")]
    results: Annotated[list[BulkLine] | None, Meta(description="The lines that are in the way.")] = None


class Version(ResponseBody):
    """What is deployed."""

    version: Annotated[str, Meta(description="Of Minute8, as `minute8 --version` prints the command's.")]
