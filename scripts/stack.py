"""Take a stage back to an earlier deployment, or remove it: python -m scripts.stack rollback --stage prod

A rollback moves the functions' aliases to the versions of the deployment before: code, layers and settings. With
--timestamp it redeploys what the deployment bucket keeps, the template included, and keeps the tables that this
template lacks. It changes no data. Its region is found as for `make deploy`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from minute8.cli.doctor.inventory import STAGES_TO_LOSE
from scripts import kept_tables, versions
from scripts.build_layer import ROOT
from scripts.parameters import stage_problems
from scripts.session import NO_REGION, caller_problem, exit_status, session_of
from scripts.verify.made import is_gone

_OSLS: Final = ROOT / "node_modules" / ".bin" / "osls"
# serverless/minute8/prod/1763694720000-2026-11-21T03:12:00.000Z/…
_DEPLOYMENT: Final = re.compile(r"serverless/minute8/[^/]+/(\d+)-([^/]+)/")


def main(arguments: list[str] | None = None) -> int:
    """Run the verb; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.stack", description=__doc__)
    parser.add_argument("verb", choices=["rollback", "remove"])
    parser.add_argument("--stage", required=True)
    parser.add_argument("--region", "-r")
    parser.add_argument("--aws-profile")
    parser.add_argument(
        "--timestamp",
        "-t",
        help="of `rollback`: redeploy this deployment of the bucket's; `before`: the one before",
    )
    parser.add_argument("--yes", action="store_true", help="of `remove`: do not ask")
    options, osls_options = parser.parse_known_args(arguments)
    session = session_of(options.aws_profile)
    region = options.region or session.get_config_variable("region")
    refusals = stage_problems(options.stage) + ([] if region else [NO_REGION])
    sts = partial(session.create_client, "sts", region_name=region)
    if not refusals and (problem := caller_problem(sts, str(region))):
        refusals.append(problem)
    if refusals:
        print("\n".join(f"{options.verb}: {problem}" for problem in refusals), file=sys.stderr)
        return 2
    try:
        return _do(options, osls_options, session, region)
    except (BotoCoreError, ClientError, LookupError) as error:
        print(f"{options.verb}: {error}", file=sys.stderr)
        return 1


def _do(
    options: argparse.Namespace, osls_options: list[str], session: botocore.session.Session, region: str
) -> int:
    """Run the verb; returns the exit status. Raises LookupError and botocore's errors."""
    if not _exists(session, options.stage, region):
        raise LookupError(f"there is no stage {options.stage} in {region}")
    if options.verb == "remove" and not options.yes and not _agrees(options.stage, region):
        print("remove: nothing was removed", file=sys.stderr)
        return 2
    command = [options.verb, "--stage", options.stage, "--region", region]
    if options.verb == "rollback":
        if not options.timestamp:
            return _go_back(session, options.stage, region)
        timestamp = _prepared(session, options.stage, region, options.timestamp)
        print(f"rollback: stage {options.stage} in {region} to the deployment {timestamp}", flush=True)
        command += ["--timestamp", timestamp]
    if options.aws_profile:
        command += ["--aws-profile", options.aws_profile]
    environment = {**os.environ, "NODE_NO_WARNINGS": "1"}
    return subprocess.run(
        [str(_OSLS), *command, *osls_options], cwd=ROOT, env=environment, check=False
    ).returncode


def _exists(session: botocore.session.Session, stage: str, region: str) -> bool:
    """Raises botocore's errors."""
    cloudformation: Any = session.create_client("cloudformation", region_name=region)
    try:
        return bool(cloudformation.describe_stacks(StackName=f"minute8-{stage}")["Stacks"])
    except ClientError as error:
        if not is_gone(error):
            raise
        return False


def _prepared(session: botocore.session.Session, stage: str, region: str, timestamp: str) -> str:
    """The timestamp of a deployment whose template has all tables. Raises LookupError and botocore's errors."""
    if timestamp == "before":
        timestamp = previous(*deployments(session, stage, region))
    for name in keep_tables(session, stage, region, timestamp):
        print(f"rollback: {name} stays in the stack with its items; that deployment did not have it")
    return timestamp


