"""What readers' data was stored as in each version stays readable: the projection, the directory, the export's marks.

Compressed texts are compared after they are unpacked: another zlib may compress the same text to other bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from common.history.job_directory import JobDirectory
from common.planning.chores import position_in
from common.planning.execution import Execution
from common.planning.log import CHANGED, PLANNED, ExecutionLog
from common.projection.days import DayTotals, date_of
from common.projection.outcomes import JobOutcomes
from common.projection.state import ProjectionState, ProjectionStates
from common.projection.tenants import ProjectedTenants
from common.projection.windows import LateRuns, ProjectedRuns
from common.storage import keys
from common.storage.table import Tables
from common.storage.wire import from_wire
from common.tenants.audit import Audit
from scheduler.export_handler import Exporter, _Mark
from tests.worlds import open_world

# 2026-11-21T03:40:00Z, a window; and an hour later.
WINDOW, NOW = 1_795_232_400, 1_795_236_000
DAY = WINDOW - WINDOW % 86_400
Read = Callable[[Tables], Any]


def window(tables: Tables) -> Any:
    runs = ProjectedRuns(tables.runs)
    stored = runs.window("alice", WINDOW)
    assert stored
    listed = to_builtins(list(runs.runs_of("alice", stored)))
    return {"runs": listed, "totals": to_builtins(stored.totals), "version": stored.version}


def day(tables: Tables) -> Any:
    item = tables.runs.get(keys.projected_day("alice", date_of(DAY)))
    assert item
    return to_builtins(DayTotals.from_item(item).hours)


def tenants(tables: Tables) -> Any:
    totals = ProjectedTenants(tables.runs).between(WINDOW, WINDOW + 600)
    hours = {str(hour): asdict(each) for hour, each in totals.hours.items()}
    return {"tenants": {tenant: asdict(each) for tenant, each in totals.tenants.items()}, "hours": hours}


def looks(tables: Tables) -> Any:
    (look,) = ExecutionLog(tables.due).chunks(NOW - 7_200, NOW + 7_200, keys.log_bucket("alice"))
    return [look.kind, *(Execution.decode(body).execution_id for body in look.bodies())]


def state(tables: Tables) -> Any:
    states = ProjectionStates(tables.due)
    stored = states.read()
    assert stored
    return [stored.since, stored.until_of("alice")]


def late(tables: Tables) -> Any:
    return [[*key, to_builtins(entry)] for key, entry in LateRuns(tables.runs).since("alice", 0)]


def outcomes(tables: Tables) -> Any:
    projection = ProjectionState(DAY, {keys.log_bucket("alice"): WINDOW + 600})
    last = JobOutcomes(tables.runs).of_tenant("alice", projection, NOW, lambda: None)
    return {job_id: [list(outcome) for outcome in last.of(job_id)] for job_id in last.rows}


def directory(tables: Tables) -> Any:
    listed = JobDirectory(tables.jobs, Audit(tables.tenants)).listed("alice", NOW)
    return [list(job) for job in listed]


def logged(tables: Tables) -> Any:
    return {
        kind: [
            Execution.decode(body).execution_id
            for chunk in ExecutionLog(tables.due).chunks(WINDOW, WINDOW + 600)
            if chunk.kind == kind
            for body in chunk.bodies()
        ]
        for kind in (PLANNED, CHANGED)
    }


def export(tables: Tables) -> Any:
    exporter = object.__new__(Exporter)
    object.__setattr__(exporter, "tables", tables)
    stored = exporter._state("alice", DAY)
    assert stored
    return [
        to_builtins(stored),
        asdict(_Mark.stored(position_in(tables.due.get(keys.chore("export"))), 0, 0)),
    ]


READ: Mapping[str, Read] = {
    "a window with its runs": window,
    "a window with its runs in chunks": window,
    "the totals of a day": day,
    "the totals of the platform's tenants": tenants,
    "the totals of the platform's tenants in an hour": tenants,
    "the totals of the platform's tenants with skipped runs": tenants,
    "runs to read again": looks,
    "how far the projection is": state,
    "runs that changed late": late,
    "the last outcomes of jobs": outcomes,
    "the directory of jobs": directory,
    "the logs in buckets": logged,
    "how far the export is": export,
}
CASES = [json.loads(line) for line in (Path(__file__).parent / "history.jsonl").read_text().splitlines()]


def test_every_kind_of_item_has_a_line() -> None:
    assert {case["what"] for case in CASES} == set(READ)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["what"])
def test_stored_history_is_read(case: Mapping[str, Any]) -> None:
    with open_world() as world:
        for table, item in case["items"]:
            world.table(table).put(from_wire(item))
        assert json.loads(json.dumps(READ[case["what"]](world.tables))) == case["means"]
