"""Where a verification runs: an AWS account, or an embedded AWS of its own. Deploys a stage there and removes it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

import boto3
import botocore.session

from common.config import OFF
from scripts import deploy as aws_deploy
from scripts import embedded, parameters, signing_masters, stack
from scripts.session import NO_REGION, session_of

# The stage is removed at the end, so nothing may hold its tables.
# Nothing is kept, nothing runs besides the trials, and nobody looks at dashboards.
THROWAWAY: Final = {
    "deletionPolicy": "Delete",
    "deletionProtection": "false",
    "pointInTimeRecovery": "false",
    "canary": OFF,
    "dashboards": OFF,
}
_MAX_WAIT_S: Final = 900
_MAX_REMOVALS: Final = 3


class StageError(RuntimeError):
    """The stage could not be deployed or removed; the message says why."""


class Environment(Protocol):
    """One stage in one region. While it is open, this process's AWS clients reach it."""

    stage: str
    region: str
    is_aws: bool

    def open(self) -> None: ...

    def deploy(self, params: Mapping[str, str]) -> str:
        """Deploy the stage; returns the API's address. Raises StageError."""

    def remove(self) -> None:
        """Remove the stage, however far it was deployed. Raises StageError."""

    def close(self) -> None: ...


class Account:
    """The account and region of the AWS credentials in the environment."""

    is_aws = True

    def __init__(self, stage: str, region: str | None, profile: str | None) -> None:
        """Raises StageError if no region is set."""
        session: botocore.session.Session = session_of(profile)
        self.stage = stage
        self.region = region or session.get_config_variable("region") or ""
        self._profile = ["--aws-profile", profile] if profile else []
        if not self.region:
            raise StageError(NO_REGION)
        os.environ |= {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        if profile:
            os.environ["AWS_PROFILE"] = profile

    def open(self) -> None:
        if self._status():
            raise StageError(
                f"there is a stack minute8-{self.stage} already: name a stage that does not exist"
            )

    def deploy(self, params: Mapping[str, str]) -> str:
        arguments = parameters.arguments_of(THROWAWAY | dict(params))
        if status := aws_deploy.main([*self._options(), *arguments]):
            raise StageError(f"the deployment failed (exit status {status})")
        return aws_deploy.outputs_of(botocore.session.get_session(), self.stage, self.region)["ApiUrl"]

    def remove(self) -> None:
        _until(lambda: not self._status().endswith("_IN_PROGRESS"), "the deployment did not end")
        signing_masters.remove(boto3.client("ssm"), self.stage)
        if not self._status():
            return
        for _ in range(
            _MAX_REMOVALS
        ):  # another Ctrl-C ends the tool, which is a process of this terminal too
            stack.main(["remove", "--yes", *self._options()])
            if not self._status():
                return
        # A stack that never got its bucket: the tool does not remove it.
        boto3.client("cloudformation").delete_stack(StackName=f"minute8-{self.stage}")
        _until(lambda: not self._status().endswith("_IN_PROGRESS"), "the removal did not end")
        if status := self._status():
            raise StageError(f"the stack minute8-{self.stage} is {status}: remove it by hand")

    def close(self) -> None: ...

    def _options(self) -> list[str]:
        return ["--stage", self.stage, "--region", self.region, *self._profile]

    def _status(self) -> str:
        """The stack's status; empty if it does not exist."""
        client: Any = boto3.client("cloudformation")
        try:
            (description,) = client.describe_stacks(StackName=f"minute8-{self.stage}")["Stacks"]
        except client.exceptions.ClientError as error:
            if "does not exist" not in str(error):
                raise
            return ""
        status = str(description["StackStatus"])
        return "" if status == "DELETE_COMPLETE" else status


class Embedded:
    """An embedded AWS of its own, under the strict layer, with TLS. Its stages are `local` and `test`."""

    is_aws = False
    region = "us-east-1"

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self._directory = tempfile.TemporaryDirectory(prefix="minute8-verify-")

    def open(self) -> None:
        try:
            self._embedded = embedded.start(Path(self._directory.name), 0, strict=True, tls=True, tied=True)
        except embedded.EmbeddedError as error:
            raise StageError(str(error)) from error
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            os.environ.pop(name, None)
        os.environ |= self._embedded.env()

    def deploy(self, params: Mapping[str, str]) -> str:
        try:
            deployed = embedded.deploy(self._embedded, stage=self.stage, params=params)
        except embedded.EmbeddedError as error:
            raise StageError(str(error)) from error
        return deployed.api_url

    def remove(self) -> None:
        try:
            embedded.remove(self._embedded, stage=self.stage)
        except embedded.EmbeddedError as error:
            raise StageError(str(error)) from error

    def close(self) -> None:
        embedded.kill(Path(self._directory.name))
        with suppress(OSError):
            self._directory.cleanup()


def leftovers(stage: str, *names: str) -> list[str]:
    """What still exists of the stage and of functions and queues with these names."""
    prefixes = (f"minute8-{stage}-", *names)

    def pages(service: str, operation: str, key: str) -> list[Any]:
        client: Any = boto3.client(service)  # type: ignore[call-overload]
        return [item for page in client.get_paginator(operation).paginate() for item in page.get(key, [])]

    titles = [
        *(
            f"function {function['FunctionName']}"
            for function in pages("lambda", "list_functions", "Functions")
        ),
        *(f"table {table}" for table in pages("dynamodb", "list_tables", "TableNames")),
        *(f"queue {url.rpartition('/')[2]}" for url in pages("sqs", "list_queues", "QueueUrls")),
        *(f"role {role['RoleName']}" for role in pages("iam", "list_roles", "Roles")),
        *(
            f"log-group {group['logGroupName'].rpartition('/')[2]}"
            for group in pages("logs", "describe_log_groups", "logGroups")
        ),
        *(
            f"parameter minute8-{stage}-{parameter['Name'].rpartition('/')[2]}"
            for parameter in boto3.client("ssm").get_parameters_by_path(Path=f"/minute8/{stage}")[
                "Parameters"
            ]
        ),
        *(f"bucket {bucket['Name']}" for bucket in boto3.client("s3").list_buckets()["Buckets"]),
    ]
    return sorted(
        title
        for title in titles
        for name in [title.partition(" ")[2]]
        if name.startswith(prefixes) or name.removeprefix("minute8-verify-").startswith(names)
    )


def _until(holds: Callable[[], bool], otherwise: str) -> None:
    give_up_at = time.monotonic() + _MAX_WAIT_S
    while not holds():
        if time.monotonic() > give_up_at:
            raise StageError(f"{otherwise} within {_MAX_WAIT_S} s")
        time.sleep(3)
