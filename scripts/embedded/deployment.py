"""Deploy serverless.yml to a running embedded AWS, and remove it."""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from common.clock import SystemClock
from minute8.cli.doctor import canary
from minute8.cli.doctor.deployment import Deployment
from scripts import build_layer, console, parameters, signing_masters
from scripts.embedded.process import ROOT, Embedded, EmbeddedError, record
from scripts.one_at_a_time import one_at_a_time

_SOURCES = ("common", "scheduler", "executor", "minute8")
_OSLS = ROOT / "node_modules" / ".bin" / "osls"
_DEPLOY_TIMEOUT_S = 300
_DEPLOYED = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
# A failed first deployment, or a stack that was being removed: it can be deleted.
_NEVER_WHOLE = {
    "CREATE_FAILED",
    "DELETE_FAILED",
    "REVIEW_IN_PROGRESS",
    "ROLLBACK_COMPLETE",
    "ROLLBACK_FAILED",
}
_RESTART = "`make down` ends its operation, and `make up` continues the deployment"
# Only the API of a stage with an issuer has it.
# Of the deployment that a stage runs. It is part of the snapshots, as the stack is: a kill takes back both.
_FINGERPRINT = "/embedded/{stage}/deployed"


def deploy(
    embedded: Embedded,
    *,
    stage: str = "local",
    params: Mapping[str, str] | None = None,
    force: bool = False,
    report: Callable[[str], object] = lambda _text: None,
) -> Embedded:
    """Deploy the working tree's serverless.yml as `stage` and return the record with its API's address.

    `params` become --param arguments. Does nothing if the same is deployed already, unless `force`. `report` is called
    with a text before each slow step.
    Raises EmbeddedError with the tool's output if the deployment fails or does not read back as written.
    """
    with one_at_a_time(Path(embedded.state_dir) / f"deploying-{stage}.lock"):
        return _deploy(embedded, stage, params or {}, force, report)


def _deploy(
    embedded: Embedded, stage: str, params: Mapping[str, str], force: bool, report: Callable[[str], object]
) -> Embedded:
    if problems := [*parameters.value_problems(params)]:
        raise EmbeddedError("; ".join(problems))
    layers = build(params)
    service = stage_service(Path(embedded.state_dir) / f"service-{stage}", layers)
    build_layer.fill_in(service, "local")
    arguments = parameters.arguments_of(params)
    fingerprint = _fingerprint(service, layers, [embedded.endpoint_url, *arguments])
    deployed = replace(embedded, api_url=api_url(embedded, stage))
    if not force and _is_deployed(embedded, stage, fingerprint):
        record(deployed)
        report(f"stage {stage} is deployed and unchanged")
        return deployed
    report(f"deploying serverless.yml as stage {stage} …")
    make_deployable(embedded, stage, report)
    # By force: the tool would skip what a deployment that was cut off has already uploaded.
    run_osls(["deploy", "--stage", stage, "--force", *arguments], service, embedded)
    account = client(embedded, "sts").get_caller_identity()["Account"]
    named = Deployment(stage, "aws", "us-east-1", account, partial(client, embedded), SystemClock())
    report(f"canary: {canary.register(named)}")
    ssm = client(embedded, "ssm")
    signing_masters.change(ssm, stage, "make")
    ssm.put_parameter(Name=_FINGERPRINT.format(stage=stage), Value=fingerprint, Type="String", Overwrite=True)
    record(deployed)
    return deployed


def build(params: Mapping[str, str]) -> list[Path]:
    """Build what a deployment with these parameters packages; return its layers. Raises RuntimeError."""
    with ThreadPoolExecutor() as pool:
        console_files = pool.submit(console.build)
        layers = build_layer.build_all("local", build_layer.needed(params))
        console_files.result()
    return layers


def remove(embedded: Embedded, *, stage: str) -> None:
    """Remove the stage's stack. Raises EmbeddedError if the tool fails."""
    service = Path(embedded.state_dir) / f"service-{stage}"
    run_osls(["remove", "--stage", stage], service, embedded)
    signing_masters.remove(client(embedded, "ssm"), stage)


def api_url(embedded: Embedded, stage: str) -> str:
    """Return the address of the stage's HTTP API. Its id is fixed in serverless.yml by the tag ms-custom-id."""
    configuration = yaml.safe_load((ROOT / "serverless.yml").read_text())
    tags = configuration["params"].get(stage, {}).get("tags", {})
    if "ms-custom-id" not in tags:
        raise EmbeddedError(f"serverless.yml gives stage {stage!r} no ms-custom-id: use local or test")
    return f"{embedded.endpoint_url}/_aws/execute-api/{tags['ms-custom-id']}"


