"""The error lines and the exit code of refused or unanswered requests. Loaded only when a command has failed."""

from __future__ import annotations

import re
import sys
from typing import Final

from common.errors import AlreadyExists, Busy, Conflict, InvalidInput, Minute8Error, NotFound
from minute8.cli.options import ExitCode
from minute8.cli.output import problem_lines, visible
from minute8.cli.session import Session
from minute8.client import Minute8Problem, Unreachable

_BY_STATUS = {
    400: ExitCode.INVALID,
    413: ExitCode.INVALID,
    415: ExitCode.INVALID,
    422: ExitCode.INVALID,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.CONFLICT,
    412: ExitCode.CONFLICT,
    401: ExitCode.NOT_ALLOWED,
    403: ExitCode.NOT_ALLOWED,
    429: ExitCode.UNREACHABLE,
    503: ExitCode.UNREACHABLE,
}
_BY_ERROR: dict[type[Exception], int] = {
    InvalidInput: ExitCode.INVALID,
    NotFound: ExitCode.NOT_FOUND,
    AlreadyExists: ExitCode.CONFLICT,
    Conflict: ExitCode.CONFLICT,
    Busy: ExitCode.UNREACHABLE,
}
# The parser's kinds of problems, in the words of Minute8's other refusals.
_OF_OPTIONS: Final = {
    "int_parsing": ("must be a whole number", "such as 60"),
    "float_parsing": ("must be a number", "such as 0.5"),
    "greater_than_equal": ("is too small", "at least {ge}"),
    "less_than_equal": ("is too large", "at most {le}"),
}
_NO_JOB: Final = re.compile(r"no job '([^']+)'")
_NO_RUN: Final = re.compile(r"no run '([^']+)'")
_CREDENTIALS = "aws configure, or AWS_PROFILE, gives this command credentials"
_BY_CODE = {
    "AccessDenied": ExitCode.NOT_ALLOWED,
    "AccessDeniedException": ExitCode.NOT_ALLOWED,
    "ExpiredToken": ExitCode.NOT_ALLOWED,
    "ExpiredTokenException": ExitCode.NOT_ALLOWED,
    "InvalidClientTokenId": ExitCode.NOT_ALLOWED,
    "SignatureDoesNotMatch": ExitCode.NOT_ALLOWED,
    "UnrecognizedClientException": ExitCode.NOT_ALLOWED,
    "AWS.SimpleQueueService.NonExistentQueue": ExitCode.NOT_FOUND,
    "ResourceNotFoundException": ExitCode.NOT_FOUND,
}


def unquoted(error: Exception) -> str:
    """A hint to quote a cron expression that the shell split into words; empty for other errors."""
    command = getattr(getattr(error, "ctx", None), "info_name", "")
    words = re.findall(r"unexpected extra argument.*? \((.*)\)", str(getattr(error, "message", "")))
    if not words or not re.search(r"(^| )(\*|\d|[A-Z]{3}|\S+\.\S+)", words[0]):
        return ""
    written = {
        "create": "--cron '0 9 * * *'",
        "edit": "--cron '0 9 * * *'",
        "preview": "minute8 preview '0 9 * * *'",
    }
    return f"put the cron expression in quotes: {written[command]}" if command in written else ""


def reword(error: Exception) -> None:
    """Give the parser's message about an option's value the words of Minute8's other refusals, as data."""
    if find_problems := getattr(error.__cause__, "errors", None):
        from common.hints import seconds_hint  # only for a message

        problem = find_problems()[0]
        message, accepted = _OF_OPTIONS.get(problem["type"], ("is not valid", ""))
        accepted = accepted.format(**problem.get("ctx") or {})
        if problem["type"] == "int_parsing":
            accepted = seconds_hint(problem["input"]) or accepted
        error.message = (  # type: ignore[attr-defined]
            f"{message} (got {problem['input']!r})" + (f"; accepted: {accepted}" if accepted else "")
        )
    if message := getattr(error, "message", ""):  # of a file that somebody else wrote
        error.message = visible(message)  # type: ignore[attr-defined]


def near_job(error: Exception, session: Session | None) -> str:
    """The job that a mistyped id probably means. Asks the API for at most two pages of jobs; never raises."""
    if (no_run := _NO_RUN.fullmatch(getattr(error, "detail", ""))) and ":" not in no_run[1]:
        return f"did you mean the newest run of a job? minute8 runs show {no_run[1]} --last"
    match = _NO_JOB.fullmatch(getattr(error, "detail", ""))
    if session is None or not match:
        return ""
    from difflib import get_close_matches  # only for a message

    job_id = match[1]
    try:
        with session.client() as client:
            near: list[str] = []
            for prefix in dict.fromkeys((job_id[:2], None)):
                ids = [job["job_id"] for job in client.list_jobs_page(limit=200, name_prefix=prefix)["jobs"]]
                near = near or get_close_matches(job_id, ids, n=3, cutoff=0.6)
    except (Minute8Problem, Unreachable):  # the refusal itself is what matters
        return ""
    return f"did you mean {' or '.join(near)}?" if near else ""


def refusal(error: Exception) -> tuple[list[str], int] | None:
    """The lines to print and the exit code; None for a bug of the command."""
    if isinstance(error, Minute8Problem):
        return problem_lines(error), _BY_STATUS.get(error.status, ExitCode.FAILED)
    if isinstance(error, Unreachable):
        return [str(error)], ExitCode.UNREACHABLE
    if isinstance(error, Minute8Error):
        return [str(error)], _BY_ERROR.get(type(error), ExitCode.FAILED)
    aws_refusal = _aws_refusal(error)
    return ([aws_refusal[0]], aws_refusal[1]) if aws_refusal else None


def _aws_refusal(error: Exception) -> tuple[str, int] | None:
    # If no command has used AWS, the error cannot be AWS's. botocore is slow to load.
    if "botocore.exceptions" not in sys.modules:
        return None
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        code = _BY_CODE.get(error.response["Error"]["Code"], ExitCode.FAILED)
        return str(error) + ("; is it the right --stage?" if code == ExitCode.NOT_FOUND else ""), code
    if isinstance(error, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
        return f"{error}: {_CREDENTIALS}", ExitCode.NOT_ALLOWED
    if isinstance(error, exceptions.NoRegionError | exceptions.ProfileNotFound):
        return f"{error}: AWS_REGION and AWS_PROFILE say where to look", ExitCode.INVALID
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return str(error), ExitCode.UNREACHABLE
    return (str(error), ExitCode.FAILED) if isinstance(error, exceptions.BotoCoreError) else None
