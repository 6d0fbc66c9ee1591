"""What AWS refuses, or does not answer, in a line and an exit code; for the commands that use AWS credentials."""

from __future__ import annotations

import sys

from cli.exit_codes import FAILED, INVALID, NOT_ALLOWED, NOT_FOUND, UNREACHABLE

_CREDENTIALS = "aws configure, or AWS_PROFILE, gives this command credentials"
_BY_CODE = {
    "AccessDenied": NOT_ALLOWED,
    "AccessDeniedException": NOT_ALLOWED,
    "ExpiredToken": NOT_ALLOWED,
    "ExpiredTokenException": NOT_ALLOWED,
    "InvalidClientTokenId": NOT_ALLOWED,
    "SignatureDoesNotMatch": NOT_ALLOWED,
    "UnrecognizedClientException": NOT_ALLOWED,
    "AWS.SimpleQueueService.NonExistentQueue": NOT_FOUND,
    "ResourceNotFoundException": NOT_FOUND,
}


def aws_refusal(error: Exception) -> tuple[str, int] | None:
    """What to tell, and the exit code; None if it is no error of AWS's client."""
    # Only where a command has used AWS is there anything to tell: importing it costs every command its start.
    if "botocore.exceptions" not in sys.modules:
        return None
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        code = _BY_CODE.get(error.response["Error"]["Code"], FAILED)
        return str(error) + ("; is it the right --stage?" if code == NOT_FOUND else ""), code
    if isinstance(error, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
        return f"{error}: {_CREDENTIALS}", NOT_ALLOWED
    if isinstance(error, exceptions.NoRegionError | exceptions.ProfileNotFound):
        return f"{error}: AWS_REGION and AWS_PROFILE say where to look", INVALID
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return str(error), UNREACHABLE
    return (str(error), FAILED) if isinstance(error, exceptions.BotoCoreError) else None
