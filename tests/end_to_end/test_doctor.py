"""`minute8 doctor` on the embedded AWS, by a user who has exactly the permissions of deploy/policies/doctor.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.demo.stage import Stage
from scripts.embedded import Embedded
from tests.end_to_end.leaving import remove_dead_letters
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]
PLANNER = "minute8-test-planner"
# On a busy machine a check takes longer than the doctor waits by itself.
PATIENT = ("--timeout", "120")


@pytest.fixture
def doctor(embedded: Embedded, aws: Any) -> Iterator[Callable[[], tuple[int, dict[str, str]]]]:
    """Runs the command as a process; returns its exit code and the findings other than `ok`, by check.

    Without CloudWatch's metrics and alarms: other tests make functions fail.
    """
    iam = aws("iam")
    policy = (ROOT / "deploy/policies/doctor.json").read_text()
    iam.create_user(UserName="doctor")
    iam.put_user_policy(UserName="doctor", PolicyName="doctor", PolicyDocument=policy)
    key = iam.create_access_key(UserName="doctor")["AccessKey"]
    environment = os.environ | embedded.env()
    environment |= {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}

    def run() -> tuple[int, dict[str, str]]:
        assert embedded.api_url
        command = [
            sys.executable,
            "-m",
            "minute8",
            "--url",
            embedded.api_url,
            "doctor",
            "--stage",
            "test",
            *PATIENT,
            "--json",
        ]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        findings = json.loads(done.stdout)["findings"]
        assert done.returncode == int(any(f["level"] == "failed" for f in findings))
        stable = [f for f in findings if f["check"] not in ("last hour", "alarms")]
        problems = {f["check"]: f["found"] for f in stable if f["level"] != "ok"}
        return int(any(f["level"] == "failed" for f in stable)), problems

    yield run
    iam.delete_access_key(UserName="doctor", AccessKeyId=key["AccessKeyId"])
    iam.delete_user_policy(UserName="doctor", PolicyName="doctor")
    iam.delete_user(UserName="doctor")


def test_a_deployment_is_well_until_something_is_broken(
    embedded: Embedded, aws: Any, doctor: Callable[[], tuple[int, dict[str, str]]]
) -> None:
    Stage(embedded.env(), "test").tick()
    remove_dead_letters(embedded)
    assert doctor() == (0, {})
    events, functions, iam = aws("events"), aws("lambda"), aws("iam")
    role = functions.get_function_configuration(FunctionName=PLANNER)["Role"].rpartition("/")[2]
    policy = iam.get_role_policy(RoleName=role, PolicyName="planner")["PolicyDocument"]
    dead = aws("sqs").get_queue_url(QueueName="minute8-test-planning-dead")["QueueUrl"]
    try:
        events.disable_rule(Name="minute8-test-tick")
        functions.put_function_concurrency(
            FunctionName="minute8-test-outcomes", ReservedConcurrentExecutions=0
        )
        iam.delete_role_policy(RoleName=role, PolicyName="planner")
        aws("sqs").send_message(QueueUrl=dead, MessageBody="given up")
        # IAM's delay: the policy counts for some seconds more.
        wait_until(lambda: "permissions planner" in doctor()[1], "the role's policy still counts")
        code, problems = doctor()
        fixed = subprocess.run(
            [
                sys.executable,
                "-m",
                "minute8",
                "doctor",
                "--stage",
                "test",
                *PATIENT,
                "--fix",
                "--yes",
                "--json",
            ],
            cwd=ROOT,
            env=os.environ | embedded.env() | {"MINUTE8_URL": embedded.api_url or ""},
            capture_output=True,
            text=True,
            check=False,
        )
        report = json.loads(fixed.stdout)
        after = iam.get_role_policy(RoleName=role, PolicyName="planner")["PolicyDocument"]
    finally:
        events.enable_rule(Name="minute8-test-tick")
        functions.delete_function_concurrency(FunctionName="minute8-test-outcomes")
        iam.put_role_policy(RoleName=role, PolicyName="planner", PolicyDocument=json.dumps(policy))
        aws("sqs").purge_queue(QueueUrl=dead)
    assert (code, problems.keys()) == (
        1,
        {
            "rule",
            "settings",
            "function outcomes",
            "permissions planner",
            "policies",
            "dead letters planning",
        },
    )
    assert "its role may not" in problems["permissions planner"]
    assert "the policy planner of" in problems["policies"]
    assert "is gone, so it does not allow" in problems["policies"]
    # One repair puts all policies of a role back.
    assert {repair["check"]: repair["result"].split(";")[0] for repair in report["repairs"]} == {
        "rule": "done",
        "settings": "done",
        "function outcomes": "done",
        "permissions planner": "done",
        "dead letters planning": "1 discarded",
    }
    assert [finding for finding in report["findings"] if finding["level"] == "failed"] == []
    assert (fixed.returncode, fixed.stderr, after) == (0, "", policy)
    assert doctor()[0] == 0
