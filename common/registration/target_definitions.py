"""What a client may write as a job's target: one Struct per `kind`.

The executor reads the stored dict. `common/tenants/allowed_targets.py` decides which targets a tenant may call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct, to_builtins

from common.declared import Check
from common.errors import InvalidInput
from common.jobs.spec import arn_pattern
from common.limits import MAX_HEADERS, URL_CHARS
from common.storage import aws_operations
from common.tenants.web_address import BadUrl, read_url

# https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
_LAMBDA_ARN: Final = arn_pattern("lambda", r"function:[A-Za-z0-9-_]{1,64}(:(\$LATEST|[A-Za-z0-9-_]{1,128}))?")
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
# A durable execution stays at the version that it began with.
_QUALIFIED_ARN: Final = re.compile(r".*:function:[^:]+:[^:$]+")
STARTED: Final = "{{started}}"
_STOP_CHARS: Final = 1_024
_SQS_ARN: Final = arn_pattern("sqs", r"[A-Za-z0-9-_]{1,80}(\.fifo)?")
_SCHEDULE_ARN: Final = arn_pattern("scheduler", r"schedule/[0-9A-Za-z-_.]{1,64}/[0-9A-Za-z-_.]{1,64}")
_SNS_ARN: Final = arn_pattern("sns", r"[A-Za-z0-9-_]{1,256}(\.fifo)?")
_BUS_ARN: Final = arn_pattern("events", r"event-bus/[A-Za-z0-9._/-]{1,256}")
_STATES_ARN: Final = arn_pattern("states", r"stateMachine:[A-Za-z0-9-_]{1,80}(:[A-Za-z0-9-_.]{1,80})?")
_ROLE_ARN: Final = r"^arn:aws[a-z-]{0,20}:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}$"
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
_EXTERNAL_ID: Final = r"^[A-Za-z0-9+=,.@:/_-]{1,512}$"
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
_FIFO_ID: Final = Meta(
    pattern=r"^[A-Za-z0-9!-/:-@\[-`{-~]{1,128}$",
    extra={"accepted": "1 to 128 printable ASCII characters without blanks"},
)

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


def _arn(pattern: str, accepted: str, description: str) -> Meta:
    return Meta(pattern=pattern, description=description, extra={"accepted": accepted})


class _Target(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    envelope: Annotated[
        bool,
        Meta(
            description="False: the target gets the payload alone, and not `payload` and `minute8` around it.",
            extra={"page": "targets.md#the-payload-alone"},
        ),
    ] = True


class _AwsTarget(_Target, frozen=True, kw_only=True):
    """Minute8 assumes the role, if given, before the call. The external id is `minute8:<tenant>[:<external_id>]`."""

    role_arn: Annotated[
        Annotated[str, Meta(pattern=_ROLE_ARN, extra={"accepted": "arn:aws:iam::<account>:role/<name>"})]
        | None,
        Meta(description="A role to assume for the call, such as one in another account."),
    ] = None
    external_id: Annotated[
        Annotated[
            str, Meta(pattern=_EXTERNAL_ID, extra={"accepted": "1 to 512 of A-Z a-z 0-9 + = , . @ : / _ -"})
        ]
        | None,
        Meta(description="What of the external id in the role's trust policy follows `minute8:<tenant>:`."),
    ] = None
    schedule_arn: Annotated[
        Annotated[
            str,
            Meta(
                pattern=_SCHEDULE_ARN,
                extra={"accepted": "arn:aws:scheduler:<region>:<account>:schedule/<group>/<name>"},
            ),
        ]
        | None,
        Meta(
            description="The EventBridge schedule that the job replaces: the target gets the payload, a "
            "text or null, as "
            "its Input.",
            extra={"page": "targets.md#the-input-of-an-eventbridge-schedule"},
        ),
    ] = None

    def contradictions(self) -> Iterator[InvalidInput]:
        """What its fields cannot say alone."""
        if self.external_id is not None and self.role_arn is None:
            yield InvalidInput(
                "", "external_id is given without role_arn", value=to_builtins(self), accepted="both, or none"
            )


class LambdaTarget(_AwsTarget, frozen=True, kw_only=True, tag="lambda"):
    """A Lambda function. Minute8 waits for its result (`RequestResponse`) or only hands over the event (`Event`)."""

    arn: Annotated[
        str,
        _arn(
            _LAMBDA_ARN,
            "arn:aws:lambda:<region>:<account>:function:<name>[:<qualifier>]",
            "The function's ARN, with a version or alias if you like.",
        ),
    ]
    invocation: Annotated[
        Literal["RequestResponse", "Event"],
        Meta(
            description="`RequestResponse`: wait for the result. `Event`: only hand over the event, and "
            "know no result."
        ),
    ] = "RequestResponse"
    tenant_isolation: Annotated[
        bool,
        Meta(
            description="True: the function isolates its tenants; each call names the job's as the tenant id.",
            extra={"page": "targets.md#functions-that-isolate-tenants"},
        ),
    ] = False
    durable: Annotated[
        bool,
        Meta(
            description="True: each attempt is one durable execution of the function, which the run "
            "follows to its end; "
            "with `Event` and a version or alias in the ARN.",
            extra={"page": "targets.md#durable-functions"},
        ),
    ] = False

    def contradictions(self) -> Iterator[InvalidInput]:
        """What its fields cannot say alone."""
        yield from super().contradictions()
        if self.durable and self.invocation != "Event":
            yield InvalidInput(
                "invocation", "must be Event for a durable function", value=self.invocation, accepted="Event"
            )
        if self.durable and not _QUALIFIED_ARN.fullmatch(self.arn):
            yield InvalidInput(
                "arn", "must name a version or an alias of a durable function", value=self.arn,
                accepted="arn:aws:lambda:<region>:<account>:function:<name>:<version or alias>",
            )  # fmt: skip


class _MaybeFifo(_AwsTarget, frozen=True, kw_only=True):
    arn: str
    message_group_id: Annotated[
        Annotated[str, _FIFO_ID] | None,
        Meta(description="The order's group; of a FIFO one the job, if none."),
    ] = None
    deduplication_id: Annotated[
        Annotated[str, _FIFO_ID] | None,
        Meta(description="FIFO only; derived from the execution, if none."),
    ] = None

    def contradictions(self) -> Iterator[InvalidInput]:
        """What its fields cannot say alone."""
        yield from super().contradictions()
        if self.deduplication_id is not None and not self.arn.endswith(".fifo"):
            yield InvalidInput(
                "", "deduplication_id is given, and the ARN is no FIFO one", value=to_builtins(self),
                accepted="an ARN that ends with .fifo; or no deduplication_id",
            )  # fmt: skip


class SqsTarget(_MaybeFifo, frozen=True, kw_only=True, tag="sqs"):
    """An SQS queue, standard or FIFO."""

    arn: Annotated[str, _arn(_SQS_ARN, "arn:aws:sqs:<region>:<account>:<queue>[.fifo]", "The queue's ARN.")]


TOPIC: Final = _arn(_SNS_ARN, "arn:aws:sns:<region>:<account>:<topic>[.fifo]", "The topic's ARN.")


class SnsTarget(_MaybeFifo, frozen=True, kw_only=True, tag="sns"):
    """An SNS topic, standard or FIFO."""

    arn: Annotated[str, TOPIC]
    subject: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^[!-~][ -~]{0,99}$",
                extra={"accepted": "1 to 100 printable ASCII characters, the first no blank"},
            ),
        ]
        | None,
        Meta(description="The subject that e-mail subscribers see."),
    ] = None


DEFAULT_SOURCE: Final = "minute8.job"


def _check_source(path: str, source: str) -> None:
    if source != DEFAULT_SOURCE and re.match(r"(aws|minute8)(\.|$)", source, re.IGNORECASE):
        raise InvalidInput(
            path,
            "source is reserved",
            value=source,
            accepted="a source that begins neither with aws nor with minute8",
        )


class EventBusTarget(_AwsTarget, frozen=True, kw_only=True, tag="event_bus"):
    """An EventBridge bus."""

    arn: Annotated[
        str, _arn(_BUS_ARN, "arn:aws:events:<region>:<account>:event-bus/<name>", "The bus's ARN.")
    ]
    source: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9._/-]{1,256}$",
            description="The event's `source`; neither `aws…` nor `minute8…` but the default.",
            extra={"accepted": "1 to 256 of A-Z a-z 0-9 . _ / -"},
        ),
        Check(_check_source),
    ] = DEFAULT_SOURCE
    detail_type: Annotated[
        str,
        Meta(
            pattern=r"^[!-~][ -~]{0,127}$",
            description="The event's `detail-type`.",
            extra={"accepted": "1 to 128 printable ASCII characters, the first no blank"},
        ),
    ] = "Scheduled Job"


class StepFunctionsTarget(_AwsTarget, frozen=True, kw_only=True, tag="step_functions"):
    """A Step Functions state machine; each call starts an execution."""

    arn: Annotated[
        str,
        _arn(
            _STATES_ARN,
            "arn:aws:states:<region>:<account>:stateMachine:<name>[:<version or alias>]",
            "The state machine's ARN, with a version or alias if you like.",
        ),
    ]


class StopOperation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operation that stops what an operation has started, with the same role."""

    arn: Annotated[
        str,
        _arn(
            f"^{aws_operations.PATTERN}$",
            "arn:aws:scheduler:::aws-sdk:<service>:<operation>",
            "The operation, as `arn` of the target names its own.",
        ),
    ]
    parameters: Annotated[
        dict[str, Any],
        Meta(description="Its parameters, in which `{{started}}` stands for what was started."),
    ]


