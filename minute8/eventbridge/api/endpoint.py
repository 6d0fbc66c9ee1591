"""EventBridge Scheduler's API (2021-06-30) for unmodified clients of AWS: signed requests, AWS's answers."""

from __future__ import annotations

import json
import posixpath
import re
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote

from common import telemetry
from common.errors import (
    AlreadyExists,
    Busy,
    Conflict,
    Forbidden,
    InvalidInput,
    KeyReused,
    NotFound,
    QuotaExceeded,
    RateExceeded,
    RequestUnderWay,
    RevisionMismatch,
    TenantSuspended,
    Unauthenticated,
    shown,
)
from common.platform.api_keys import Credential
from common.tenants.audit import Author
from minute8.api.http.problems import Malformed, MethodNotAllowed, NoSuchRoute, TooLarge
from minute8.api.http.refusals import log_refused
from minute8.api.http.requests import bearer, raw_body, read_json
from minute8.api.services import Services
from minute8.eventbridge.api import groups, schedules
from minute8.eventbridge.api.operation import Operation, SchedulerRequest
from minute8.eventbridge.api.signature import (
    SignatureRefused,
    SignedRequest,
    check_signature,
    read_authorization,
)
from minute8.eventbridge.errors import as_header, aws_text, own_text
from minute8.eventbridge.names import AwsAccount
from minute8.eventbridge.shapes import without_nulls

Event = dict[str, Any]

OPERATIONS: Final[tuple[Operation, ...]] = (*schedules.OPERATIONS, *groups.OPERATIONS)

# The operations by method, for each collection with and without a name or ARN after it.
_METHODS: Final[dict[tuple[str, bool], dict[str, Operation]]] = {}
for _operation in OPERATIONS:
    _METHODS.setdefault((_operation.collection, _operation.has_label), {})[_operation.method] = _operation

# An Input of 256 KB is a text in JSON, with escapes.
MAX_BODY: Final = 1024 * 1024
_MAX_QUERY: Final = 16 * 1024
# Made once: json.dumps makes one for each answer.
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_MAX_LABEL_CHARS: Final = 1_100
_LABELLED: Final = re.compile(
    rf"(.*?/(?:{'|'.join(sorted({name for name, _ in _METHODS}))})/)(.+)", re.DOTALL
)
# AWS's SDKs show the headers of an error's answer.
ADVICE_HEADER: Final = "x-minute8-advice"

# AWS's errors by ours. There is no other such table.
_ERRORS: Final[Mapping[type[Exception], tuple[HTTPStatus, str]]] = {
    InvalidInput: (HTTPStatus.BAD_REQUEST, "ValidationException"),
    Malformed: (HTTPStatus.BAD_REQUEST, "ValidationException"),
    TooLarge: (HTTPStatus.BAD_REQUEST, "ValidationException"),
    NotFound: (HTTPStatus.NOT_FOUND, "ResourceNotFoundException"),
    NoSuchRoute: (HTTPStatus.NOT_FOUND, "UnknownOperationException"),
    MethodNotAllowed: (HTTPStatus.NOT_FOUND, "UnknownOperationException"),
    AlreadyExists: (HTTPStatus.CONFLICT, "ConflictException"),
    Conflict: (HTTPStatus.CONFLICT, "ConflictException"),
    KeyReused: (HTTPStatus.CONFLICT, "ConflictException"),
    RevisionMismatch: (HTTPStatus.CONFLICT, "ConflictException"),
    QuotaExceeded: (HTTPStatus.PAYMENT_REQUIRED, "ServiceQuotaExceededException"),
    # SDKs send these again by themselves.
    RateExceeded: (HTTPStatus.TOO_MANY_REQUESTS, "ThrottlingException"),
    RequestUnderWay: (HTTPStatus.TOO_MANY_REQUESTS, "ThrottlingException"),
    Busy: (HTTPStatus.TOO_MANY_REQUESTS, "ThrottlingException"),
    Forbidden: (HTTPStatus.FORBIDDEN, "AccessDeniedException"),
    TenantSuspended: (HTTPStatus.FORBIDDEN, "AccessDeniedException"),
    Unauthenticated: (HTTPStatus.FORBIDDEN, "UnrecognizedClientException"),
}


def answer(services: Services, event: Event, place: str) -> Event:
    """The answer to a request at `place` below the base path. Never raises."""
    request_id = str((event.get("requestContext") or {}).get("requestId") or "")
    credential, operation = None, None
    try:
        operation, label = _route(event["requestContext"]["http"]["method"], place)
        headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
        query = parsed_query(event.get("rawQueryString") or "")
        body = raw_body(event.get("body"), bool(event.get("isBase64Encoded")), MAX_BODY)
        now = services.clock.now()
        credential, signature, signed_path = _authenticate(services, event, headers, query, body, now)
        services.admit(credential, operation.role, now)
        request = SchedulerRequest(
            operation=operation.name,
            tenant=credential.tenant,
            now=now,
            label=_label_in(signed_path, label),
            query=operation.read_query(query),
            body=_object(body) if operation.takes_body else {},
            account=AwsAccount.in_region(
                services.region, str(event["requestContext"].get("accountId") or "000000000000")
            ),
            signature=signature,
        )
        acting = services
        if operation.role != "read":
            address = str(event["requestContext"]["http"].get("sourceIp") or "")
            author = Author(credential.by, f"scheduler:{operation.name}", address)
            acting = services.acting_for(credential, author)
        return _answer(HTTPStatus.OK, request_id, operation.answer(acting, request))
    except Exception as error:  # noqa: BLE001  the client gets AWS's form of any error
        refusal = _refusal(error, request_id)
        if credential and operation:
            log_refused(credential, f"scheduler:{operation.name}", HTTPStatus(refusal["statusCode"]))
        return refusal


