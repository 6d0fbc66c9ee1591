"""Targets in AWS besides functions: queues, topics, buses, state machines, and any operation of a service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from common.errors import InvalidInput, shown
from common.runs.outcome import STOPPED, Outcome, cut
from common.runs.run import DURABLE_PREFIX
from common.storage import aws
from executor.targets import answers
from executor.targets.clients import client
from executor.targets.events import (
    Event,
    context,
    event_body,
    execution_hash,
    execution_name,
    group_of,
    message_attributes,
    message_body,
    payload_body,
)

# What services answer with status 200 if they refused all or some entries.
_COUNTS: Final = ("FailedEntryCount", "FailedRecordCount", "FailedPutCount")
_LISTS: Final = ("failures", "Failed")
# What a record keeps of the names of what an operation has started.
_MAX_STARTED: Final = 10
_STARTED_BYTES: Final = 512


def send_message(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Send one message: the event as JSON, with tenant, job and execution as attributes."""
    try:
        answer = client("sqs", target, event, timeout_s).send_message(
            QueueUrl=queue_url(target["arn"]),
            MessageBody=message_body(target, event),
            MessageAttributes=message_attributes(event),
            **fifo_arguments(target, event),
        )
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True, request_id=answers.request_id(answer))


def queue_url(arn: str) -> str:
    """The queue's URL from the ARN, without a request. The client uses its region's endpoint, whatever the host is."""
    from common.storage.domains import domain_of  # only targets of SQS need it

    _, partition, _, region, account, name = arn.split(":")
    return f"https://sqs.{region}.{domain_of(partition)}/{account}/{name}"


def fifo_arguments(target: Mapping[str, Any], event: Event) -> dict[str, str]:
    """Group and deduplication id, for SQS and SNS. Derived ids are the same for each attempt of an execution, so a
    message whose answer was lost is not delivered twice (within SQS's five minutes)."""
    arguments = {}
    is_fifo = target["arn"].endswith(".fifo")
    if group := target.get("message_group_id") or (group_of(event) if is_fifo else None):
        arguments["MessageGroupId"] = group
    if is_fifo:
        arguments["MessageDeduplicationId"] = target.get("deduplication_id") or execution_hash(event)
    return arguments


