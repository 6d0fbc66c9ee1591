"""What breaks a deployment, one function for each way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from common.config import LIVE
from common.planning.directory import Shard
from common.planning.execution import Execution
from common.planning.shares import ShareDraft, Shares
from common.storage import keys
from common.tenants.audit_chain import SEALING, SealRound
from common.timing.slots import places
from tests.doctor.stage import VARIABLES, Patient
from tests.scheduler_handler import put_position
from tests.worlds import at

Break = Callable[[Patient], Any]


def unplug(patient: Patient) -> None:
    patient["events"].remove_targets(Rule=patient.name("tick"), Ids=["scheduler"])


def retimed(patient: Patient) -> None:
    patient["events"].put_rule(Name=patient.name("tick"), ScheduleExpression="rate(10 minutes)")


def export_is_off(patient: Patient) -> None:
    patient.add_export()
    patient["events"].disable_rule(Name=patient.name("export"))


def small_hidden_time(patient: Patient) -> None:
    patient["sqs"].set_queue_attributes(
        QueueUrl=patient.queue_url("executions"), Attributes={"VisibilityTimeout": "19"}
    )


def elsewhere_dead(patient: Patient) -> None:
    arn = patient.deployment.queue_arn("outcomes-dead")
    policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 5}}'
    patient["sqs"].set_queue_attributes(
        QueueUrl=patient.queue_url("executions"), Attributes={"RedrivePolicy": policy}
    )


def piled_up(patient: Patient) -> None:
    """Messages that no function receives: moto would deliver them at once."""
    url, stock = patient.queue_url("executions"), patient["sqs"].get_queue_attributes

    def answer(QueueUrl: str, **request: Any) -> Any:
        response = stock(QueueUrl=QueueUrl, **request)
        if QueueUrl == url:
            response["Attributes"]["ApproximateNumberOfMessages"] = "1010"
        return response

    patient.alter("sqs", get_queue_attributes=answer)


def dead(queue: str) -> Break:
    return lambda patient: patient["sqs"].send_message(
        QueueUrl=patient.queue_url(f"{queue}-dead"), MessageBody="given up"
    )


def mapped(function: str, **changes: Any) -> Break:
    return lambda patient: patient["lambda"].update_event_source_mapping(
        UUID=patient.mapping(function)["UUID"], **changes
    )


def configured(function: str, **changes: Any) -> Break:
    return lambda patient: patient["lambda"].update_function_configuration(
        FunctionName=patient.name(function), **changes
    )


def with_secrets_key(broken_by: str) -> Break:
    """A key of KMS for tenants' secrets, and this operation on it."""

    def broken(patient: Patient) -> None:
        key = patient["kms"].create_key()["KeyMetadata"]["KeyId"]
        configured("executor", Environment={"Variables": VARIABLES | {"SECRETS_KEY": key}})(patient)
        getattr(patient["kms"], broken_by)(KeyId=key)

    return broken


def rolled_back(function: str) -> Break:
    """An alias on a version, and a later deployment in `$LATEST`. The mapping is as before there was an alias."""

    def broken(patient: Patient) -> None:
        functions, name = patient["lambda"], patient.name(function)
        number = functions.publish_version(FunctionName=name)["Version"]
        functions.create_alias(FunctionName=name, Name=LIVE, FunctionVersion=number)
        configured(function, Environment={"Variables": VARIABLES | {"DEPLOYMENT": "0f0f"}})(patient)

    return broken


def reserved(function: str, concurrency: int) -> Break:
    return lambda patient: patient["lambda"].put_function_concurrency(
        FunctionName=patient.name(function), ReservedConcurrentExecutions=concurrency
    )


def state(function: str, **fields: str) -> Break:
    """A function state that moto does not have."""

    def broken(patient: Patient) -> None:
        stock = patient["lambda"].get_function_configuration

        def answer(FunctionName: str, **qualifier: str) -> Any:
            configuration = stock(FunctionName=FunctionName, **qualifier)
            return configuration | fields if FunctionName == patient.name(function) else configuration

        patient.alter("lambda", get_function_configuration=answer)

    return broken


def forever(patient: Patient) -> None:
    patient["dynamodb"].update_time_to_live(
        TableName=patient.name("runs"),
        TimeToLiveSpecification={"Enabled": False, "AttributeName": "expires_at"},
    )


def expiring(attribute: str) -> Break:
    """The time to live is on another attribute, which AWS allows after it was off."""

    def broken(patient: Patient) -> None:
        forever(patient)
        patient["dynamodb"].update_time_to_live(
            TableName=patient.name("runs"),
            TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute},
        )

    return broken


def denied_beside(patient: Patient) -> None:
    deny = {"Statement": [{"Effect": "Deny", "Action": "sqs:*", "Resource": "*"}]}
    patient.simulator.policies["minute8-test-executor", "mine"] = deny


def attached(patient: Patient) -> None:
    patient.simulator.attached.add(("minute8-test-api", "arn:aws:iam::aws:policy/AdministratorAccess"))


def without_index(patient: Patient) -> None:
    patient["dynamodb"].update_table(
        TableName=patient.name("runs"), GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "failures"}}]
    )


