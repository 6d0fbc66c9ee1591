"""Dead letters: an operator counts them, sees what they are about, sends them again and discards them."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.platform.dead_letters import DeadLetters
from common.storage import keys
from common.tenants.audit import Audit
from tests.api.calls import Office
from tests.api.dead_letters import URL, LetterBox
from tests.cli.conftest import Desk
from tests.cli.conftest import desk as desk
from tests.manual_clock import ManualClock
from tests.worlds import job

DEAD_LETTERS_S = 15

SHARE = '{"v":1,"end":1795231800,"share":3}'
OUTCOME = (
    '{"requestContext": {}, "requestPayload": {"minute8": {"execution_id": "alice:report:20261121T031500Z"}}}'
)
RUN = "alice:report:20261121T031500Z"


def letters_of(office: Office) -> list[str]:
    """A pack and one execution, and garbage, in the dead letters of the executions; one each in the others."""
    office.alice("PUT", "/v1/jobs/report", job(at="2026-11-21T03:15:00Z"))
    (body,) = office.world.sqs.bodies
    pack = f"{body}\n{body.replace('report', 'sync').replace('alice', 'bob')}"
    office.dead_letters.put("executions-dead", body, pack, "<script>")
    office.dead_letters.put("planning-dead", SHARE)
    office.dead_letters.put("outcomes-dead", OUTCOME, "null")
    return [body, pack]


def listed(office: Office, queue: str) -> dict[str, dict[str, Any]]:
    answered = office.operator("GET", f"/v1/dead-letters/{queue}").json["dead_letters"]
    return {dead_letter["message_id"]: dead_letter for dead_letter in answered}


def counts(office: Office) -> dict[str, int]:
    answered = office.operator("GET", "/v1/dead-letters").json["queues"]
    return {dead_letter["queue"]: dead_letter["dead_letters"] for dead_letter in answered}


def test_they_are_counted_and_what_they_are_about_is_shown(office: Office) -> None:
    letters_of(office)
    assert counts(office) == {"executions": 3, "planning": 1, "outcomes": 2}
    for _ in range(2):  # looking hides none
        dead_letter, pack, garbage = listed(office, "executions").values()
        assert (dead_letter["about"], dead_letter["problem"]) == ([RUN], None)
        assert pack["about"] == [RUN, "bob:sync:20261121T031500Z"]
        assert garbage["about"] == [] and "not an execution" in garbage["problem"]
    (share,) = listed(office, "planning").values()
    assert share["about"] == ["share 3 of the window until 1795231800"]
    assert [dead_letter["about"] for dead_letter in listed(office, "outcomes").values()] == [[RUN], []]


def test_they_are_sent_again_but_for_what_cannot_be_read(office: Office) -> None:
    readable = letters_of(office)
    done = office.operator("POST", "/v1/dead-letters/executions/redrive", {"all": True}).json
    assert (done["done"], len(done["left"]), done["more"]) == (2, 1, False)
    assert office.dead_letters.bodies("executions") == readable
    assert counts(office)["executions"] == 1
    for queue in ("outcomes", "planning"):
        office.operator("POST", f"/v1/dead-letters/{queue}/redrive", {"all": True})
    assert (office.dead_letters.bodies("outcomes"), office.dead_letters.bodies("planning")) == (
        [OUTCOME],
        [SHARE],
    )
    assert office.dead_letters.bodies("outcomes-dead") == ["null"]
    audit = Audit(office.world.table("tenants")).newest(keys.OPERATORS, 50)
    printed = [dead_letter for dead_letter in audit if dead_letter.action == "dead_letters.redriven"]
    moved = {"executions": {"moved": 2}, "outcomes": {"moved": 1}, "planning": {"moved": 1}}
    assert {dead_letter.subject: dead_letter.after for dead_letter in printed} == moved
    assert not any(dead_letter.by == "aws" for dead_letter in printed)


def test_refused_registrations_say_why_and_are_sent_again(office: Office) -> None:
    """They are there only in a deployment that takes registrations by event."""
    missing = office.operator("GET", "/v1/dead-letters/registrations")
    assert (missing.status, "registrations" in counts(office)) == (404, False)
    office.dead_letters.missing.clear()
    event = {"id": "e1", "detail-type": "Minute8 Job Put", "detail": {"job_id": "report", "job": {}}}
    body = json.dumps({"tenant": "alice", "event": event}, indent=1)
    office.dead_letters.reasons[body] = "schedule: is missing"
    office.dead_letters.put("registrations-dead", body, "null", '{"tenant": "alice", "event": {"id": [9]}}')
    assert counts(office)["registrations"] == 3
    dead_letter, *unreadable = listed(office, "registrations").values()
    assert dead_letter["about"] == ["Minute8 Job Put of alice:report", "schedule: is missing"]
    assert ["no event of a rule" in each["problem"] for each in unreadable] == [True, True]
    done = office.operator("POST", "/v1/dead-letters/registrations/redrive", {"all": True}).json
    assert (done["done"], office.dead_letters.bodies("registrations")) == (1, [body])


def test_only_the_chosen_ones_are_discarded(office: Office) -> None:
    letters_of(office)
    garbage = [key for key, dead_letter in listed(office, "executions").items() if dead_letter["problem"]]
    done = office.operator("POST", "/v1/dead-letters/executions/discard", {"message_ids": garbage}).json
    assert (done["done"], done["left"]) == (1, [])
    assert len(listed(office, "executions")) == 2
    again = office.operator("POST", "/v1/dead-letters/executions/discard", {"message_ids": garbage}).json
    assert again["done"] == 0


def test_a_request_takes_a_hundred(office: Office) -> None:
    office.dead_letters.put("planning-dead", *[SHARE] * 130)
    assert office.operator("GET", "/v1/dead-letters/planning").json["more"] is True
    last = next(iter(office.dead_letters.queues.values()))
    chosen = [*last][-3:]  # behind more dead letters than a list shows
    assert (
        office.operator("POST", "/v1/dead-letters/planning/discard", {"message_ids": chosen}).json["done"]
        == 3
    )
    done = office.operator("POST", "/v1/dead-letters/planning/discard", {"all": True}).json
    assert (done["done"], done["more"], counts(office)["planning"]) == (100, True, 27)


def test_a_letter_that_sqs_refuses_stays_with_the_reason(office: Office) -> None:
    body, pack = letters_of(office)
    office.dead_letters.refused, office.dead_letters.kept = {body}, {"null", OUTCOME}
    done = office.operator("POST", "/v1/dead-letters/executions/redrive", {"all": True}).json
    assert "SQS did not take it again: InternalError" in [
        dead_letter["problem"] for dead_letter in done["left"]
    ]
    assert (done["done"], office.dead_letters.bodies("executions")) == (1, [pack])
    assert set(office.dead_letters.bodies("executions-dead")) == {body, "<script>"}
    done = office.operator("POST", "/v1/dead-letters/outcomes/discard", {"all": True}).json
    assert [dead_letter["problem"] for dead_letter in done["left"]] == [
        "SQS did not delete it: InternalError"
    ] * 2
    assert counts(office) == {"executions": 2, "planning": 1, "outcomes": 2}


def test_large_ones_are_sent_in_several_requests() -> None:
    dead_letters = LetterBox()
    large = OUTCOME[:-1] + ", " + f'"responsePayload": "{"x" * 100_000}"' + "}"
    dead_letters.put("outcomes-dead", *[large] * 7)
    done = DeadLetters(dead_letters, URL).redrive("outcomes")  # type: ignore[arg-type]
    assert (len(done.moved), dead_letters.bodies("outcomes"), dead_letters.bodies("outcomes-dead")) == (
        7,
        [large] * 7,
        [],
    )


def test_a_request_ends_before_the_first_letters_are_visible_again() -> None:
    dead_letters, clock = LetterBox(), ManualClock(0)
    dead_letters.put("planning-dead", *["garbage"] * 60, *[SHARE] * 60)
    receive = dead_letters.receive_message

    def slow(**arguments: Any) -> Any:
        assert clock.now() < arguments["VisibilityTimeout"], "the first ones are visible again"
        clock.sleep(9)
        return receive(**arguments)

    dead_letters.receive_message = slow  # type: ignore[method-assign]
    done = DeadLetters(dead_letters, URL, clock.now).redrive("planning", 1_000)  # type: ignore[arg-type]
    assert (len(done.moved), len(done.remaining), done.more) == (0, 50, True)
    assert not dead_letters.hidden, "what stays is shown"


def test_a_message_that_comes_twice_does_not_end_the_search() -> None:
    dead_letters = LetterBox()
    dead_letters.put("planning-dead", *[SHARE] * 12)
    receive, polls = dead_letters.receive_message, count(1)

    def twice(**arguments: Any) -> Any:
        if next(polls) == 2:
            dead_letters.again = ["m1"]
            arguments["MaxNumberOfMessages"] = 1
        return receive(**arguments)

    dead_letters.receive_message = twice  # type: ignore[method-assign]
    answered = DeadLetters(dead_letters, URL).peek("planning")  # type: ignore[arg-type]
    assert (len(answered.remaining), answered.more) == (12, False)


def test_a_letter_not_found_among_a_thousand_may_be_behind_them() -> None:
    dead_letters = LetterBox()
    dead_letters.put("planning-dead", *[SHARE] * 1_001)
    last = [*dead_letters.queues[f"{URL.removesuffix('executions')}planning-dead"]][-1]
    dead = DeadLetters(dead_letters, URL)  # type: ignore[arg-type]
    done = dead.discard("planning", only=[last])
    assert (done.count, done.more) == (0, True)
    assert dead.discard("planning", only=["m1"]).more is False
    assert dead.discard("planning", only=[last]).count == 1


def test_a_request_ends_before_the_function_is_stopped() -> None:
    timeout_s = yaml.safe_load(Path("serverless.yml").read_text())["functions"]["api"]["timeout"]
    dead_letters, clock = LetterBox(), ManualClock(0)
    dead_letters.put("planning-dead", *[SHARE] * 200)
    receive = dead_letters.receive_message

    def slow(**arguments: Any) -> Any:
        clock.sleep(4)
        return receive(**arguments)

    dead_letters.receive_message = slow  # type: ignore[method-assign]
    done = DeadLetters(dead_letters, URL, clock.now, DEAD_LETTERS_S).discard("planning", 200)  # type: ignore[arg-type]
    assert clock.now() < timeout_s - 10
    assert (done.more, done.count) == (True, 40)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"all": False},
        {"message_ids": []},
        {"message_ids": ["a"], "all": True},
        {"message_ids": [7]},
        {"message_ids": ["x"] * 101},
        {"message_ids": ["x" * 101]},
        {"all": "yes"},
        {"which": 1},
    ],
)
def test_which_ones_has_to_be_said(office: Office, body: dict[str, Any]) -> None:
    office.dead_letters.put("planning-dead", SHARE)
    for verb in ("redrive", "discard"):
        assert office.operator("POST", f"/v1/dead-letters/planning/{verb}", body).problem == "invalid-input"
    assert counts(office)["planning"] == 1


def test_the_command_does_the_same(desk: Desk) -> None:
    letters_of(desk.office)
    desk.environment["MINUTE8_OPERATOR_KEY"] = str(desk.office.operator.key)
    assert "executions  3" in desk("dead-letters", "list").out
    assert RUN in desk("dead-letters", "list", "executions").out
    printed = desk("dead-letters", "redrive", "executions").out
    assert "2 done, 1 left" in printed and "not an execution" in printed
    assert desk("dead-letters", "discard", "executions", stdin="n\n").code == 1
    assert "1 done, 0 left" in desk("dead-letters", "discard", "executions", "--yes").out
    assert desk("dead-letters", "list", "nothing").code != 0


def refusing(office: Office, reasons: dict[str, str]) -> list[str]:
    """Registrations in the dead letters. Those with a reason are refused each time they are sent; returns all sent."""
    office.dead_letters.missing.clear()
    bodies = [_registration(job_id) for job_id in reasons]
    office.dead_letters.put("registrations-dead", *bodies)
    office.dead_letters.reasons = {
        body: reason for body, reason in zip(bodies, reasons.values(), strict=True) if reason
    }
    sent: list[str] = []
    send = office.dead_letters.send_message_batch

    def refused_at_once(QueueUrl: str, Entries: list[dict[str, Any]]) -> Any:
        answer = send(QueueUrl=QueueUrl, Entries=Entries)
        bodies = [entry["MessageBody"] for entry in Entries]
        sent.extend(bodies)
        office.dead_letters.now = office.world.clock.now() + 0.2
        office.dead_letters.put(
            "registrations-dead", *[body for body in bodies if body in office.dead_letters.reasons]
        )
        return answer

    office.dead_letters.send_message_batch = refused_at_once  # type: ignore[method-assign]
    return sent


def _registration(job_id: str) -> str:
    return json.dumps({"event": {"detail-type": "Job Put", "detail": {"job_id": job_id}}, "tenant": "alice"})


def test_a_registration_that_is_refused_again_is_met_once_and_says_why(office: Office) -> None:
    sent = refusing(office, {"j": "the tenant is suspended"})
    done = office.operator("POST", "/v1/dead-letters/registrations/redrive", {"all": True}).json
    assert (done["done"], done["more"], len(sent)) == (1, False, 1)
    assert [dead_letter["problem"] for dead_letter in done["left"]] == [
        "refused again: the tenant is suspended"
    ]
    assert office.dead_letters.bodies("registrations-dead") == [_registration("j")]
    body = {"all": True, "began_at": done["began_at"]}
    again = office.operator("POST", "/v1/dead-letters/registrations/redrive", body).json
    assert (again["done"], again["more"], len(sent)) == (0, False, 1)


@pytest.mark.parametrize(
    ("count", "reasons", "words"),
    [
        (1, [""], ["1 done, 0 left"]),
        (1, ["suspended"], ["1 done, 1 refused again, 0 left", "1 refused again: suspended"]),
        (101, [""], ["101 done, 0 left"]),
        (
            101,
            ["", "suspended", "quota"],
            ["101 done, 67 refused again, 0 left", "34 refused again: suspended", "33 refused again: quota"],
        ),
        (350, ["quota"], ["350 done, 350 refused again, 0 left", "350 refused again: quota"]),
    ],
)
def test_the_command_ends_when_it_met_each_letter_once(
    desk: Desk, count: int, reasons: list[str], words: list[str]
) -> None:
    of_jobs = {f"j{number}": reasons[number % len(reasons)] for number in range(count)}
    sent = refusing(desk.office, of_jobs)
    desk.environment["MINUTE8_OPERATOR_KEY"] = str(desk.office.operator.key)
    printed = desk("dead-letters", "redrive", "registrations").out
    assert printed.splitlines()[-len(words) :] == words
    assert sorted(sent) == sorted(map(_registration, of_jobs))
    kept = [_registration(job_id) for job_id, reason in of_jobs.items() if reason]
    assert sorted(desk.office.dead_letters.bodies("registrations-dead")) == sorted(kept)


def test_the_command_passes_over_what_cannot_be_read(desk: Desk) -> None:
    desk.office.dead_letters.put("planning-dead", *["garbage"] * 250, *[SHARE] * 130)
    desk.environment["MINUTE8_OPERATOR_KEY"] = str(desk.office.operator.key)
    assert desk("dead-letters", "redrive", "planning").out.endswith("130 done, 250 left\n")
    assert desk("dead-letters", "discard", "planning", "--yes").out.endswith("250 done, 0 left\n")


def test_what_comes_after_the_question_is_not_deleted(office: Office) -> None:
    office.dead_letters.put("planning-dead", SHARE)
    first = office.operator("POST", "/v1/dead-letters/planning/discard", {"all": True}).json
    office.dead_letters.now = office.world.clock.now() + 1
    office.dead_letters.put("planning-dead", SHARE)
    body = {"all": True, "began_at": first["began_at"]}
    again = office.operator("POST", "/v1/dead-letters/planning/discard", body).json
    assert (first["done"], again["done"], again["left"], counts(office)["planning"]) == (1, 0, [], 1)
