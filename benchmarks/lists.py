"""The cost of a page of all jobs' runs and of a summary, by the tenant's number of jobs.

The tables are generated on request: every job runs once an hour, at its own minute and second.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

from benchmarks.stub_aws import Cost, StubAws
from common.history.run_lists import RunFilter, TenantRuns
from common.history.runs_cursor import RunsCursor
from common.storage import keys
from common.storage.table import Table as DynamoTable
from common.storage.wire import to_wire
from common.timing.instants import compact_time, parse_compact
from scripts.measure.prices import PRICES
from scripts.measure.result import Result, Table

_JOBS = (1, 1_000, 10_000)
_NOW = 1_795_262_400  # 2026-11-21T12:00:00Z
_HOUR_S, _DAY_S = 3_600, 86_400
# As DynamoDB counts them: a job with a small payload, a run with one attempt and a short log.
_JOB_BYTES, _RUN_BYTES = 1_000, 700
_UNIT_BYTES, _PAGE_BYTES = 4_096, 1_000_000
_API_GB = 0.25
# A function with 1,769 MB has a whole processor.
_API_CPU = 256 / 1_769


class _Tenant:
    """Answers queries of the jobs and the runs of one tenant, and counts read units."""

    def __init__(self, jobs: int) -> None:
        self._job_ids = [f"customer-{number:05}-report" for number in range(jobs)]
        self.units = 0

    def query(self, request: dict[str, Any]) -> bytes:
        values = request["ExpressionAttributeValues"]
        first, last = values[":first"]["S"], values[":last"]["S"]
        after = request.get("ExclusiveStartKey", {"sk": {"S": ""}})["sk"]["S"]
        if request["TableName"] == "runs":
            # A bound stands before the runs of its second; a run's name stands for that run.
            within = (":" in last and not after) or last == keys.LAST
            return self._runs(values[":pk"]["S"], first, after or last, within, request)
        prefix = first.partition("#")[0] + "#"
        known = self._job_ids if prefix == keys.JOB_PREFIX else []
        sort_keys = [f"{prefix}{job_id}" for job_id in known]
        items = [
            {"pk": "alice", "sk": sk} for sk in sort_keys if max(first, after) <= sk <= last and sk != after
        ]
        page = items[: _PAGE_BYTES // _JOB_BYTES]
        return self._page(page, _JOB_BYTES, more=len(items) > len(page), request=request)

    def _runs(self, partition: str, first: str, last: str, within: bool, request: dict[str, Any]) -> bytes:
        job_id = partition.partition("#")[2]
        oldest = parse_compact(first) or 0
        offset = int(job_id.split("-")[1]) * 7_919 % _HOUR_S
        newest = parse_compact(last.partition(":")[0]) or _NOW
        fire_at = newest - (newest - offset) % _HOUR_S
        if fire_at == newest and not within:
            fire_at -= _HOUR_S
        times = range(fire_at, oldest - 1, -_HOUR_S)
        runs = [_run(job_id, at) for at in islice(times, request["Limit"])]
        return self._page(runs, _RUN_BYTES, more=len(times) > len(runs), request=request)

    def _page(self, items: list[dict[str, Any]], size: int, *, more: bool, request: dict[str, Any]) -> bytes:
        self.units += max(1, -(-len(items) * size // _UNIT_BYTES))
        names = set(request.get("ExpressionAttributeNames", {}).values())
        shown = [
            to_wire({name: item[name] for name in names & item.keys()} if names else item) for item in items
        ]
        answer: dict[str, Any] = {"Items": shown}
        if more:
            answer["LastEvaluatedKey"] = to_wire({"pk": items[-1]["pk"], "sk": items[-1]["sk"]})
        return json.dumps(answer).encode()


def _run(job_id: str, fire_at: int) -> dict[str, Any]:
    attempt = {"attempt": 1, "started_at": fire_at, "outcome": "succeeded", "log_tail": "x" * 200}
    return {
        **keys.run("alice", job_id, f"{compact_time(fire_at)}:1"),
        "tenant": "alice",
        "job_id": job_id,
        "fire_at": fire_at,
        "due_at": fire_at,
        "status": "succeeded",
        "trigger": "schedule",
        "schedule_revision": 1,
        "lateness_s": fire_at % 100 / 1_000,
        "duration_s": fire_at % 1_000 / 100,
        "attempts": [attempt],
    }


def run(scale: float) -> Result:
    """The first page, the pages until the newest ten minutes are complete, and the first answer of a week's summary."""
    rows, figures = [], {}
    for jobs in _JOBS[: max(2, round(len(_JOBS) * min(scale, 1)))]:
        for name, work in {
            "page of 50": lambda lists: _listed(lists, 50, at_least=0),
            "the last ten minutes": lambda lists: _listed(lists, 200, at_least=600),
            "a week's summary, 10,000 runs of it": _summed,
        }.items():
            measured = _measured(jobs, work)
            rows.append([f"{jobs:,}", name, *_cells(measured)])
            figures[f"{jobs} jobs, {name}"] = measured
    head = [
        "jobs",
        "asked for",
        "requests of ours",
        "runs given",
        "queries",
        "read units",
        "CPU s",
        "seconds at 256 MB",
        "$",
    ]
    table = Table("Each job runs once an hour", head, rows)
    return Result("lists", scale, tables=[table], goals=[], figures=figures)


def _measured(jobs: int, work: Callable[[TenantRuns], tuple[int, int]]) -> dict[str, float]:
    tenant, stub = _Tenant(jobs), StubAws()
    stub.answers["Query"] = tenant.query
    client = stub.client("dynamodb")
    lists = TenantRuns(DynamoTable(client, "jobs"), DynamoTable(client, "runs"))
    with stub.measured() as cost:
        steps, runs = work(lists)
    return _figures(steps, runs, cost, tenant.units)


def _figures(steps: int, runs: int, cost: Cost, units: int) -> dict[str, float]:
    # One of the 32 threads always has work, so the function's share of a processor decides.
    seconds = cost.cpu_s / _API_CPU
    dollars = units * PRICES["dynamodb_read_unit"] + seconds * _API_GB * PRICES["lambda_gb_s_arm64"]
    return {
        "steps": steps,
        "runs": runs,
        "queries": cost.requests["Query"],
        "read_units": units,
        "cpu_s": cost.cpu_s,
        "seconds": seconds,
        "dollars": dollars,
    }


def _cells(measured: dict[str, float]) -> list[str]:
    counts = [f"{measured[name]:,.0f}" for name in ("steps", "runs", "queries", "read_units")]
    return [*counts, f"{measured['cpu_s']:.2f}", f"{measured['seconds']:.1f}", f"{measured['dollars']:.5f}"]


def _listed(lists: TenantRuns, limit: int, at_least: int) -> tuple[int, int]:
    """Read until the last `at_least` seconds are complete."""
    place: RunsCursor | None = RunsCursor.start(_NOW, _NOW - _DAY_S, None)
    steps = runs = 0
    while place:
        page = lists.page("alice", place, RunFilter(), limit=limit)
        place, steps, runs = page.next, steps + 1, runs + len(page.runs)
        if not at_least or (place and place.complete_from_at and place.complete_from_at <= _NOW - at_least):
            break
    return steps, runs


def _summed(lists: TenantRuns) -> tuple[int, int]:
    summary, _ = lists.summary("alice", RunsCursor.start(_NOW, _NOW - 7 * _DAY_S, _NOW))
    return 1, summary.records
