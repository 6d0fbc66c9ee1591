"""Register the canary of a stage: python -m scripts.canary --stage prod

Creates its tenant and its job, or makes them what they should be; a second time changes nothing. If the stage has no
canary function (parameter `canary`), the job is deleted. docs/service-levels.md explains the canary.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.clock import SystemClock
from common.errors import AlreadyExists, Minute8Error, NotFound
from common.jobs.job import ACTIVE
from common.platform.tenants import Tenants
from common.storage.aws import new_session
from common.storage.table import Table
from minute8.canary.handler import JOB_ID, TENANT
from scripts.demo.stage import Stage

_NAME = "Minute8's own canary: one run a minute, see docs/service-levels.md"


def main(arguments: list[str] | None = None) -> int:
    """Register it where AWS's environment variables point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.canary", description=__doc__)
    parser.add_argument("--stage", required=True)
    options = parser.parse_args(arguments)
    region = new_session().get_config_variable("region")
    try:
        print(f"canary: {register(Stage({'AWS_REGION': region}, options.stage), options.stage)}")
    except (BotoCoreError, ClientError, Minute8Error) as error:
        print(f"canary: {error}", file=sys.stderr)
        return 1
    return 0


def register(stage: Stage, name: str) -> str:
    """Make the stage's canary what its function says; returns what it did. Raises Minute8Error, ClientError."""
    arn = _function(stage, f"canary-minute8-{name}")
    if arn is None:
        try:
            stage.store.delete(TENANT, JOB_ID)
        except NotFound:
            return "off"
        return "off: its job is deleted"
    _allow(Tenants(Table(stage.client("dynamodb"), f"minute8-{name}-tenants")), arn)
    with suppress(NotFound):
        existing = stage.store.get(TENANT, JOB_ID)
        if existing.state == ACTIVE and existing.spec.target["arn"] == arn:
            return "registered already"
    if stage.registry.put(TENANT, JOB_ID, definition(arn)).state != ACTIVE:
        stage.store.resume(TENANT, JOB_ID)
    return f"registered, and due each minute: {TENANT}/{JOB_ID}"


def definition(arn: str) -> dict[str, Any]:
    """The job. It is not tried again: the next one is due before that would say more."""
    return {
        "name": "Runs each minute, to notice when jobs do not",
        "schedule": {"cron": "* * * * *", "spread_s": 0},
        "target": {"kind": "lambda", "arn": arn},
        "retry": {"max_attempts": 1},
        "catch_up": "none",
        "start_deadline_s": 300,
    }


def _function(stage: Stage, name: str) -> str | None:
    functions = stage.client("lambda")
    try:
        return str(functions.get_function_configuration(FunctionName=name)["FunctionArn"])
    except functions.exceptions.ResourceNotFoundException:
        return None


def _allow(tenants: Tenants, arn: str) -> None:
    """The tenant may call the one function. Its runs are kept for two days."""
    now = SystemClock().now()
    settings = {"allowed_targets": [arn], "retention_days": 2}
    try:
        tenants.create(TENANT, _NAME, now, settings)
    except AlreadyExists:
        tenants.edit(TENANT, settings, now)


if __name__ == "__main__":
    sys.exit(main())
