"""The AWS session of a script that works on a deployed stage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import botocore.session
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as NoConnection,
)

from common.storage.aws import new_session

NO_REGION = "no region: set AWS_REGION, or a region in the AWS profile, or give --region"
NO_CREDENTIALS = (
    "no AWS credentials: `aws configure` stores some; AWS_PROFILE, or --aws-profile in ARGS, selects others"
)


# Every caller may ask STS who it is: a refusal is about the credentials.
_NOT_TAKEN = (
    "AWS does not take the credentials in {region}: {error}. If they have expired, sign in again (`aws sso login`,"
    " `aws configure`). A region that the account has not enabled takes none"
)
_NO_ANSWER = "no answer from AWS in {region}: {error}. Is this the name of a region, and is there a network?"


def caller_problem(sts: Callable[[], Any], region: str) -> str | None:
    """Why nothing can be asked of AWS in this region, in one sentence or two; None if AWS knows the caller.

    `sts` makes a client of STS there.
    """
    try:
        sts().get_caller_identity()
    except NoCredentialsError:
        return NO_CREDENTIALS
    except (HTTPClientError, NoConnection) as error:
        return _NO_ANSWER.format(region=region, error=error)
    except (ClientError, CredentialRetrievalError, SSOError, TokenRetrievalError) as error:
        return _NOT_TAKEN.format(region=region, error=error)
    except BotoCoreError as error:
        return str(error)
    return None


def exit_status(main: Callable[[], int], stopped: str) -> int:
    """That of a command's `main`. After Ctrl-C it prints `stopped`, and what AWS's client refuses, not a traceback."""
    try:
        return main()
    except KeyboardInterrupt:
        print(f"\n{stopped}", file=sys.stderr)
        return 130
    except (BotoCoreError, ClientError) as error:
        print(error, file=sys.stderr)
        return 2


def session_of(profile: str | None) -> botocore.session.Session:
    """A session with AWS_REGION, AWS_DEFAULT_REGION and the profile, as in the command `minute8`."""
    session: botocore.session.Session = new_session()
    if profile:
        session.set_config_variable("profile", profile)
        if not os.environ.get("AWS_REGION"):
            session.set_config_variable("region", session.get_scoped_config().get("region"))
    return session
