"""What Minute8 depends on: the stack, the API's address, the bus, alarms, CloudWatch's metrics, the clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from common.platform.alarms import alarms_of, finding_of, page_of
from common.platform.findings import DEPLOY, RESTORE, Finding, failed, not_checked, ok, warning
from common.platform.signing_masters import parameter_name
from common.storage.domains import is_of_aws
from common.timing.instants import rfc3339
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import FUNCTIONS, STAGES_TO_LOSE
from minute8.cli.doctor.template import DeployedTemplate, NoStackError
from minute8.cli.output import seconds

# `jobs next` and every "3 min ago" are wrong by this much.
_CLOCK_WARNING_S: Final = 2.0
# AWS refuses requests that are signed by a clock with a larger error.
_CLOCK_FAILED_S: Final = 300.0
# A message is queued for at most 900 s before it is due.
_OLDEST_MESSAGE_S: Final = 1_200
_LOOK_BACK: Final = timedelta(hours=1)


def stack(deployment: Deployment) -> Iterator[Finding]:
    """The result of the last deployment."""
    client = deployment.client("cloudformation")
    try:
        (stack,) = client.describe_stacks(StackName=deployment.named())["Stacks"]
    except client.exceptions.ClientError as error:
        if "does not exist" not in str(error):
            raise
        yield not_checked(f"there is no stack {deployment.named()}: it was deployed by other means")
        return
    status = stack["StackStatus"]
    if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        yield ok(status)
    elif status.endswith("_IN_PROGRESS"):
        yield warning(f"a deployment is under way: {status}", "look again when it is over")
    elif status == "UPDATE_ROLLBACK_COMPLETE":
        yield warning("the last deployment was rolled back: what runs is the version before it", DEPLOY)
    else:
        reason = stack.get("StackStatusReason", "")
        yield failed(f"the last deployment ended as {status} {reason}".strip(), DEPLOY)


def bus(deployment: Deployment) -> Iterator[Finding]:
    """The bus that events about runs go to."""
    events = deployment.client("events")
    try:
        events.describe_event_bus(Name=deployment.named())
    except events.exceptions.ResourceNotFoundException:
        yield failed(f"there is no event bus {deployment.named()}: nobody is told of failed runs", RESTORE)
    yield ok(f"{deployment.named()} is there")


def signing_masters(deployment: Deployment) -> Iterator[Finding]:
    """Whether the masters of AWS key pairs are there, and whether the API can use them. Their values are not read."""
    name = parameter_name(deployment.stage)
    pages = deployment.client("ssm").get_paginator("describe_parameters")
    filters = [{"Key": "Name", "Option": "Equals", "Values": [name]}]
    if not any(page["Parameters"] for page in pages.paginate(ParameterFilters=filters)):
        yield warning(
            f"there is no parameter {name}: key pairs of AWS cannot be made, and existing ones cannot sign",
            "restore it if there are pairs (they need the same masters); else deploy the stage again",
        )
    elif (url := deployment.api_url or _output_of_the_stack(deployment)) and (
        status := _status_of_unknown_pair(deployment, url)
    ) >= httpx.codes.INTERNAL_SERVER_ERROR:
        yield failed(
            f"the API cannot use {name}: it answers {status} to the signature of a pair that does not exist",
            f"aws ssm get-parameter-history --name {name} has the value before; put it back: a new one ends all pairs",
        )
    yield ok(f"{name} is there")


def _status_of_unknown_pair(deployment: Deployment, url: str) -> int:
    """The API's answer to a request that is signed by no pair: it has to derive a secret to refuse it."""
    today = datetime.fromtimestamp(deployment.clock.now(), UTC)
    scope = f"M8AK001{'A' * 26}/{today:%Y%m%d}/{deployment.region}/scheduler/aws4_request"
    signature = f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
    headers = {
        "authorization": f"AWS4-HMAC-SHA256 Credential={scope}, {signature}",
        "x-amz-date": f"{today:%Y%m%dT%H%M%SZ}",
    }
    return int(deployment.get(f"{url.rstrip('/')}/eventbridge/schedules", headers).status_code)


