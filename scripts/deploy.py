"""Deploy a stage to your AWS account: python -m scripts.deploy --stage prod [what else osls deploy takes]

Parameters, permissions, quotas and the stack's state are checked before anything is created, and what will be done is
printed; --dry-run ends there. After a successful deployment, the master secret of key pairs is made if there is none,
and deletion protection is set. In the template it would keep the tables of a failed first deployment, which would make
the second one fail. At its end it runs the doctor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from common.platform.findings import Level
from scripts import (
    build_layer,
    concurrency,
    deployment_plan,
    parameters,
    precheck,
    signing_masters,
    versions,
)
from scripts.one_at_a_time import one_at_a_time
from scripts.session import NO_REGION, caller_problem, exit_status, session_of

_OSLS: Final = build_layer.ROOT / "node_modules" / ".bin" / "osls"
_STOPPED: Final = (
    "deploy: stopped. What CloudFormation has begun goes on without this command; run it again when that has ended:"
    " it does what is left"
)
_FAILED: Final = ("CREATE_FAILED", "UPDATE_FAILED")
# What CloudFormation says, and what to do.
_REMEDIES: Final = {
    "does not have permissions": "IAM was late with a new role: run it again",
    "cannot be assumed": "IAM was late with a new role: run it again",
    "UnreservedConcurrentExecution": "the account's quota of concurrent executions is too small for what is reserved:"
    " give apiReservedConcurrency=off and executorReservedConcurrency=off, or ask AWS for more",
    "already exists": "an earlier stage left it: remove it, or import it (docs/deploying.md#removing-a-stage)",
    "rchitecture": "Lambda has no arm64 in this region: deploy to another one",
    "not authorized": "give the user the policy deploy/policies/deploy.json",
}


def main(arguments: list[str] | None = None) -> int:
    """Look, say what will be done, deploy, protect, and print the next steps; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.deploy", description=__doc__)
    parser.add_argument("--stage", default="dev")
    parser.add_argument("--region", "-r")
    parser.add_argument("--aws-profile")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    options, osls_options = parser.parse_known_args(arguments)
    session = session_of(options.aws_profile)
    region = options.region or session.get_config_variable("region")
    if refusals := _refusals(session, options.stage, region, osls_options):
        print("\n".join(f"deploy: {problem}" for problem in refusals), file=sys.stderr)
        return 2
    osls_options += _of_account(session, options.stage, region, parameters.given_in(osls_options))
    deployment = Deployment(session, options.stage, region, options.aws_profile, tuple(osls_options))
    findings = precheck.of_deployment(deployment.client, options.stage, region, deployment.params)
    precheck.print_findings("deploy", findings)
    if any(finding.level == Level.FAILED for finding in findings):
        return 2
    if status := deployment.run("package", *parameters.arguments_of(parameters.given_in(osls_options))):
        return status
    plan = deployment_plan.lines(deployment.template(), deployment.deployed_template(), deployment.params)
    print("\n".join(f"deploy: {line}" for line in plan), flush=True)
    if options.dry_run:
        return 0
    if status := deployment.run("deploy", *osls_options):
        for reason in deployment.reasons():
            print(f"deploy: {reason}", file=sys.stderr)
        return status
    try:
        url = deployment.finish()
    except (BotoCoreError, ClientError, subprocess.CalledProcessError) as error:
        print(f"deploy: deployed, but not finished: {error}; run it again", file=sys.stderr)
        return 1
    print(next_steps(options.stage, region, url))
    return 0


def _refusals(
    session: botocore.session.Session, stage: str, region: str | None, osls_options: list[str]
) -> list[str]:
    """Why this command cannot begin."""
    refusals = parameters.refusals(stage, osls_options)
    if not region:
        refusals.append(NO_REGION)
    if (
        not refusals
        and region
        and (problem := caller_problem(partial(session.create_client, "sts", region_name=region), region))
    ):
        refusals.append(problem)
    return refusals


