"""The AWS session of a script that works on a deployed stage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import botocore.session

from common.storage.aws import new_session

NO_REGION = "no region: set AWS_REGION, or a region in the AWS profile, or give --region"
NO_CREDENTIALS = (
    "no AWS credentials: `aws configure` stores some; AWS_PROFILE, or --aws-profile in ARGS, selects others"
)


def exit_status(main: Callable[[], int], stopped: str) -> int:
    """That of a command's `main`. After Ctrl-C it prints `stopped`, in place of a traceback."""
    try:
        return main()
    except KeyboardInterrupt:
        print(f"\n{stopped}", file=sys.stderr)
        return 130


def session_of(profile: str | None) -> botocore.session.Session:
    """A session with AWS_REGION, AWS_DEFAULT_REGION and the profile, as in the command `minute8`."""
    session: botocore.session.Session = new_session()
    if profile:
        session.set_config_variable("profile", profile)
        if not os.environ.get("AWS_REGION"):
            session.set_config_variable("region", session.get_scoped_config().get("region"))
    return session