def parsed_query(text: str) -> list[tuple[str, str]]:
    """The parameters, decoded, in their order. A plus is a plus: SDKs write a space as %20. Raises InvalidInput."""
    if len(text) > _MAX_QUERY:
        raise InvalidInput("query", f"has {len(text)} characters", accepted=f"at most {_MAX_QUERY}")
    return parse_qsl(text.replace("+", "%2B"), keep_blank_values=True)


def _route(method: str, place: str) -> tuple[Operation, str]:
    """The operation, and the name or ARN in its path. Raises NoSuchRoute, MethodNotAllowed."""
    collection, slash, rest = place.partition("/")
    label = unquote(rest)
    by_method = _METHODS.get((collection, bool(slash)), {})
    if not by_method or len(label) > _MAX_LABEL_CHARS:
        raise NoSuchRoute(f"nothing is at {shown(place)}")
    if method not in by_method:
        raise MethodNotAllowed(method, sorted(by_method))
    return by_method[method], label


def _authenticate(
    services: Services,
    event: Event,
    headers: Mapping[str, str],
    query: list[tuple[str, str]],
    body: bytes,
    now: float,
) -> tuple[Credential, str, str]:
    """The credential, the signature, and the signed path of a request.

    Minute8's own command sends its key in place of a signature.

    Raises SignatureRefused, Unauthenticated, IssuerUnreachable, Busy.
    """
    if headers.get("authorization", "").startswith("Bearer "):
        return services.authenticate(bearer(headers), now), secrets.token_hex(), ""
    claimed = read_authorization(headers, services.region, now)
    secret = services.masters.secret_of(claimed.access_key_id, now)
    if secret is None:
        raise Unauthenticated("the access key id is not valid")
    credential = services.tenants.api_keys.owner_of_pair(claimed.access_key_id, now)
    method = event["requestContext"]["http"]["method"]
    paths = possible_paths(services.settings.api_path_prefix, event["rawPath"])
    signed_path = check_signature(claimed, secret, SignedRequest(method, paths, query, headers, body))
    return credential, claimed.signature, signed_path


def _label_in(signed_path: str, label: str) -> str:
    """The name or ARN that the client signed. A gateway's decoding hides whether a `%` is a part of it."""
    labelled = _LABELLED.fullmatch(signed_path)
    return unquote(labelled[2]) if labelled else label


def possible_paths(prefix: str, raw_path: str) -> tuple[str, ...]:
    """The paths that the client may have sent, encoded once: some gateways decode the path, and others do not.

    All forms mean the same, because a name or an ARN is one label. SDKs sign a path without `.` and `..`.
    """
    as_sent = f"{prefix}{raw_path}"
    labelled = _LABELLED.fullmatch(raw_path)
    if labelled is None:
        return (as_sent,)
    before, label = labelled.groups()
    if label in (".", ".."):
        return (as_sent, posixpath.normpath(as_sent))
    names = (unquote(label), label)  # the label itself, if a gateway decoded it
    return tuple(dict.fromkeys((as_sent, *(f"{prefix}{before}{quote(name, safe='-_.~')}" for name in names))))


def _object(body: bytes) -> dict[str, Any]:
    fields = read_json(body) if body.strip() else {}
    if not isinstance(fields, dict):
        raise InvalidInput("body", "must be an object", value=fields, accepted="a JSON object")
    return dict(without_nulls(fields))


def _refusal(error: Exception, request_id: str) -> Event:
    status, name = HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerException"
    message, advice = f"Minute8 failed; the request id is {request_id}", {}
    if isinstance(error, SignatureRefused):
        status, name, message = HTTPStatus.FORBIDDEN, error.name, str(error)
    elif kind := next((kind for known, kind in _ERRORS.items() if isinstance(error, known)), None):
        (status, name), message = kind, own_text(error)
        if of_aws := aws_text(error):
            message, advice = of_aws, {ADVICE_HEADER: as_header(message)}
    else:
        telemetry.logger().error("request failed", request_id=request_id, exc_info=error)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        advice["Retry-After"] = str(getattr(error, "retry_after_s", 1))
    return _answer(status, request_id, {"Message": message}, **{"x-amzn-ErrorType": name}, **advice)


def _answer(status: HTTPStatus, request_id: str, body: Any, **headers: str) -> Event:
    return {
        "statusCode": status.value,
        "headers": {
            "Content-Type": "application/json",
            "x-amzn-RequestId": request_id,
            "Cache-Control": "no-store",
            **headers,
        },
        "body": _JSON.encode(body),
        "isBase64Encoded": False,
    }