def stage_service(directory: Path, layers: Sequence[Path], checkout: Path = ROOT) -> Path:
    """Copy what is deployed of the checkout into `directory` and return it.

    osls keeps its working files next to serverless.yml, so each deployment needs its own directory. There osls does not
    search .venv and node_modules either. Raises RuntimeError if the console cannot be built.
    """
    directory.mkdir(parents=True, exist_ok=True)
    console.build()
    for name in _SOURCES:
        shutil.rmtree(directory / name, ignore_errors=True)
        shutil.copytree(checkout / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(checkout / "serverless.yml", directory)
    shutil.copytree(checkout / "deploy", directory / "deploy", dirs_exist_ok=True)
    (directory / "scripts").mkdir(exist_ok=True)
    shutil.copy(checkout / "scripts" / "visibility_timeout.js", directory / "scripts")
    # Link only the layers: a link to build/ would lead back here, and osls follows links.
    shutil.rmtree(directory / "build", ignore_errors=True)
    (directory / "build").mkdir()
    for layer in layers:
        (directory / "build" / layer.name).symlink_to(layer)
    return directory


def run_osls(arguments: list[str], service: Path, embedded: Embedded) -> str:
    """Run osls in `service` against the embedded AWS and return what it printed. Raises EmbeddedError."""
    if not _OSLS.exists():
        raise EmbeddedError("osls is not installed: run `make install` (or `npm ci`)")
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(service), "NODE_NO_WARNINGS": "1"}
    environment |= {"SLS_TELEMETRY_DISABLED": "1", "SLS_NOTIFICATIONS_MODE": "off", **embedded.env()}
    environment["SLS_AWS_MONITORING_FREQUENCY"] = "250"  # ms; the default of 5 s is for an AWS far away
    try:
        done = subprocess.run(
            [str(_OSLS), *arguments],
            cwd=service,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEPLOY_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EmbeddedError(f"osls {' '.join(arguments)} took longer than {_DEPLOY_TIMEOUT_S} s") from error
    if done.returncode:
        raise EmbeddedError(f"osls {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    if "Invalid configuration" in done.stderr:
        raise EmbeddedError(f"osls finds fault with serverless.yml:\n{done.stderr}")
    return done.stdout + done.stderr


def client(embedded: Embedded, service: str) -> Any:
    """Return a boto3 client of `service` for this instance, whatever the environment says."""
    import boto3

    return boto3.client(
        service,  # type: ignore[call-overload]
        endpoint_url=embedded.endpoint_url,
        region_name=embedded.env()["AWS_REGION"],
        aws_access_key_id=embedded.env()["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=embedded.env()["AWS_SECRET_ACCESS_KEY"],
        verify=embedded.ca_bundle or None,
    )


def make_deployable(
    embedded: Embedded, stage: str, report: Callable[[str], object], patience_s: float = _DEPLOY_TIMEOUT_S
) -> None:
    """Wait for an operation of an interrupted deployment to end, and delete what a failed first one left.

    Raises EmbeddedError if no deployment can repair the state of the stack.
    """
    give_up_at = time.monotonic() + patience_s
    stack = f"minute8-{stage}"
    reported = False
    while (status := _stack_status(embedded, stage)).endswith("_IN_PROGRESS") and status not in _NEVER_WHOLE:
        if not reported:
            report(f"stack {stack} is {status}; waiting for the end of that …")
            reported = True
        if time.monotonic() > give_up_at:
            raise EmbeddedError(f"stack {stack} stays {status}; {_RESTART}")
        time.sleep(0.2)
    if status == "UPDATE_ROLLBACK_FAILED":
        raise EmbeddedError(f"stack {stack} is {status}; {_RESTART}")
    if status not in _NEVER_WHOLE:
        return
    report(f"stack {stack} is {status}: deleting what was left of it …")
    cloudformation = client(embedded, "cloudformation")
    mode = {}
    while status := _stack_status(embedded, stage):
        if status == "DELETE_FAILED":  # the next deployment takes over what cannot be deleted
            mode = {"DeletionMode": "FORCE_DELETE_STACK"}
        if status != "DELETE_IN_PROGRESS":
            cloudformation.delete_stack(StackName=stack, **mode)
        if time.monotonic() > give_up_at:
            raise EmbeddedError(f"stack {stack} cannot be deleted; {_RESTART}")
        time.sleep(0.2)


def _is_deployed(embedded: Embedded, stage: str, fingerprint: str) -> bool:
    """Return whether the stage's stack is complete, and deployed from what has this fingerprint."""
    if _stack_status(embedded, stage) not in _DEPLOYED:
        return False
    name = _FINGERPRINT.format(stage=stage)
    parameters = client(embedded, "ssm").get_parameters(Names=[name])["Parameters"]
    return [parameter["Value"] for parameter in parameters] == [fingerprint]


def _stack_status(embedded: Embedded, stage: str) -> str:
    """Return the status of the stage's stack; an empty string if there is none."""
    from botocore.exceptions import ClientError

    try:
        stacks = client(embedded, "cloudformation").describe_stacks(StackName=f"minute8-{stage}")["Stacks"]
    except ClientError:
        return ""
    return str(stacks[0]["StackStatus"]) if stacks else ""


def _fingerprint(service: Path, layers: Sequence[Path], inputs: list[str]) -> str:
    """Return a hash of everything a deployment depends on."""
    digest = hashlib.sha256("\n".join(inputs).encode())
    for layer in layers:
        digest.update((layer / ".requirements").read_bytes())
    files = [
        service / "serverless.yml",
        *(path for path in (service / "deploy").iterdir() if path.suffix in (".yml", ".js")),
        *(path for name in _SOURCES for path in (service / name).rglob("*.py")),
        *(service / "minute8" / "api" / "console_files").rglob("*.gz"),
    ]
    for path in sorted(files):
        digest.update(f"\n{path.relative_to(service)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