def secrets_key(deployment: Deployment) -> Iterator[Finding]:
    """Whether KMS lets the executor use the key of tenants' secrets. Somebody may have switched it off on purpose.

    https://docs.aws.amazon.com/kms/latest/developerguide/key-state.html
    """
    variables = (deployment.function("executor") or {}).get("Environment", {}).get("Variables", {})
    if (key := variables.get("SECRETS_KEY", "off")) == "off":
        yield ok("the stage has no secrets")
        return
    client = deployment.client("kms")
    try:
        state = client.describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
    except client.exceptions.NotFoundException:
        yield failed(
            f"there is no key {key}: no secret can be read again",
            "deploy with another secretsKey, and put each secret again",
        )
        return
    if state != "Enabled":
        cancel = f"aws kms cancel-key-deletion --key-id {key}; " if state == "PendingDeletion" else ""
        yield failed(
            f"{key} is {state}: jobs with secrets wait", f"{cancel}aws kms enable-key --key-id {key}"
        )
    yield ok(f"{key} is {state.lower()}")


def alarms(deployment: Deployment) -> Iterator[Finding]:
    """Whether those of the stack exist, are quiet, and in production notify somebody."""
    descriptions = alarms_of(deployment.client("cloudwatch"), deployment.stage)
    for page in _deployed_alarms(deployment):
        if page not in descriptions:
            yield warning(f"there is no alarm {deployment.named(page)}", RESTORE)
    for page, alarm in descriptions.items():
        if alarm["StateValue"] == "ALARM":
            yield finding_of(alarm, page)
        elif deployment.stage not in STAGES_TO_LOSE and not (
            alarm["ActionsEnabled"] and alarm["AlarmActions"]
        ):
            yield warning(f"{alarm['AlarmName']} tells nobody", "deploy with alarmTopicArn")
    silent = [alarm for alarm in descriptions.values() if alarm["StateValue"] == "INSUFFICIENT_DATA"]
    if silent:
        since = min(alarm["StateUpdatedTimestamp"] for alarm in silent)
        shown = ", ".join(sorted(alarm["AlarmName"] for alarm in silent)[:3])
        yield not_checked(
            f"{len(silent)} of {len(descriptions)} alarms have no data, the first since"
            f" {rfc3339(int(since.timestamp()))}: {shown}{', …' if len(silent) > 3 else ''}",
            "that is no sign of health; a new stage, and one where nothing ran, has such alarms",
        )
    yield ok(f"{len(descriptions)}, all quiet")


def _deployed_alarms(deployment: Deployment) -> list[str]:
    """The pages of the alarms that the stage was deployed with; none if it has no stack."""
    try:
        template = DeployedTemplate(deployment)
    except NoStackError:
        return []
    alarms = [resource.properties for resource in template.resources() if "AlarmName" in resource.properties]
    return [page for alarm in alarms if (page := page_of(alarm, deployment.stage))]


def figures(deployment: Deployment) -> Iterator[Finding]:
    """CloudWatch's counts of the last hour: errors and throttles of the functions, the age of the oldest message."""
    end = datetime.fromtimestamp(deployment.clock.now(), UTC)
    metrics = [(name, metric) for name in FUNCTIONS for metric in ("Invocations", "Errors", "Throttles")]
    queries = [
        _query(f"m{n}", "AWS/Lambda", metric, "FunctionName", deployment.named(name), "Sum")
        for n, (name, metric) in enumerate(metrics)
    ]
    age = _query(
        "age",
        "AWS/SQS",
        "ApproximateAgeOfOldestMessage",
        "QueueName",
        deployment.named("executions"),
        "Maximum",
    )
    answer = deployment.client("cloudwatch").get_metric_data(
        MetricDataQueries=[*queries, age],
        StartTime=end - _LOOK_BACK,
        EndTime=end,
        ScanBy="TimestampDescending",
    )
    values = {result["Id"]: result["Values"] for result in answer["MetricDataResults"]}
    if not any(values.values()):
        yield not_checked("CloudWatch has no figures of the last hour")
        return
    sums = {key: int(sum(values.get(f"m{n}", []))) for n, key in enumerate(metrics)}
    for name in FUNCTIONS:
        if errors := sums[name, "Errors"]:
            yield warning(
                f"{errors} of {sums[name, 'Invocations']} invocations of {name} failed",
                f"look at the log group /aws/lambda/{deployment.named(name)}",
            )
        if throttles := sums[name, "Throttles"]:
            yield warning(
                f"{throttles} invocations of {name} were throttled",
                "raise the account's concurrent executions, or the function's reserved concurrency",
            )
    if (newest := values.get("age")) and newest[0] > _OLDEST_MESSAGE_S:
        yield warning(
            f"the oldest execution has been queued for {seconds(newest[0])}",
            "more pollers, or a higher maximumConcurrency: docs/capacity.md",
        )
    yield ok(
        f"{sums['scheduler', 'Invocations']} ticks, {sums['executor', 'Invocations']} batches, no errors"
    )


