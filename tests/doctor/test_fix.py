"""`minute8 doctor --fix`: what it says it repairs is well afterwards, and nothing else has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.planning.execution import Execution
from common.planning.packs import Wake
from common.platform.findings import Level
from common.storage import keys
from minute8.cli.doctor.examine import examine
from minute8.cli.doctor.fix import RepairResult, fix
from minute8.cli.doctor.inventory import FUNCTIONS
from minute8.cli.doctor.queues import without_record
from tests.doctor.breaks import unrecorded
from tests.doctor.broken import BROKEN
from tests.doctor.stage import Patient
from tests.worlds import at

_BREAKS = {name: broken for name, broken, _, _ in BROKEN}
REPAIRED = (
    *(
        "rule gone",
        "rule off",
        "other times",
        "no target",
        "not let in",
        "notify off",
        "export off",
        "late",
        "window open",
    ),
    *("dead executions", "dead shares", "dead outcomes", "reading is off", "whole batches"),
    *(
        "loops are stopped",
        "switched off",
        "reserved too little",
        "planner reserved too little",
        "permission gone",
        "index not readable",
        "tenants may call Minute8",
        "policy of a parameter gone",
        "trusted by another",
    ),
    *("runs for ever", "lost", "miscounted", "a policy beside the template's", "a managed policy"),
)


def problems(patient: Patient) -> dict[str, str]:
    return {
        finding.check: finding.message
        for finding in examine(patient.deployment, 60)
        if finding.level in (Level.FAILED, Level.WARNING) and finding.check != "clock"
    }


def ticking(patient: Patient) -> list[str]:
    """Lambda's invoke; the tick takes five seconds."""
    invoked: list[str] = []

    def invoke(FunctionName: str, InvocationType: str) -> None:
        invoked.append(FunctionName)
        patient.clock.sleep(5)
        index, now = patient.index, patient.clock.now()
        progress = index.begin_planning(index.ensure_progress(now), int(now) // 600 * 600 + 1_200, now)
        index.finish_planning(progress.planning_until)

    patient.alter("lambda", invoke=invoke)
    return invoked


def fixed(patient: Patient, agrees: bool = True) -> list[RepairResult]:
    reported: list[RepairResult] = []
    results = fix(
        patient.deployment, examine(patient.deployment, 60), lambda finding, repair: agrees, reported.append
    )
    assert reported == results
    return results


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repaired_part_passes_its_check(patient: Patient, name: str) -> None:
    before = problems(patient)
    _BREAKS[name](patient)
    ticking(patient)
    assert problems(patient) != before
    running(patient)
    results = fixed(patient)
    assert results and all(not result.result.startswith("failed") for result in results), results
    assert problems(patient) == before


def running(patient: Patient) -> None:
    """An executor: what is sent has a record. (moto would start the function in Docker.)"""
    stock, sent = patient["dynamodb"].batch_get_item, []

    def send(QueueUrl: str, Entries: list[Any]) -> Any:
        sent.extend(Entries)
        return {"Successful": Entries}

    def answer(RequestItems: Any) -> Any:
        ((table, table_request),) = RequestItems.items()
        if table.endswith("-runs") and sent:
            return {"Responses": {table: table_request["Keys"]}}
        return stock(RequestItems=RequestItems)

    patient.alter("sqs", send_message_batch=send)
    patient.alter("dynamodb", batch_get_item=answer)


def test_without_consent_nothing_is_changed(patient: Patient) -> None:
    patient["events"].disable_rule(Name="minute8-test-tick")
    before = problems(patient)
    (result,) = fixed(patient, agrees=False)
    assert (result.check, result.result) == ("rule", "left")
    assert result.description == "aws events enable-rule --name minute8-test-tick"
    assert problems(patient) == before


def test_a_changed_policy_gets_the_templates_text_again(patient: Patient) -> None:
    patient.simulator.denied.add(("sqs:SendMessage", ":minute8-test-planning"))
    fixed(patient)
    role, name, document = patient.simulator.put[0]
    assert (role, name) == ("minute8-test-scheduler", "scheduler")
    table = "arn:aws:dynamodb:us-east-1:123456789012:table/minute8-test"
    assert document["Statement"][0]["Resource"] == [
        f"{table}-due",
        "arn:aws:sqs:us-east-1:123456789012:minute8-test-planning",
        f"{table}-runs/index/failures",
        "arn:aws:lambda:us-east-1:123456789012:function:*",
    ]
    assert document["Statement"][1]["Resource"] == ["a", "arn:aws:b"]


def test_a_failed_repair_is_reported_and_the_others_go_on(patient: Patient) -> None:
    patient["events"].disable_rule(Name="minute8-test-tick")
    patient.simulator.denied.add(("sqs:SendMessage", ":minute8-test-planning"))

    def refuses(**_: Any) -> None:
        raise PermissionError("an organization policy refuses it")

    patient.simulator.put_role_policy = refuses  # type: ignore[method-assign, assignment]
    results = {result.check: result.result for result in fixed(patient)}
    assert results["rule"] == "done"
    assert results["permissions scheduler"] == "failed: an organization policy refuses it"
    assert set(problems(patient)) == {f"permissions {function}" for function in FUNCTIONS}


def test_dead_letters_are_sent_again_but_for_garbage_and_what_a_later_version_wrote(patient: Patient) -> None:
    dead, url = patient.queue_url("executions-dead"), patient.queue_url("executions")
    fire_at = at("2026-11-21T03:10:00Z")
    readable = Execution("alice", "report", fire_at, fire_at, 1).encode()
    later = json.dumps({"v": 9, "what": "is this"})
    for body in (readable, later, "given up", '{"v": 1}\n???', Wake(0).encode()):
        patient["sqs"].send_message(QueueUrl=dead, MessageBody=body)
    moved: list[tuple[str, str]] = []

    def send(QueueUrl: str, Entries: list[Any]) -> Any:
        moved.extend((QueueUrl, entry["MessageBody"]) for entry in Entries)
        return {"Successful": Entries}

    patient.alter("sqs", send_message_batch=send)
    (result,) = fixed(patient)
    assert result.result.startswith("1 moved, 3 discarded, 1 left")
    assert moved == [(url, readable)]
    counts = patient["sqs"].get_queue_attributes(QueueUrl=dead, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "1"
    entries = patient["dynamodb"].query(
        TableName="minute8-test-audit",
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": keys.OPERATORS}},
    )["Items"]
    audited = {
        entry["action"]["S"]: (entry["subject"]["S"], json.loads(entry["after"]["S"])) for entry in entries
    }
    assert audited == {
        "dead_letters.redriven": ("executions", {"moved": 1}),
        "dead_letters.discarded": ("executions", {"discarded": 3}),
    }


def test_a_tick_that_does_not_move_the_mark_is_no_success(patient: Patient) -> None:
    _BREAKS["late"](patient)
    patient.alter("lambda", invoke=lambda **_: None)
    (result,) = fixed(patient)
    assert "no tick moved planned_until within 120 s" in result.result


def test_a_tick_has_nothing_to_plan_after_the_first_registration_of_a_new_stage(patient: Patient) -> None:
    _BREAKS["nothing planned"](patient)
    patient.alter("lambda", invoke=lambda **_: None)
    began_at, findings = patient.clock.now(), examine(patient.deployment, 60)
    patient.index.ensure_progress(began_at)  # as the repair of the canary's job does
    (result,) = [
        result
        for result in fix(patient.deployment, findings, lambda *_: True, lambda _: None)
        if result.check == "planned until"
    ]
    assert (result.result, patient.clock.now() < began_at + 60) == ("done", True)


def test_an_execution_with_a_record_is_not_reported(patient: Patient) -> None:
    unrecorded(patient)
    (finding,) = without_record(patient.deployment)
    assert finding.message.endswith("the earliest of 2026-11-21T03:10:00Z: alice:lost:20261121T031000Z")
    patient["dynamodb"].put_item(
        TableName="minute8-test-runs",
        Item={"pk": {"S": "alice#lost"}, "sk": {"S": "20261121T031000Z"}},
    )
    (finding,) = without_record(patient.deployment)
    assert finding.level == Level.OK