def at_version(version: str, *functions: str) -> Break:
    def broken(patient: Patient) -> None:
        variables = {**VARIABLES, "VERSION": version} if version else {}
        for function in functions:
            configured(function, Environment={"Variables": variables})(patient)

    return broken


def later(text: str) -> Break:
    return lambda patient: patient.clock.move_to(at(text))


def half_planned(patient: Patient) -> None:
    """The tick of 3:28 announced 3:30 to 3:40 and died. At 3:34 only the late mark shows it."""
    patient.index.begin_planning(
        patient.index.ensure_progress(patient.clock.now()), at("2026-11-21T03:40:00Z"), patient.clock.now()
    )
    patient.clock.sleep(301)


def half_divided(patient: Patient) -> None:
    progress = patient.index.begin_planning(
        patient.index.ensure_progress(patient.clock.now()), at("2026-11-21T03:40:00Z"), patient.clock.now()
    )
    Shares(patient.deployment.due_table()).record(
        progress.window, [ShareDraft([Shard("a", 0)]), ShareDraft([Shard("b", 0)])]
    )
    patient.clock.sleep(301)


def cut_off(patient: Patient) -> None:
    """A committed registration; its entry's content does not matter here."""
    patient["dynamodb"].put_item(
        TableName=patient.name("due"),
        Item={"pk": {"S": "PENDING#3"}, "sk": {"S": "alice#report#1"}, "entry": {"S": "[]"}},
    )


def unreadable(patient: Patient) -> None:
    progress = patient.index.ensure_progress(patient.clock.now())
    quarantine = patient.deployment.planning().quarantine()
    quarantine.add_group(
        "cron|Mars/Olympus|* * * * *#0", progress.window, "no such zone", patient.clock.now()
    )


def bad_entry(patient: Patient) -> None:
    patient.deployment.planning().quarantine().add_entry("alice#report", "[9]", patient.clock.now())


def _mark_says(patient: Patient, name: str, value: str) -> None:
    patient["dynamodb"].update_item(
        TableName=patient.name("due"),
        Key={"pk": {"S": "PROGRESS"}, "sk": {"S": "PROGRESS"}},
        UpdateExpression=f"SET {name} = :old",
        ExpressionAttributeValues={":old": {"S": value}},
    )


def older_zones(patient: Patient) -> None:
    _mark_says(patient, "tzdata", "2019a")


def other_sdk(patient: Patient) -> None:
    _mark_says(patient, "sdk", "1.40.4")


def no_mark(patient: Patient) -> None:
    patient["dynamodb"].delete_item(
        TableName=patient.name("due"), Key={"pk": {"S": "PROGRESS"}, "sk": {"S": "PROGRESS"}}
    )


def unrecorded(patient: Patient) -> None:
    fire_at = at("2026-11-21T03:10:00Z")
    patient.deployment.unrecorded().add(
        [Execution("alice", "lost", fire_at, fire_at, 1)], patient.clock.now()
    )


def miscounted(patient: Patient) -> None:
    group = "cron|UTC|0-9 0 29 2 *"
    due = patient.deployment.due_table()
    due.put({**keys.directory(group, 0), "jobs": 9, "filed": " ".join(places(group))})
    for place in places(group):
        due.put({**keys.listing(place, group, 0)})


def never_sealed(patient: Patient) -> None:
    patient.deployment.due_table().delete(keys.chore(SEALING))


def seal_altered(patient: Patient) -> None:
    began_at = int(patient.clock.now()) - 600
    _sealed(patient, SealRound(began_at, began_at + 1, tampered=("alice: seal 7",)))


def long_unsealed(patient: Patient) -> None:
    began_at = int(patient.clock.now()) - 4 * 3_600
    _sealed(patient, SealRound(began_at, began_at + 1))


def _sealed(patient: Patient, last: SealRound) -> None:
    put_position(patient.deployment.due_table(), SEALING, asdict(last))


def without_data(patient: Patient) -> None:
    patient["cloudwatch"].set_alarm_state(
        AlarmName=patient.name("no-tick"), StateValue="INSUFFICIENT_DATA", StateReason="it is new"
    )


def deleted(kind: str, name: str) -> Break:
    def broken(patient: Patient) -> None:
        if kind == "queue":
            patient["sqs"].delete_queue(QueueUrl=patient.queue_url(name))
        elif kind == "table":
            patient["dynamodb"].delete_table(TableName=patient.name(name))
        elif kind == "function":
            patient["lambda"].delete_function(FunctionName=patient.name(name))
        elif kind == "mapping":
            patient["lambda"].delete_event_source_mapping(UUID=patient.mapping(name)["UUID"])
        elif kind == "bus":
            patient["events"].delete_event_bus(Name=patient.name())
        elif kind == "alarm":
            patient["cloudwatch"].delete_alarms(AlarmNames=[patient.name(name)])

    return broken


def trusts_another(patient: Patient) -> None:
    """The API's function can no longer start, and another account can act as it."""
    statement = {"Effect": "Allow", "Principal": {"AWS": "210987654321"}, "Action": "sts:AssumeRole"}
    patient.simulator.trusted[patient.name("api")] = {"Statement": statement}