def _go_back(session: botocore.session.Session, stage: str, region: str) -> int:
    """Move the aliases, and say what else there is. Raises LookupError and botocore's errors."""
    functions: Any = session.create_client("lambda", region_name=region)
    try:
        deployment = versions.go_back(functions, stage)
    except LookupError as error:
        raise LookupError(f"{error}; ARGS='--timestamp before' redeploys the stack before") from None
    print(
        f"rollback: the functions of stage {stage} in {region} run deployment {deployment}."
        " Roles, alarms and queues stay as they are; ARGS='--timestamp before' redeploys the whole stack before."
    )
    return 0


def _agrees(stage: str, region: str) -> bool:
    """Whether the person at the terminal types the stage's name."""
    if stage in STAGES_TO_LOSE:
        return True
    print(
        f"This removes stage {stage} in {region}: its API and the API's address, and the executions and retries that"
        f" wait in its queues.\nIts tables stay, unless it was deployed with deletionPolicy=Delete."
        " ARGS=--yes does not ask."
    )
    try:
        return input("The name of the stage: ").strip() == stage
    except EOFError:
        return False


def deployments(session: botocore.session.Session, stage: str, region: str) -> tuple[str, set[str]]:
    """The timestamp of the deployment that runs, and of all that the bucket keeps. Raises LookupError."""
    cloudformation: Any = session.create_client("cloudformation", region_name=region)
    kept = timestamps(stored_keys(cloudformation, session.create_client("s3", region_name=region), stage)[1])
    resources = _template(cloudformation, stage)["Resources"]
    (running,) = timestamps([resources["ExecutorLambdaFunction"]["Properties"]["Code"]["S3Key"]])
    return running, kept


def keep_tables(session: botocore.session.Session, stage: str, region: str, timestamp: str) -> list[str]:
    """Add the stack's tables to the template of this deployment, so that a rollback removes none.

    Returns the logical names of those that it lacked. Raises LookupError.
    """
    cloudformation: Any = session.create_client("cloudformation", region_name=region)
    s3: Any = session.create_client("s3", region_name=region)
    bucket, keys = stored_keys(cloudformation, s3, stage)
    for key in keys:
        match = _DEPLOYMENT.match(key)
        if match and timestamp in (match[1], match[2]) and key == f"{match[0]}{kept_tables.TEMPLATE}":
            return kept_tables.keep_tables(s3, bucket, key, _template(cloudformation, stage))
    raise LookupError(f"the bucket {bucket} keeps no deployment {timestamp} of stage {stage}")


def _template(cloudformation: Any, stage: str) -> dict[str, Any]:
    """Of the stack, as it is deployed."""
    template: dict[str, Any] = cloudformation.get_template(StackName=f"minute8-{stage}")["TemplateBody"]
    return template


def stored_keys(cloudformation: Any, s3: Any, stage: str) -> tuple[str, list[str]]:
    """The deployment bucket, and the keys of the stage's deployments."""
    bucket = cloudformation.describe_stack_resource(
        StackName=f"minute8-{stage}", LogicalResourceId="ServerlessDeploymentBucket"
    )["StackResourceDetail"]["PhysicalResourceId"]
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"serverless/minute8/{stage}/")
    return bucket, [entry["Key"] for page in pages for entry in page.get("Contents", [])]


def timestamps(keys: Iterable[str]) -> set[str]:
    """Those of the deployments that the bucket's keys belong to."""
    return {match[1] for key in keys if (match := _DEPLOYMENT.match(key))}


def previous(running: str, kept: set[str]) -> str:
    """The newest deployment before the one that runs. Raises LookupError if the bucket keeps none."""
    older = [timestamp for timestamp in kept if int(timestamp) < int(running)]
    if not older:
        raise LookupError("there is no deployment before the one that runs")
    return max(older, key=int)


if __name__ == "__main__":
    sys.exit(exit_status(main, "stopped. What CloudFormation has begun goes on without this command"))
