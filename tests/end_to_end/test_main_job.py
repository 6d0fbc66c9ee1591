"""The main path on the embedded AWS: deploy, register, tick, run, inspect; also with power cuts and crashes.

The checks are the demo's: they compare schedules, runs and the target's own log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from common.jobs.job import Job
from common.planning.execution import Execution
from common.timing.instants import rfc3339
from scripts.demo.stage import Stage
from scripts.demo.witness import EXPLAINED, calls_in, expected, problems
from scripts.demo.workload import Registration
from scripts.embedded import Embedded, kill, start
from tests.waiting import keep_clear_of_the_rule, wait_for_snapshots, wait_until

pytestmark = pytest.mark.embedded
SOON_S = 5


@pytest.fixture(scope="module")
def stage(embedded: Embedded) -> Stage:
    return Stage(embedded.env(), "test")


@pytest.fixture
def register(stage: Stage) -> Iterator[Callable[..., Job]]:
    """Registers a job of the tenant `alice` against the sample target, and deletes it after the test."""
    target = {"kind": "lambda", "arn": stage.deploy_target(), "invocation": "RequestResponse"}
    stage.allow(["alice"], target["arn"])
    jobs: list[Job] = []

    def register_job(
        job_id: str, schedule: dict[str, Any], invocation: str = "RequestResponse", **fields: Any
    ) -> Job:
        definition = {"schedule": schedule, "target": target | {"invocation": invocation}, **fields}
        (job,) = stage.register([Registration("alice", job_id, definition)])
        jobs.append(job)
        return job

    yield register_job
    for job in jobs:
        stage.store.delete(job.tenant, job.job_id)


def wait_for_runs(stage: Stage, due: list[Execution], statuses: frozenset[str] = EXPLAINED) -> dict[str, Any]:
    """The runs of these executions, as soon as all have one of `statuses`."""
    runs: dict[str, Any] = {}

    def unfinished() -> dict[str, Any]:
        runs.update(stage.runs(due))
        status_of = {e.execution_id: runs.get(e.execution_id, {}).get("status") for e in due}
        return {name: status for name, status in status_of.items() if status not in statuses}

    wait_until(lambda: not unfinished(), lambda: f"not {sorted(statuses)}: {unfinished()}")
    return runs


def soon() -> str:
    """Far enough away for a registration that takes long."""
    return rfc3339(int(time.time()) + SOON_S)


def due_of(jobs: list[Job], end: int) -> list[Execution]:
    return [execution for job in jobs for execution in expected(job, 0, end)]


def test_jobs_fire_on_their_second_and_are_recorded(stage: Stage, register: Callable[..., Job]) -> None:
    started_at = time.time()
    jobs = [
        register("every-3-seconds", {"cron": "*/3 * * * * *", "timezone": "Asia/Kathmandu"}),
        register("once", {"at": soon()}),
        register(
            "retried",
            {"at": soon()},
            payload={"fail_first_attempts": 1},
            retry={"max_attempts": 2, "base_s": 1},
        ),
        register("event", {"at": soon()}, invocation="Event"),
    ]
    time.sleep(SOON_S + 2)
    due = due_of(jobs, int(time.time()))
    runs = wait_for_runs(stage, due, frozenset({"succeeded", "dispatched"}))

    def current_problems() -> list[str]:
        return problems(due, runs, calls_in(stage.target_log(started_at)))

    wait_until(lambda: not current_problems(), current_problems)  # an Event call is asynchronous
    by_job = {run["job_id"]: run for run in runs.values()}
    assert [attempt["outcome"] for attempt in by_job["retried"]["attempts"]] == ["failed", "succeeded"]
    assert "as the payload asked" in by_job["retried"]["attempts"][0]["error"]
    assert "done items=" in by_job["once"]["attempts"][0]["log_tail"]
    assert by_job["event"]["status"] == "dispatched"


def test_the_tick_plans_through_its_own_role(stage: Stage, register: Callable[..., Job]) -> None:
    register("minutely", {"cron": "* * * * *"})
    keep_clear_of_the_rule()
    with ThreadPoolExecutor(2) as pool:  # a rule may fire twice
        ticks = [json.loads(tick.result()) for tick in [pool.submit(stage.tick) for _ in range(2)]]
    progress = stage.progress()
    assert [tick["bad"] for tick in ticks] == [[], []]
    assert progress is not None
    assert progress.planned_until == max(tick["end"] for tick in ticks) > time.time()
    assert json.loads(stage.tick())["planned"] == 0


def test_a_power_cut_loses_nothing(embedded: Embedded, stage: Stage, register: Callable[..., Job]) -> None:
    started_at = time.time()
    job = register("every-2-seconds", {"cron": "*/2 * * * * *"})
    wait_until(lambda: len(stage.runs(due_of([job], int(time.time())))) > 1, "two runs")
    wait_for_snapshots(embedded)
    logged = calls_in(stage.target_log(started_at))
    kill(Path(embedded.state_dir))
    restarted = start(Path(embedded.state_dir), embedded.port, strict=True, tied=True)
    assert restarted.port == embedded.port
    time.sleep(5)
    due = due_of([job], int(time.time()))
    runs = wait_for_runs(stage, due)
    calls = calls_in(stage.target_log(started_at))
    # A worker's log arrives after its answer, so a snapshot may have a run without its call.
    called_ids = {call.execution_id for call in calls}
    assert (
        problems(due, runs, [*calls, *(call for call in logged if call.execution_id not in called_ids)]) == []
    )