def _query(ident: str, namespace: str, metric: str, dimension: str, name: str, statistic: str) -> Any:
    source = {
        "Namespace": namespace,
        "MetricName": metric,
        "Dimensions": [{"Name": dimension, "Value": name}],
    }
    return {"Id": ident, "MetricStat": {"Metric": source, "Period": 300, "Stat": statistic}}


def clock(deployment: Deployment) -> Iterator[Finding]:
    """This machine's clock compared with AWS's. (The functions use AWS's own clocks.)"""
    client = deployment.client("sts")
    before = deployment.clock.now()
    try:
        metadata = client.get_caller_identity()["ResponseMetadata"]
    except (
        client.exceptions.ClientError
    ) as refused:  # if the clock is far off, AWS refuses the request, but its answer contains the date
        metadata = refused.response["ResponseMetadata"]
    after = deployment.clock.now()
    if not (date := metadata["HTTPHeaders"].get("date")):
        yield not_checked("AWS told no time")
        return
    off_s = clock_off_s(before, parsedate_to_datetime(date).timestamp(), after)
    remedy = "set this machine's clock by NTP: what `minute8` says of times is wrong by it"
    words = f"this machine's clock is {seconds(abs(off_s))} {'ahead of' if off_s > 0 else 'behind'} AWS's"
    if abs(off_s) > _CLOCK_FAILED_S:
        yield failed(words, remedy)
    elif abs(off_s) > _CLOCK_WARNING_S:
        yield warning(words, remedy)
    yield ok("this machine's clock agrees with AWS's to the second")


def clock_off_s(before: float, date: float, after: float) -> float:
    """The least error of a clock; positive if it is ahead. The answer's date is in whole seconds, rounded down."""
    if before > date + 1:
        return before - (date + 1)
    return min(0.0, after - date)


# It needs no key, and the handler answers it. An answer shows that gateway, permission, function and code work.
_PATH_WITHOUT_KEY: Final = "/v1/openapi.json"


def api(deployment: Deployment) -> Iterator[Finding]:
    """Send one request without a key."""
    url = deployment.api_url or _output_of_the_stack(deployment)
    if url is None:
        yield not_checked("the stack does not tell the API's address", "`minute8 --url … doctor` does")
        return
    address, began = url.rstrip("/") + _PATH_WITHOUT_KEY, deployment.clock.now()
    log = f"look at the log of {deployment.named('api')}"
    try:
        answer = deployment.get(address)
    except httpx.HTTPError as error:
        yield failed(
            f"{address} does not answer: {error}", "check the address, its certificate and the network"
        )
        return
    if answer.status_code != httpx.codes.OK:
        yield failed(f"{address} answers {answer.status_code} {answer.reason_phrase}", log)
    yield ok(f"{url} answers within {seconds(max(0.001, deployment.clock.now() - began))}")


def _output_of_the_stack(deployment: Deployment) -> str | None:
    """The URL from the stack's outputs; None if it is not an address on AWS, as with the embedded AWS."""
    if not is_of_aws(urlsplit(deployment.client("sts").meta.endpoint_url).hostname or ""):
        return None
    client = deployment.client("cloudformation")
    try:
        (stack,) = client.describe_stacks(StackName=deployment.named())["Stacks"]
    except client.exceptions.ClientError as error:
        if "does not exist" not in str(error):
            raise
        return None
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    url: str | None = outputs.get("ApiUrl")
    return url
