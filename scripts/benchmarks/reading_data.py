"""Tables in memory with a tenant's jobs and a week of their runs, or with a platform of many tenants."""

from __future__ import annotations

import json
import random
import re
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError
from msgspec.structs import replace

from common.planning.directory import SHARD_ENTRIES
from common.planning.execution import Execution
from common.planning.log import LogWriter
from common.platform.tenants import Tenants
from common.projection.days import ProjectedDays, day_start
from common.projection.entry import RunEntry, window_of
from common.projection.state import PROJECTION, ProjectionState
from common.projection.tenants import ProjectedTenants
from common.projection.totals import RunTotals
from common.projection.windows import ProjectedRuns, ProjectedWindow
from common.runs.run import Run
from common.storage import keys
from common.storage.table import Table, Tables
from common.storage.wire import to_wire
from common.timing.fires import fires
from common.timing.instants import DAY_S
from common.timing.slots import places
from common.timing.windows import WINDOW_S, window_start
from scripts.benchmarks import workload
from scripts.measure.rounds import track
from tests.simulation.memory_dynamodb import MemoryDynamoDB

TABLES = ("jobs", "due", "runs", "tenants", "audit")
TENANT, BEFORE = "acme", "before"
DAYS = 7
_FREELY = {"allowed_targets": ["*"], "quotas": {"requests_per_minute": 1_000_000}}
# Shares of runs that fail or are skipped, and of jobs that have failed last.
_FAILED, _SKIPPED, _FAILING = 0.01, 0.003, 0.01
# What ticks have written down ends so long ago, at most.
_BEHIND_S = 28 * 60
_RETENTION_S = 30 * DAY_S
_TAKES_S = 0.004
_WINDOWS_A_DAY = DAY_S // WINDOW_S


