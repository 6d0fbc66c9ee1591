"""Deploy a stage to your AWS account: python -m scripts.deploy --stage prod [what else osls deploy takes]

Parameters are checked before anything is created. After a successful deployment, the master secret of key pairs is made
if there is none, and deletion protection is set. In the
template it would keep the tables of a failed first deployment, which would make the second one fail.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from scripts import build_layer, concurrency, console, parameters, signing_masters
from scripts.session import NO_CREDENTIALS, NO_REGION, session_of

_OSLS = build_layer.ROOT / "node_modules" / ".bin" / "osls"


def main(arguments: list[str] | None = None) -> int:
    """Check, deploy, protect, and print the next steps; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.deploy", description=__doc__)
    parser.add_argument("--stage", default="dev")
    parser.add_argument("--region", "-r")
    parser.add_argument("--aws-profile")
    options, osls_options = parser.parse_known_args(arguments)
    refusals = parameters.refusals(options.stage, osls_options)
    session = session_of(options.aws_profile)
    region = options.region or session.get_config_variable("region")
    if not region:
        refusals.append(NO_REGION)
    if not refusals and not session.get_credentials():
        refusals.append(NO_CREDENTIALS)
    if refusals:
        print("\n".join(f"deploy: {problem}" for problem in refusals), file=sys.stderr)
        return 2
    profile = ["--aws-profile", options.aws_profile] if options.aws_profile else []
    try:
        params = parameters.read(options.stage, parameters.given_in(osls_options))
        # An embedded AWS that stands in for an account runs on this machine.
        build_layer.build_all("local" if params["layerPath"].endswith("-local") else "arm64")
        build_layer.compile_code()
    except RuntimeError as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 2
    console.build()
    osls_options += _of_account(session, options.stage, region, parameters.given_in(osls_options))
    command = [str(_OSLS), "deploy", "--stage", options.stage, "--region", region, *profile, *osls_options]
    environment = os.environ | {"NODE_NO_WARNINGS": "1"}
    if status := subprocess.run(command, cwd=build_layer.ROOT, env=environment, check=False).returncode:
        return status
    try:
        outputs = outputs_of(session, options.stage, region)
        if params["deletionProtection"] == "true":
            protect(session, region, outputs)
        signing_masters.change(session.create_client("ssm", region_name=region), options.stage, "make")
        start_canary(options.stage, region, options.aws_profile)
    except (BotoCoreError, ClientError, subprocess.CalledProcessError) as error:
        print(f"deploy: deployed, but not finished: {error}; run it again", file=sys.stderr)
        return 1
    print(next_steps(options.stage, region, outputs["ApiUrl"]))
    return 0


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


def start_canary(stage: str, region: str, profile: str | None) -> None:
    """Register its job, or delete it where the stage is without a canary. Raises CalledProcessError."""
    environment = {**os.environ, "AWS_REGION": region, **({"AWS_PROFILE": profile} if profile else {})}
    command = [sys.executable, "-m", "scripts.canary", "--stage", stage]
    subprocess.run(command, cwd=build_layer.ROOT, env=environment, check=True)


def next_steps(stage: str, region: str, url: str) -> str:
    """The commands that create a first tenant and its key."""
    return f"""
Minute8 is deployed as stage {stage} in {region}, at {url}

    export AWS_REGION={region} MINUTE8_URL={url}
    minute8 tenants create acme --stage {stage} --allow-target 'arn:aws:lambda:{region}:*:function:acme-*'
    export MINUTE8_KEY=$(minute8 keys create acme --role write --stage {stage})

The console is at {url}/console and takes such a key. `minute8 doctor --stage {stage}` looks at all of it."""


if __name__ == "__main__":
    sys.exit(main())
