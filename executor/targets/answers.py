"""A target's answer as an outcome: AWS errors by code, retry directives in a result, texts cut to size."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    ReadTimeoutError,
)

from common.errors import shown
from common.runs.outcome import Outcome

# Refused before any work began. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html and
# the services' own lists of errors.
THROTTLED: Final = frozenset(
    {
        *("EC2ThrottledException", "KMSThrottlingException", "KmsThrottled", "KmsThrottlingException"),
        *("LimitExceededException", "OverLimit", "PriorRequestNotComplete", "RequestLimitExceeded"),
        *("RequestThrottled", "RequestThrottledException", "SlowDown", "Throttled", "ThrottledException"),
        *("Throttling", "ThrottlingException", "TooManyRequestsException", "ExecutionLimitExceeded"),
    }
)
# AWS's failures, not the target's: as throttled ones they cost no attempt, and are tried again until they pass.
SERVICE_FAILED: Final = frozenset(
    {
        *("ConnectTimeoutError", "EndpointConnectionError", "ProxyConnectionError"),
        *("InternalError", "InternalException", "InternalFailure", "InternalServerError"),
        *("ServiceException", "ServiceUnavailable", "ServiceUnavailableException"),
    }
)
# A retry gets the same answer until somebody changes something. Codes in neither list may be temporary.
PERMANENT: Final = frozenset(
    {
        *("AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException"),
        *("KMSAccessDenied", "KMSAccessDeniedException", "KMSDisabledException", "KMSNotFoundException"),
        *("KmsAccessDenied", "KmsAccessDeniedException", "KmsDisabled", "KmsInvalidKeyUsage", "KmsNotFound"),
        *("KMSOptInRequired", "KmsOptInRequired", "OptInRequired"),
        *(
            "InvalidAddress",
            "InvalidArn",
            "InvalidArgument",
            "InvalidExecutionInput",
            "InvalidMessageContents",
        ),
        *("InvalidName", "InvalidParameter", "InvalidParameterException", "InvalidParameterValue"),
        *("InvalidParameterValueException", "InvalidRequestContentException", "InvalidRuntimeException"),
        *("InvalidSecurity", "InvalidSecurityException", "InvalidSecurityGroupIDException"),
        *("InvalidSubnetIDException", "InvalidZipFileException", "MalformedDetail", "MissingParameter"),
        *("AWS.SimpleQueueService.NonExistentQueue", "AWS.SimpleQueueService.UnsupportedOperation"),
        *("EndpointDisabled", "EndpointDisabledException", "NoPublishedVersionException", "NotFound"),
        *("NotFoundException", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException"),
        *("PlatformApplicationDisabledException", "QueueDoesNotExist", "RecursiveInvocationException"),
        *("RegionDisabledException", "RequestTooLargeException", "ResourceNotFoundException"),
        *("SerializedRequestEntityTooLargeException", "StateMachineDeleting", "StateMachineDoesNotExist"),
        *("UnsupportedMediaTypeException", "UnsupportedOperation", "ValidationError", "ValidationException"),
    }
)


def refused_by_aws(error: BotoCoreError | ClientError, timeout_s: float) -> Outcome:
    """The outcome of a call that AWS refused or did not answer."""
    if isinstance(error, ReadTimeoutError):
        return timed_out(timeout_s)
    if isinstance(error, ConnectTimeoutError) or not isinstance(error, ClientError):
        unreached = failed(type(error).__name__, str(error))
        from common.storage.domains import unknown_region  # only outages need it

        # Only an endpoint that exists can be away: else the job's owner has to change its target.
        endpoint = urlsplit(str(error.kwargs.get("endpoint_url", ""))).hostname or ""
        return replace(unreached, throttled=unreached.throttled and not unknown_region(endpoint))
    details = error.response.get("Error", {})
    return failed(
        details.get("Code", "ClientError"),
        details.get("Message", ""),
        request_id=request_id(error.response),
        retry_after_s=seconds(error.response.get("retryAfterSeconds")),
    )


def timed_out(timeout_s: float) -> Outcome:
    """The outcome of a call whose answer did not come in time. What was called may go on."""
    return Outcome(
        ok=False, error_type="TimedOut", error=f"no answer within {timeout_s:g} s", unanswered=True
    )


def failed(code: str, message: str, *, request_id: str = "", retry_after_s: float | None = None) -> Outcome:
    """The outcome of an AWS error code."""
    return Outcome(
        ok=False,
        permanent=code in PERMANENT,
        throttled=code in THROTTLED or code in SERVICE_FAILED,
        error_type=code,
        error=message,
        request_id=request_id,
        retry_after_s=retry_after_s,
    )


def seconds(text: object) -> float | None:
    """Seconds from a header or a field; None if the value is not valid."""
    try:
        seconds = float(str(text))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def retry_directive(body: bytes) -> Outcome | None:
    """What a target's result says about a retry. None: the result has no directive.

    `{"minute8": {"retry_after_s": 60}}` or `{"minute8": {"permanent": true}}`. Both may have `error`.
    """
    if b'"minute8"' not in body:  # do not parse results of megabytes needlessly
        return None
    try:
        result = json.loads(body)
    except (ValueError, RecursionError):
        return None
    directive = result.get("minute8") if isinstance(result, dict) else None
    if not isinstance(directive, dict):
        return None
    message = _text(directive.get("error", ""))
    if directive.get("permanent") is True:
        return Outcome(ok=False, permanent=True, error_type="Permanent", error=message)
    if "retry_after_s" not in directive:
        return None
    requested_s = directive["retry_after_s"]
    if (
        isinstance(requested_s, bool)
        or not isinstance(requested_s, int | float)
        or (after_s := seconds(requested_s)) is None
    ):
        error = f"retry_after_s must be a number of seconds: {shown(requested_s)}"
        return Outcome(ok=False, error_type="BadAnswer", error=error)
    return Outcome(ok=False, retry_after_s=after_s, error_type="RetryLater", error=message)


def with_details(outcome: Outcome, log_tail: str, request_id: str) -> Outcome:
    return replace(outcome, log_tail=log_tail, request_id=request_id)


def request_id(answer: Mapping[str, Any]) -> str:
    return str(answer.get("ResponseMetadata", {}).get("RequestId", ""))


def _text(value: object) -> str:
    return value if isinstance(value, str) else shown(value)
