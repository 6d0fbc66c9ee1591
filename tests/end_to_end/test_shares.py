"""A window divided among planners on the embedded AWS, with the functions and roles of serverless.yml."""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager

import pytest

from scripts import versions
from scripts.demo.stage import Stage
from scripts.demo.workload import Registration
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from tests.waiting import keep_clear_of_the_rule, wait_until

pytestmark = pytest.mark.embedded
SCHEDULER = "minute8-test-scheduler"


def with_share_entries(embedded: Embedded, entries: int) -> AbstractContextManager[None]:
    """Set the parameter plannerShareEntries during a block."""
    functions = client(embedded, "lambda")
    before = functions.get_function_configuration(FunctionName=SCHEDULER)["Environment"]["Variables"]
    changed = before | {"PLANNER_SHARE_ENTRIES": str(entries)}
    return versions.changed(functions, SCHEDULER, Environment={"Variables": changed})


def test_planners_hand_over_what_a_tick_divides(embedded: Embedded) -> None:
    stage = Stage(embedded.env(), "test")
    target = {"kind": "lambda", "arn": stage.deploy_target(), "invocation": "Event"}
    stage.allow(["alice"], target["arn"])
    zones = ("UTC", "Asia/Tokyo", "Europe/Berlin", "America/New_York")
    jobs = stage.register(
        [
            Registration(
                "alice",
                f"shared-{n}",
                {"schedule": {"cron": "* * * * *", "timezone": zone}, "target": target},
            )
            for n, zone in enumerate(zones)
        ]
    )
    try:
        keep_clear_of_the_rule()
        with with_share_entries(embedded, 10):
            reopened(embedded, stage)
            summary = json.loads(stage.tick())
            assert (summary["planned"], summary["shares"] > 1) == (0, True)
            progress = wait_until(lambda: (m := stage.progress()) and not m.is_open and m, stage.progress)
        assert progress.planned_until == progress.divided_until
        again = json.loads(stage.tick())["planned"]
        assert again == 0
    finally:
        for job in jobs:
            stage.store.delete(job.tenant, job.job_id)


def reopened(embedded: Embedded, stage: Stage) -> None:
    """Put planned_until back by ten minutes, so that there is a window to plan. What is sent twice runs once."""
    progress = stage.index.ensure_progress(time.time())
    client(embedded, "dynamodb").put_item(
        TableName="minute8-test-due",
        Item={
            "pk": {"S": "PROGRESS"},
            "sk": {"S": "PROGRESS"},
            "planned_until": {"N": str(progress.planned_until - 600)},
            "planning_until": {"N": str(progress.planned_until - 600)},
        },
    )