class AwsOperationTarget(_AwsTarget, frozen=True, kw_only=True, tag="aws_operation"):
    """An operation of any service of AWS, called with the rights of `role_arn`. The payload has its parameters."""

    arn: Annotated[
        str,
        _arn(
            f"^{aws_operations.PATTERN}$",
            "arn:aws:scheduler:::aws-sdk:<service>:<operation>",
            "The operation, not one that only reads, as universal targets of EventBridge Scheduler name "
            "it; needs `role_arn`.",
        ),
    ]
    started: Annotated[
        Annotated[
            str,
            Meta(
                pattern=r"^[A-Za-z0-9_]{1,64}(\.[A-Za-z0-9_]{1,64}){0,4}$",
                extra={"accepted": "a path in the answer, such as jobId or tasks.taskArn"},
            ),
        ]
        | None,
        Meta(
            description="Where the answer names what the operation has started; lists are followed.",
            extra={"page": "targets.md#any-operation-of-aws"},
        ),
    ] = None
    stop: Annotated[
        StopOperation | None,
        Meta(
            description="How *Cancel* stops what the operation has started, with `{{started}}` in its "
            "parameters; of "
            "`ecs:runTask` known.",
        ),
    ] = None

    def contradictions(self) -> Iterator[InvalidInput]:
        """What its fields cannot say alone."""
        yield from super().contradictions()
        if self.role_arn is None:
            yield InvalidInput(
                "", "role_arn is missing: the call has this role's rights", value=to_builtins(self),
                accepted="a role_arn, arn:aws:iam::<account>:role/<name>",
            )  # fmt: skip
        if self.stop is None:
            return
        if self.started is None:
            yield InvalidInput(
                "started", "is missing: the operation that stops needs what was started", value=None,
                accepted="a path in the answer, such as jobId",
            )  # fmt: skip
        text = json.dumps(self.stop.parameters)
        if STARTED not in text or len(text) > _STOP_CHARS:
            yield InvalidInput(
                "stop.parameters", "must say what is stopped", value=self.stop.parameters,
                accepted=f"an object of at most {_STOP_CHARS} characters with {STARTED} in a string",
            )  # fmt: skip