def publish(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Publish the event as JSON, with tenant, job and execution as attributes to filter by."""
    subject = {"Subject": target["subject"]} if target.get("subject") else {}
    try:
        answer = client("sns", target, event, timeout_s).publish(
            TopicArn=target["arn"],
            Message=message_body(target, event),
            MessageAttributes=message_attributes(event),
            **subject,
            **fifo_arguments(target, event),
        )
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True, request_id=answers.request_id(answer))


def put_events(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Put one event, with payload and context as its detail."""
    entry = {
        "EventBusName": target["arn"],
        "Source": target["source"],
        "DetailType": target["detail_type"],
        "Detail": event_body(target, event),
    }
    try:
        answer = client("events", target, event, timeout_s).put_events(Entries=[entry])
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    request_id = answers.request_id(answer)
    if answer.get("FailedEntryCount"):  # PutEvents answers 200 even if it refused the entry
        refused = answer["Entries"][0]
        return answers.failed(
            refused.get("ErrorCode", "FailedEntry"), refused.get("ErrorMessage", ""), request_id=request_id
        )
    return Outcome(ok=True, request_id=request_id)


def start_execution(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Start one execution, named after Minute8's: a name is taken for 90 days, so a second start has no effect.

    This holds for standard workflows; express workflows start again.
    """
    try:
        answer = client("stepfunctions", target, event, timeout_s).start_execution(
            stateMachineArn=target["arn"], name=execution_name(event), input=event_body(target, event)
        )
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ExecutionAlreadyExists":
            # An earlier attempt started it, but its answer was lost.
            return Outcome(ok=True, request_id=answers.request_id(error.response))
        return answers.refused_by_aws(error, timeout_s)
    except BotoCoreError as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True, request_id=answers.request_id(answer))


def call_operation(target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
    """Call the operation once."""
    answer = _operated(target, event, timeout_s)
    if isinstance(answer, Outcome):
        return answer
    path = target.get("started") or ("tasks.taskArn" if _runs_tasks(target) else "")
    names = islice(_values_at(answer, path.split(".")), _MAX_STARTED) if path else ()
    return replace(_outcome(answer), started=tuple(cut(name, _STARTED_BYTES) for name in names))


def _operated(target: Mapping[str, Any], event: Event, timeout_s: float) -> Mapping[str, Any] | Outcome:
    """The answer of the operation, or why there is none."""
    from common.storage.aws_operations import names_in, operation_of, service_name, with_model_names

    if not target.get("role_arn"):
        return Outcome(ok=False, permanent=True, error_type="NotAllowed", error="the target has no role_arn")
    try:
        parameters = json.loads(payload_body(event))
        placed = {**target, "arn": f"arn:aws:any:{_region(target)}:"}
        services = client(service_name(names_in(target["arn"])[0]), placed, event, timeout_s)
        operation = operation_of(target["arn"], services.meta.service_model)
        if operation.input_shape is not None:
            parameters = with_model_names(operation.input_shape, parameters)
        if refused := _of_others(operation.service_model.service_name, parameters, event):
            return refused
        # Each attempt has the same token, so the service knows a repeated call.
        tokens = dict.fromkeys(operation.idempotent_members, execution_hash(event))
        return dict(getattr(services, xform_name(operation.name))(**{**tokens, **parameters}))
    except (InvalidInput, ParamValidationError, TypeError, ValueError, RecursionError) as error:
        return Outcome(ok=False, permanent=True, error_type="InvalidParameters", error=str(error))
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)


def _values_at(answer: Any, path: Sequence[str]) -> Iterator[str]:
    """The texts at a path in an answer; lists are followed."""
    if isinstance(answer, list):
        for each in answer:
            yield from _values_at(each, path)
    elif not path and isinstance(answer, str) and answer:
        yield answer
    elif path and isinstance(answer, dict):
        yield from _values_at(answer.get(path[0]), path[1:])


def _of_others(service: str, parameters: Mapping[str, Any], event: Event) -> Outcome | None:
    """Why a call of Lambda would be another's; None if it is the tenant's own.

    Lambda's tenant id decides whose execution environments a call shares, so no tenant names another. And nobody
    takes the name of a run's durable execution: the run would take this execution for its own.
    """
    tenant = context(event, "tenant")
    if service != "lambda":
        return None
    if parameters.get("TenantId", tenant) != tenant:
        error = f"TenantId must be the job's own tenant, {tenant}; the payload has {shown(parameters['TenantId'])}"
    elif str(name := parameters.get("DurableExecutionName", "")).startswith(DURABLE_PREFIX):
        error = f"DurableExecutionName must not begin with {DURABLE_PREFIX}; the payload has {shown(name)}"
    else:
        return None
    return Outcome(ok=False, permanent=True, error_type="NotAllowed", error=error)


def can_stop(target: Mapping[str, Any]) -> bool:
    """Whether `stop` can stop what a call of the target has started."""
    return bool(target["kind"] == "step_functions" or target.get("stop") or _runs_tasks(target))


def _runs_tasks(target: Mapping[str, Any]) -> bool:
    return str(target.get("arn", "")).lower().endswith(":ecs:runtask")


def stop(target: Mapping[str, Any], event: Event, started: Sequence[str], timeout_s: float) -> Outcome:
    """Stop the execution of a state machine, the tasks of ECS, or what else a call started, by `stop` of the target.

    Repeating it does no harm.
    """
    if operation := target.get("stop"):
        return _stopped_by(operation, target, event, started, timeout_s)
    tasks = started
    try:
        if target["kind"] == "step_functions":
            client("stepfunctions", target, event, timeout_s).stop_execution(
                executionArn=_execution_arn(target["arn"], event), error=STOPPED
            )
        for task in tasks:
            # arn:aws:ecs:<region>:<account>:task/<cluster>/<id>
            cluster = {"cluster": parts[1]} if len(parts := task.split("/")) > 2 else {}
            containers = client("ecs", {**target, "arn": task}, event, timeout_s)
            containers.stop_task(task=task, reason=STOPPED, **cluster)
    except (BotoCoreError, ClientError) as error:
        return answers.refused_by_aws(error, timeout_s)
    return Outcome(ok=True)


def _stopped_by(
    operation: Mapping[str, Any],
    target: Mapping[str, Any],
    event: Event,
    started: Sequence[str],
    timeout_s: float,
) -> Outcome:
    """Call the operation that stops, for each name; what has ended already is stopped."""
    parameters = json.dumps(operation["parameters"])
    outcome = Outcome(ok=True)
    for name in started:
        payload = parameters.replace("{{started}}", json.dumps(name)[1:-1])
        answer = _operated({**target, "arn": operation["arn"]}, {**event, "payload": payload}, timeout_s)
        outcome = answer if isinstance(answer, Outcome) else outcome
    return outcome


def _execution_arn(machine: str, event: Event) -> str:
    """The ARN of the execution that `start_execution` names, whatever version or alias it was started by."""
    *where, _, name = machine.split(":")[:7]
    return ":".join([*where, "execution", name, execution_name(event)])


def _region(target: Mapping[str, Any]) -> str:
    """The region of the schedule that the job replaces, or else the deployment's."""
    if arn := target.get("schedule_arn"):
        return str(arn).split(":")[3]
    return str(aws.dynamodb().meta.region_name)


def _outcome(answer: Mapping[str, Any]) -> Outcome:
    for value in answer.values():
        if close := getattr(value, "close", None):  # a stream that nobody reads keeps its connection
            close()
    request_id = answers.request_id(answer)
    if error := answer.get("FunctionError"):
        return answers.failed("FunctionError", str(error), request_id=request_id)
    for name in _COUNTS:
        if count := answer.get(name):
            return answers.failed("PartlyRefused", f"{name} is {count}", request_id=request_id)
    for name in _LISTS:
        if refused := answer.get(name):
            return answers.failed("PartlyRefused", f"{name}: {refused!r}"[:1_000], request_id=request_id)
    return Outcome(ok=True, request_id=request_id)