class ReadTables(MemoryDynamoDB):
    """They answer AWS's protocol, and count requests and units. Indexes are of what was there at the first request."""

    def __init__(self) -> None:
        super().__init__()
        failures = {
            "IndexName": keys.FAILURES.name,
            "KeySchema": [{"AttributeName": keys.FAILURES.pk}, {"AttributeName": keys.FAILURES.sk}],
        }
        for name in TABLES:
            self.create_table(f"bench-{name}", [failures] if name == "runs" else ())
        self.counts: Counter[str] = Counter()
        # By which items expire. A benchmark of a past day gives that day's clock: else nothing is read back.
        self.now: Callable[[], float] = time.time
        self._known: dict[Any, Any] = {}
        # Entries of the due index that are made when they are read: partition -> numbers of jobs.
        self.entries: dict[str, array[int]] = {}

    @property
    def named(self) -> Tables:
        """The tables; what they do is not counted."""
        client: Any = self
        return Tables(lambda name: Table(client, f"bench-{name}", now=lambda: self.now()))

    @property
    def counted(self) -> Tables:
        """The same; requests and units are counted."""
        client: Any = _Counted(self)
        return Tables(lambda name: Table(client, f"bench-{name}", now=lambda: self.now()))

    def answer(self, operation: str, request: dict[str, Any]) -> tuple[int, bytes]:
        """The answer to a request, after DynamoDB's usual time."""
        time.sleep(_TAKES_S)
        try:
            answer = self.ask(re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower(), request)
        except ClientError as error:
            details = {name: value for name, value in error.response.items() if name != "Error"}
            return 400, json.dumps({"__type": error.response["Error"]["Code"], **details}).encode()
        if not operation.startswith(("Batch", "Transact")):
            (answer["ConsumedCapacity"],) = answer["ConsumedCapacity"]
        return 200, json.dumps(answer).encode()

    def ask(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """Count a request, and answer it. Raises ClientError."""
        self._make_entries(request)
        self.counts[method] += 1
        answer: dict[str, Any] = getattr(self, method)(**(request | {"ReturnConsumedCapacity": "TOTAL"}))
        is_read = method in ("get_item", "batch_get_item", "query")
        units = sum(consumed["CapacityUnits"] for consumed in answer["ConsumedCapacity"])
        self.counts["read units" if is_read else "write units"] += units
        return answer

    def _indexed(self, table: str, index: Any, pk: Any) -> Any:
        key = table, index, pk["S"]
        if key not in self._known:
            self._known[key] = super()._indexed(table, index, pk)
        return self._known[key]

    def _make_entries(self, request: dict[str, Any]) -> None:
        partition = request.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S", "")
        for number in self.entries.pop(partition, ()):
            entry = workload.entry(number)
            sk = f"{entry.tenant}#{entry.job_id}"
            self.put("due", {"pk": partition, "sk": sk, "entry": entry.encode()})

    def put(self, table: str, item: dict[str, Any]) -> None:
        """Put an item; nothing is counted."""
        self._set(f"bench-{table}", to_wire({"pk": item["pk"], "sk": item["sk"]}), to_wire(item))


class _Counted:
    """A client that counts its requests."""

    def __init__(self, tables: ReadTables) -> None:
        self.exceptions, self._tables = tables.exceptions, tables

    def __getattr__(self, method: str) -> Any:
        return lambda **request: self._tables.ask(method, request)


def tenant_of(tables: ReadTables, tenant: str, jobs: int, now: int) -> int:
    """Register the jobs of a tenant, and write down a week of their runs. Returns the number of runs."""
    Tenants(tables.named.tenants).create(tenant, "", now, _FREELY)
    rng, until = random.Random(jobs), window_start(now - _BEHIND_S)
    runs, log = ProjectedRuns(tables.named.runs), LogWriter(tables.named.due, 0)
    windows: defaultdict[int, list[RunEntry]] = defaultdict(list)
    failing: set[str] = set()
    for number in track(range(jobs), f"{jobs:,} jobs"):
        job = replace(workload.job(number), tenant=tenant)
        tables.put("jobs", {**keys.job(tenant, job.job_id), **job.to_item()})
        if rng.random() < _FAILING:
            failing.add(job.job_id)
            streak = {"failures": rng.randrange(1, 40), "revision": job.revision}
            tables.put("jobs", {"pk": tenant, "sk": f"{keys.STREAK_PREFIX}{job.job_id}", **streak})
        for at in fires(job.schedule, now - DAYS * DAY_S, window_start(now) + 2 * WINDOW_S):
            execution = Execution(tenant, job.job_id, at, at, 1)
            if at >= until:
                log.add(execution)
            if at <= now:
                record = record_of(execution, rng, job.job_id in failing)
                tables.put("runs", record)
                windows[window_of(record["sk"])].append(RunEntry.of_run(Run.from_item(record)))
    log.write()
    for start, entries in track(sorted(windows.items()), f"{len(windows):,} windows"):
        if start < until:
            runs.merge(tenant, start, {entry.key: entry for entry in entries}, now + _RETENTION_S)
    for day in range(day_start(now) - (DAYS - 1) * DAY_S, day_start(now), DAY_S):
        ProjectedDays(tables.named.runs).roll_up(tenant, day)
    return sum(map(len, windows.values()))


def record_of(execution: Execution, rng: random.Random, fails: bool) -> dict[str, Any]:
    """A run's record, some 700 bytes."""
    at, took_s = execution.fire_at, round(rng.lognormvariate(0, 1), 3)
    lateness_s = round(rng.lognormvariate(-4, 1), 3)
    record = {
        **keys.run(execution.tenant, execution.job_id, execution.run_name),
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "fire_at": at,
        "due_at": at,
        "trigger": "schedule",
        "schedule_revision": 1,
        "expires_at": at + _RETENTION_S,
    }
    if (chance := rng.random()) < _SKIPPED:
        return {**record, "status": "skipped", "reason": "overlap", "detail": "the run before it goes on"}
    failed = fails or chance < _SKIPPED + _FAILED
    if failed:
        record |= {"failed_tenant": execution.tenant, "failed_at": at + took_s}
        record |= {"error_type": "Http503", "error": f"answered 503 to request {at}"}
    attempt = {
        "attempt": 1,
        "started_at": at,
        "finished_at": at + took_s,
        "outcome": "failed" if failed else "succeeded",
    }
    return {
        **record,
        "status": attempt["outcome"],
        "attempt": 1,
        "lateness_s": lateness_s,
        "duration_s": took_s,
        "started_at": at + lateness_s,
        "finished_at": at + lateness_s + took_s,
        "attempts": [attempt | {"log_tail": "x" * 200}],
    }


def project(tables: ReadTables, now: int) -> None:
    """Say that ticks have written down all runs of the week, but of the last half hour."""
    ends = dict.fromkeys(range(keys.LOG_BUCKETS), window_start(now - _BEHIND_S))
    position = ProjectionState(now - 30 * DAY_S, ends).position
    tables.named.due.put({**keys.chore(PROJECTION), "at": position})


def platform_of(tables: ReadTables, tenants: int, jobs: int, now: int) -> None:
    """Tenants with their totals of the last day, and the directory of all jobs. Entries of jobs are made when read."""
    rng, stored = random.Random(jobs), Tenants(tables.named.tenants)
    names = [f"tenant-{number:04}" for number in range(tenants)]
    for name in track(names, f"{tenants:,} tenants"):
        stored.create(name, f"Customer {name}", now, {"allowed_targets": ["*"]})
        item = tables.named.tenants.get(keys.tenant(name)) or {}
        a_day = {"jobs": jobs // tenants, "executions_per_day": jobs // tenants * 3}
        tables.put("tenants", {**item, **a_day})
    until = window_start(now - _BEHIND_S)
    buckets: defaultdict[int, list[str]] = defaultdict(list)
    for name in names:
        buckets[keys.log_bucket(name)].append(name)
    platform = ProjectedTenants(tables.named.runs)
    a_window = round(2.6 * jobs / tenants / _WINDOWS_A_DAY)
    for start in track(range(until - DAY_S, until, WINDOW_S), "windows of the platform"):
        for bucket, of_bucket in buckets.items():
            platform.set(bucket, {(name, start): _window(start, a_window, rng) for name in of_bucket})
    _directory(tables, jobs)


def _window(start: int, runs: int, rng: random.Random) -> ProjectedWindow:
    failed = sum(rng.random() < _FAILED for _ in range(runs))
    late = {0.02: runs - failed, **({2.0: failed} if failed else {})}
    statuses = {"succeeded": runs - failed, **({"failed": failed} if failed else {})}
    return ProjectedWindow("", start, 0, totals_of_chunks=RunTotals(statuses, {}, late))


def _directory(tables: ReadTables, jobs: int) -> None:
    shards: defaultdict[tuple[str, int], array[int]] = defaultdict(lambda: array("I"))
    filling: Counter[str] = Counter()
    for number in track(range(jobs), f"{jobs:,} jobs in the due index"):
        group = workload.group(number)
        shard = shards[group, filling[group]]
        shard.append(number)
        if len(shard) == SHARD_ENTRIES:
            filling[group] += 1
    for (group, number), members in shards.items():
        key = keys.directory(group, number)
        tables.put("due", {**key, "jobs": len(members), "filed": " ".join(places(group))})
        tables.entries[keys.shard_partition(group, number)] = members