def _check_url(path: str, url: str) -> None:
    try:
        read_url(url)
    except BadUrl as error:
        raise InvalidInput(
            path, str(error), value=url, accepted="such as https://hooks.example.com/minute8"
        ) from None


def _check_headers(path: str, headers: dict[str, str]) -> None:
    if refused := _refused_header(headers):
        raise InvalidInput(path, refused, value=headers)


def _refused_header(headers: dict[str, str]) -> str:
    """Why the headers cannot be sent; empty if they can."""
    if len(headers) > MAX_HEADERS:
        return f"more than {MAX_HEADERS} headers"
    seen: set[str] = set()
    for name, value in headers.items():
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            return "a header's name is of A-Z a-z 0-9 -, at most 64"
        if lower in _REFUSED_HEADERS or lower.startswith(_REFUSED_HEADER_PREFIXES):
            return f"Minute8 sets {lower} itself"
        if lower in seen:
            return f"{lower} is given twice"
        if not _HEADER_VALUE.fullmatch(value):
            return f"{name} has a value that is not 1 to 1024 printable ASCII characters"
        seen.add(lower)
    return ""


CHECKED_URL: Final = Check(_check_url)


class HttpTarget(_Target, frozen=True, kw_only=True, tag="http"):
    """An HTTPS endpoint on the public internet. Minute8 waits for its answer and signs every call."""

    url: Annotated[
        str,
        Meta(
            description=f"The https URL that is called, of at most {URL_CHARS:,} characters. Its host "
            "must have a public address, "
            "its port is 443, or from 1024 on."
        ),
        CHECKED_URL,
    ]
    method: Annotated[
        Literal["POST", "PUT", "PATCH", "GET", "DELETE"], Meta(description="The HTTP method.")
    ] = "POST"
    headers: Annotated[
        dict[str, str],
        Meta(
            description=f"At most {MAX_HEADERS}, sent as they stand, with secrets for `secret://name`; "
            "shown to whoever may "
            "read the job.",
            extra={"page": "targets.md#https-endpoints"},
        ),
        Check(_check_headers),
    ] = {}


Target = (
    LambdaTarget
    | SqsTarget
    | SnsTarget
    | EventBusTarget
    | StepFunctionsTarget
    | AwsOperationTarget
    | HttpTarget
)
MODELS: Final[dict[str, type[Struct]]] = {
    str(struct.__struct_config__.tag): struct for struct in get_args(Target)
}


def stored(target: Struct) -> dict[str, Any]:
    """The target as a job holds it: without absent fields, and without the usual envelope."""
    fields: dict[str, Any] = {name: value for name, value in to_builtins(target).items() if value is not None}
    if fields["envelope"]:
        del fields["envelope"]
    return fields
