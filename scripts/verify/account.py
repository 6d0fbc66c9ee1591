"""The account in which a verification runs: deploys a stage there, and removes everything that was made."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from common.config import OFF
from scripts import deploy as aws_deploy
from scripts import parameters
from scripts.session import NO_REGION, session_of
from scripts.verify.made import Resource, bucket_of, client, empty_bucket, is_gone, resources_of

# The stage is removed at the end, so nothing may hold its tables.
# Nothing is kept, nothing runs besides the trials, and nobody looks at dashboards. Lambda reports each invocation.
THROWAWAY: Final = {
    "deletionPolicy": "Delete",
    "deletionProtection": "false",
    "pointInTimeRecovery": "false",
    "canary": OFF,
    "dashboards": OFF,
    "savedQueries": OFF,
    "platformLogLevel": "INFO",
    "apiReservedConcurrency": OFF,
    "executorReservedConcurrency": OFF,
}
_PATIENCE_S: Final = 1_800
_LOOK_EVERY_S: Final = 3
# How long an invocation may still log after its function was deleted.
_LAST_WORDS_S: Final = 3
_ROUNDS: Final = 3


class StageError(RuntimeError):
    """The stage could not be deployed or removed; the message says why."""


class Account:
    """The account and region of the AWS credentials in the environment, with one stage."""

    def __init__(self, stage: str, region: str | None, profile: str | None) -> None:
        """Raises StageError if no region is set."""
        session: botocore.session.Session = session_of(profile)
        self.stage = stage
        self.region = region or session.get_config_variable("region") or ""
        self._stack = f"minute8-{stage}"
        self._profile = ["--aws-profile", profile] if profile else []
        if not self.region:
            raise StageError(NO_REGION)
        os.environ |= {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region}
        if profile:
            os.environ["AWS_PROFILE"] = profile

    def deploy(self, params: Mapping[str, str]) -> str:
        """Deploy the stage; returns the API's address. Raises StageError."""
        arguments = parameters.arguments_of(THROWAWAY | dict(params))
        options = ["--stage", self.stage, "--region", self.region, *self._profile]
        if status := aws_deploy.main([*options, *arguments]):
            raise StageError(f"the deployment failed (exit status {status})")
        return aws_deploy.outputs_of(botocore.session.get_session(), self.stage, self.region)["ApiUrl"]

    def remove(self) -> tuple[list[Resource], list[str]]:
        """Remove all that there is of the stage; returns what is left, and what went wrong.

        No error ends it before everything was tried. It looks again for what appears while it removes.
        """
        for number in range(_ROUNDS):
            if number:
                time.sleep(_LOOK_EVERY_S)
            problems = [*self._try_to_remove_stack(), *self._remove_beside()]
            time.sleep(_LAST_WORDS_S)
            resources, unknown = resources_of(self.stage, self.region)
            if not resources:
                break
        return resources, [*(problems if resources or unknown else []), *unknown]

    def _try_to_remove_stack(self) -> list[str]:
        try:
            self._remove_stack()
        except (StageError, BotoCoreError, ClientError) as error:
            return [f"could not remove the stack {self._stack}: {error}"]
        return []

    def _remove_stack(self) -> None:
        """Raises StageError if CloudFormation cannot."""
        if not self._settled():
            return
        if bucket := bucket_of(self._stack):
            empty_bucket(bucket)
        client("cloudformation").delete_stack(StackName=self._stack)
        if status := self._settled():
            raise StageError(f"it is {status}: {self._why()}")

    def _remove_beside(self) -> list[str]:
        """What is beside the stack; once there is none, everything of the stage's names."""
        problems = []
        for resource in resources_of(self.stage, self.region)[0]:
            if resource.kind == "stack":
                continue
            try:
                resource.remove()
            except (BotoCoreError, ClientError) as error:
                if not (isinstance(error, ClientError) and is_gone(error)):
                    problems.append(f"could not remove the {resource.kind} {resource.name}: {error}")
        return problems

    def _settled(self) -> str:
        """The stack's status once nothing is in progress; empty if it does not exist. Raises StageError."""
        give_up_at = time.monotonic() + _PATIENCE_S
        while (status := self._status()).endswith("_IN_PROGRESS"):
            if time.monotonic() > give_up_at:
                raise StageError(f"it is {status} for more than {_PATIENCE_S} s")
            time.sleep(_LOOK_EVERY_S)
        return status

    def _status(self) -> str:
        try:
            (description,) = client("cloudformation").describe_stacks(StackName=self._stack)["Stacks"]
        except ClientError as error:
            if not is_gone(error):
                raise
            return ""
        status = str(description["StackStatus"])
        return "" if status == "DELETE_COMPLETE" else status

    def _why(self) -> str:
        """What CloudFormation could not delete, and why."""
        events: list[dict[str, Any]] = client("cloudformation").describe_stack_events(StackName=self._stack)[
            "StackEvents"
        ]
        failed = [event for event in events if event["ResourceStatus"] == "DELETE_FAILED"]
        reasons = [
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}" for event in failed
        ]
        return "; ".join(dict.fromkeys(reasons)) or "CloudFormation does not say why"
