"""What a client may write as a job's target: one model per `kind`.

Only the API and the CLI import pydantic; the executor reads the stored dict. `common/tenants/allowed_targets.py`
decides which targets a tenant may call.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from common.storage import aws_operations
from common.tenants.web_address import BadUrl, read_url

# pydantic uses Rust's regular expressions: `$` never matches before a line break; `\d` matches digits of all scripts.
# Each part is bounded: what a job stores is to fit into an item.
_ARN: Final = (
    r"^arn:aws[a-z-]{{0,20}}:{service}:[a-z]{{2}}(-[a-z]{{1,20}}){{1,4}}-[0-9]:[0-9]{{12}}:{resource}$"
)
# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
_LAMBDA_ARN: Final = _ARN.format(
    service="lambda", resource=r"function:[A-Za-z0-9-_]{1,64}(:(\$LATEST|[A-Za-z0-9-_]{1,128}))?"
)
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
_SQS_ARN: Final = _ARN.format(service="sqs", resource=r"[A-Za-z0-9-_]{1,80}(\.fifo)?")
STANDARD_QUEUE_ARN: Final = _ARN.format(service="sqs", resource=r"[A-Za-z0-9-_]{1,80}")
_SCHEDULE_ARN: Final = _ARN.format(
    service="scheduler", resource=r"schedule/[0-9A-Za-z-_.]{1,64}/[0-9A-Za-z-_.]{1,64}"
)
SNS_ARN: Final = _ARN.format(service="sns", resource=r"[A-Za-z0-9-_]{1,256}(\.fifo)?")
_BUS_ARN: Final = _ARN.format(service="events", resource=r"event-bus/[A-Za-z0-9._/-]{1,256}")
_STATES_ARN: Final = _ARN.format(
    service="states", resource=r"stateMachine:[A-Za-z0-9-_]{1,80}(:[A-Za-z0-9-_.]{1,80})?"
)
_ROLE_ARN: Final = r"^arn:aws[a-z-]{0,20}:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$"
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
_EXTERNAL_ID: Final = r"^[A-Za-z0-9+=,.@:/_-]{1,512}$"
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
_FIFO_ID: Final = r"^[A-Za-z0-9!-/:-@\[-`{-~]{1,128}$"

_HEADERS: Final = 20
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[!-~](?:[ -~]{0,1022}[!-~])?", re.ASCII)
# Headers that frame the request, belong to one hop, or are set by Minute8. RFC 9110 §7.6.1.
_REFUSED_HEADERS: Final = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "forwarded", "host", "http2-settings"),
        *("keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "via"),
    }
)
_REFUSED_HEADER_PREFIXES: Final = ("webhook-", "minute8-", "x-forwarded-", "x-amzn-", "sec-")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Target(_Strict):
    envelope: bool = Field(
        default=True,
        description="False: the target gets the payload alone, and not `payload` and `minute8` around it.",
    )


class _AwsTarget(_Target):
    """Minute8 assumes the role, if given, before the call. The external id is `minute8:<tenant>[:<external_id>]`."""

    role_arn: Annotated[str, StringConstraints(pattern=_ROLE_ARN)] | None = Field(
        default=None, description="A role to assume for the call, such as one in another account."
    )
    external_id: Annotated[str, StringConstraints(pattern=_EXTERNAL_ID)] | None = Field(
        default=None,
        description="What of the external id in the role's trust policy follows `minute8:<tenant>:`.",
    )

    schedule_arn: Annotated[str, StringConstraints(pattern=_SCHEDULE_ARN)] | None = Field(
        default=None,
        description="The EventBridge schedule that the job replaces: the target gets the payload as its Input.",
    )

    @model_validator(mode="after")
    def _external_id_belongs_to_a_role(self) -> _AwsTarget:
        if self.external_id is not None and self.role_arn is None:
            raise PydanticCustomError("external_id_alone", "external_id is given without role_arn")
        return self


class LambdaTarget(_AwsTarget):
    """A Lambda function. Minute8 waits for its result (`RequestResponse`) or only hands over the event (`Event`)."""

    kind: Literal["lambda"] = Field(description="A Lambda function.")
    arn: Annotated[str, StringConstraints(pattern=_LAMBDA_ARN)] = Field(
        description="The function's ARN, with a version or alias if you like."
    )
    invocation: Literal["RequestResponse", "Event"] = Field(
        default="RequestResponse",
        description="`RequestResponse`: wait for the result. `Event`: only hand over the event, and know no result.",
    )


class _MaybeFifo(_AwsTarget):
    message_group_id: Annotated[str, StringConstraints(pattern=_FIFO_ID)] | None = Field(
        default=None, description="The order's group; of a FIFO one the job, if none."
    )
    deduplication_id: Annotated[str, StringConstraints(pattern=_FIFO_ID)] | None = Field(
        default=None, description="FIFO only; derived from the execution, if none."
    )

    @model_validator(mode="after")
    def _deduplication_is_for_fifo(self) -> _MaybeFifo:
        if self.deduplication_id is not None and not getattr(self, "arn", "").endswith(".fifo"):
            raise PydanticCustomError("not_fifo", "deduplication_id is given, and the ARN is no FIFO one")
        return self


class SqsTarget(_MaybeFifo):
    """An SQS queue, standard or FIFO."""

    kind: Literal["sqs"] = Field(description="An SQS queue.")
    arn: Annotated[str, StringConstraints(pattern=_SQS_ARN)] = Field(description="The queue's ARN.")


class SnsTarget(_MaybeFifo):
    """An SNS topic, standard or FIFO."""

    kind: Literal["sns"] = Field(description="An SNS topic.")
    arn: Annotated[str, StringConstraints(pattern=SNS_ARN)] = Field(description="The topic's ARN.")
    subject: Annotated[str, StringConstraints(pattern=r"^[!-~][ -~]{0,99}$")] | None = Field(
        default=None, description="What e-mail subscribers see."
    )


def _own_source(source: str) -> str:
    if source != DEFAULT_SOURCE and re.match(r"(aws|minute8)(\.|$)", source, re.IGNORECASE):
        raise PydanticCustomError("reserved_source", "source is reserved")
    return source


DEFAULT_SOURCE: Final = "minute8.job"


class EventBusTarget(_AwsTarget):
    """An EventBridge bus."""

    kind: Literal["event_bus"] = Field(description="An EventBridge bus.")
    arn: Annotated[str, StringConstraints(pattern=_BUS_ARN)] = Field(description="The bus's ARN.")
    source: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9._/-]{1,256}$"), AfterValidator(_own_source)
    ] = Field(
        default=DEFAULT_SOURCE,
        description="The event's `source`; neither `aws…` nor `minute8…` but the default.",
    )
    detail_type: Annotated[str, StringConstraints(pattern=r"^[!-~][ -~]{0,127}$")] = Field(
        default="Scheduled Job", description="The event's `detail-type`."
    )


class StepFunctionsTarget(_AwsTarget):
    """A Step Functions state machine; each call starts an execution."""

    kind: Literal["step_functions"] = Field(description="A Step Functions state machine.")
    arn: Annotated[str, StringConstraints(pattern=_STATES_ARN)] = Field(
        description="The state machine's ARN, with a version or alias if you like."
    )


class AwsOperationTarget(_AwsTarget):
    """An operation of any service of AWS, called with the rights of `role_arn`. The payload has its parameters."""

    kind: Literal["aws_operation"] = Field(description="An operation of a service of AWS.")
    arn: Annotated[str, StringConstraints(pattern=f"^{aws_operations.PATTERN}$")] = Field(
        description="The operation, as universal targets of EventBridge Scheduler name it."
    )

    @model_validator(mode="after")
    def _has_a_role(self) -> AwsOperationTarget:
        if self.role_arn is None:
            raise PydanticCustomError("role_missing", "role_arn is missing: the call has this role's rights")
        return self


def _callable_url(url: str) -> str:
    try:
        read_url(url)
    except BadUrl as error:
        raise PydanticCustomError("bad_url", "{why}", {"why": str(error)}) from None
    return url


def _sendable_headers(headers: dict[str, str]) -> dict[str, str]:
    if len(headers) > _HEADERS:
        raise PydanticCustomError("bad_header", "more than {most} headers", {"most": _HEADERS})
    seen: set[str] = set()
    for name, value in headers.items():
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise PydanticCustomError("bad_header", "a header's name is of A-Z a-z 0-9 -, at most 64")
        if lower in _REFUSED_HEADERS or lower.startswith(_REFUSED_HEADER_PREFIXES):
            raise PydanticCustomError("bad_header", "Minute8 sets {name} itself", {"name": lower})
        if lower in seen:
            raise PydanticCustomError("bad_header", "{name} is given twice", {"name": lower})
        if not _HEADER_VALUE.fullmatch(value):
            raise PydanticCustomError(
                "bad_header",
                "{name} has a value that is not 1 to 1024 printable ASCII characters",
                {"name": name},
            )
        seen.add(lower)
    return headers


CallableUrl = Annotated[str, AfterValidator(_callable_url)]


class HttpTarget(_Target):
    """An HTTPS endpoint on the public internet. Minute8 waits for its answer and signs every call."""

    kind: Literal["http"] = Field(description="An HTTPS endpoint.")
    url: CallableUrl = Field(description="The https URL that is called. Its host must have a public address.")
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = Field(
        default="POST", description="The HTTP method."
    )
    headers: Annotated[dict[str, str], AfterValidator(_sendable_headers)] = Field(
        default={},
        description="Sent as they stand, with secrets for `secret://name`; shown to whoever may read the job.",
    )


Target = Annotated[
    LambdaTarget
    | SqsTarget
    | SnsTarget
    | EventBusTarget
    | StepFunctionsTarget
    | AwsOperationTarget
    | HttpTarget,
    Field(discriminator="kind"),
]

MODELS: Final[dict[str, type[BaseModel]]] = {
    "lambda": LambdaTarget,
    "sqs": SqsTarget,
    "sns": SnsTarget,
    "event_bus": EventBusTarget,
    "step_functions": StepFunctionsTarget,
    "aws_operation": AwsOperationTarget,
    "http": HttpTarget,
}


def stored(target: BaseModel) -> dict[str, Any]:
    """The target as a job holds it, without the default envelope."""
    item = target.model_dump(exclude_none=True)
    if item["envelope"]:
        del item["envelope"]
    return item


def is_awaited(target: BaseModel) -> bool:
    """Whether the call returns the result of the work; other calls only return that the service accepted the event."""
    if isinstance(target, LambdaTarget):
        return target.invocation == "RequestResponse"
    return isinstance(target, HttpTarget)


_ACCEPTED_ARNS: Final = {
    "lambda": "arn:aws:lambda:<region>:<account>:function:<name>[:<qualifier>]",
    "sqs": "arn:aws:sqs:<region>:<account>:<queue>[.fifo]",
    "sns": "arn:aws:sns:<region>:<account>:<topic>[.fifo]",
    "event_bus": "arn:aws:events:<region>:<account>:event-bus/<name>",
    "aws_operation": "arn:aws:scheduler:::aws-sdk:<service>:<operation>",
    "step_functions": "arn:aws:states:<region>:<account>:stateMachine:<name>[:<version or alias>]",
}


def accepted(problem: str, loc: tuple[int | str, ...]) -> str:
    """What would have been accepted; pydantic found `problem` at the place `loc` (from `target` on)."""
    kind, field = (*(str(part) for part in loc[1:2]), "")[0], loc[-1]
    if problem in _NO_KIND:
        return "one of " + ", ".join(MODELS)
    if problem == "string_pattern_mismatch" and field == "arn":
        return _ACCEPTED_ARNS.get(kind, "")
    if problem == "string_pattern_mismatch" and field == "role_arn":
        return "arn:aws:iam::<account>:role/<name>"
    return {
        "bad_url": "such as https://hooks.example.com/minute8",
        "reserved_source": "a source that begins neither with aws nor with minute8",
    }.get(problem, "")


def place(problem: str, loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """pydantic's place of an error as a path in the client's JSON, without the union's tag."""
    if loc[:1] != ("target",):
        return loc
    return ("target", "kind") if problem in _NO_KIND else loc[:1] + loc[2:]


_NO_KIND: Final = ("union_tag_invalid", "union_tag_not_found")