def _of_account(
    session: botocore.session.Session, stage: str, region: str, values: Mapping[str, str]
) -> list[str]:
    """Arguments with the parameters that depend on the account. What somebody has chosen stays."""
    try:
        account = concurrency.account_of(session.create_client("lambda", region_name=region), stage)
    except (BotoCoreError, ClientError) as error:
        print(
            f"deploy: the account's concurrency is not known, so none is reserved: {error}", file=sys.stderr
        )
        return []
    params = concurrency.parameters_for(account, parameters.chosen(stage, values))
    print(concurrency.described(account, params))
    return parameters.arguments_of(params)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment of a stage, by the deployment tool."""

    session: botocore.session.Session
    stage: str
    region: str
    profile: str | None
    osls_options: tuple[str, ...]

    @property
    def params(self) -> dict[str, str]:
        return parameters.read(self.stage, parameters.given_in(self.osls_options))

    @property
    def package(self) -> Path:
        """Where the archives and the template of this deployment are."""
        return build_layer.ROOT / "build" / "deploy" / self.stage

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "AWS_REGION": self.region,
            "NODE_NO_WARNINGS": "1",
            **({"AWS_PROFILE": self.profile} if self.profile else {}),
        }

    def client(self, service: str) -> Any:
        return self.session.create_client(service, region_name=self.region)

    def run(self, verb: str, *options: str) -> int:
        """Run the tool; returns its exit status."""
        profile = ["--aws-profile", self.profile] if self.profile else []
        place = ["--stage", self.stage, "--region", self.region, "--package", str(self.package), *profile]
        command = [str(_OSLS), verb, *place, *options]
        # It keeps its working files in the checkout: another stage's deployment would mix with this one.
        with one_at_a_time(build_layer.ROOT / "build" / "osls.lock"):
            return subprocess.run(command, cwd=build_layer.ROOT, env=self.environment, check=False).returncode

    def template(self) -> dict[str, Any]:
        path = self.package / "cloudformation-template-update-stack.json"
        return deployment_plan.with_values(json.loads(path.read_text()), {})

    def deployed_template(self) -> dict[str, Any] | None:
        """That of the stack; None if there is none, or one that never got further than its bucket."""
        client, stack = self.client("cloudformation"), f"minute8-{self.stage}"
        try:
            template = client.get_template(StackName=stack)["TemplateBody"]
            (described,) = client.describe_stacks(StackName=stack)["Stacks"]
        except ClientError:
            return None
        content: dict[str, Any] = json.loads(template) if isinstance(template, str) else template
        if "ExecutorLambdaFunction" not in content["Resources"]:
            return None
        values = {item["ParameterKey"]: item["ParameterValue"] for item in described.get("Parameters", ())}
        return deployment_plan.with_values(content, values)

    def reasons(self) -> list[str]:
        """Why CloudFormation failed, the first failure first, and what to do about what is known."""
        try:
            events = self.client("cloudformation").describe_stack_events(StackName=f"minute8-{self.stage}")
        except (BotoCoreError, ClientError):
            return []
        beginning = next(
            (number for number, event in enumerate(events["StackEvents"]) if _begins(event)),
            len(events["StackEvents"]),
        )
        failures = [
            event for event in events["StackEvents"][:beginning] if event["ResourceStatus"] in _FAILED
        ]
        texts = [str(event.get("ResourceStatusReason", "")) for event in failures[::-1]]
        causes = [text for text in texts if "cancelled" not in text][:1]
        return [
            *causes,
            *(remedy for words, remedy in _REMEDIES.items() if any(words in text for text in causes)),
        ]

    def finish(self) -> str:
        """What the template cannot hold, and the doctor; returns the API's address."""
        outputs = outputs_of(self.session, self.stage, self.region)
        if versions.go_forward(self.client("lambda"), self.stage, outputs["Deployment"]):
            print("deploy: the functions had been rolled back, and run this deployment again")
        versions.prune(self.client("lambda"), self.stage)
        if self.params["deletionProtection"] == "true":
            protect(self.session, self.region, outputs)
        signing_masters.change(self.client("ssm"), self.stage, "make")
        for module, *options in (
            ("scripts.canary", "--stage", self.stage),
            ("minute8", "--url", outputs["ApiUrl"], "doctor", "--stage", self.stage),
        ):
            print(flush=True)
            command = [sys.executable, "-m", module, *options]
            # What the doctor finds is for people: alarms know nobody yet, and no tick has been.
            subprocess.run(
                command, cwd=build_layer.ROOT, env=self.environment, check=module == "scripts.canary"
            )
        return outputs["ApiUrl"]


def _begins(event: Mapping[str, Any]) -> bool:
    """Whether an operation on the stack itself begins with this event."""
    is_of_stack = event["ResourceType"] == "AWS::CloudFormation::Stack"
    return is_of_stack and event["ResourceStatus"] in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


def outputs_of(session: botocore.session.Session, stage: str, region: str) -> dict[str, str]:
    """The stack's outputs, by name."""
    client: Any = session.create_client("cloudformation", region_name=region)
    (stack,) = client.describe_stacks(StackName=f"minute8-{stage}")["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def protect(session: botocore.session.Session, region: str, outputs: dict[str, str]) -> None:
    """Set deletion protection on each table that does not have it."""
    client: Any = session.create_client("dynamodb", region_name=region)
    for table in (value for name, value in sorted(outputs.items()) if name.endswith("TableName")):
        if not client.describe_table(TableName=table)["Table"].get("DeletionProtectionEnabled"):
            client.update_table(TableName=table, DeletionProtectionEnabled=True)


def next_steps(stage: str, region: str, url: str) -> str:
    """The commands that create a first tenant and its key."""
    return f"""
Minute8 is deployed as stage {stage} in {region}, at {url}

    export AWS_REGION={region} MINUTE8_URL={url}
    minute8 tenants create acme --stage {stage} --allow-target 'arn:aws:lambda:{region}:*:function:acme-*'
    export MINUTE8_KEY=$(minute8 keys create acme --role write --stage {stage})

The console is at {url}/console and takes such a key."""


if __name__ == "__main__":
    sys.exit(exit_status(main, _STOPPED))
