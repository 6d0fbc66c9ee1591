"""Erases what a run's target and caller said: payload, answer, log, error texts. The record stays, as does its outcome.

The projection has no texts of runs, so nothing of them is left there. A muted failure keeps its error; that goes too. A
failed run stays in its group, and muted with it.
"""

from __future__ import annotations

from typing import Final

from msgspec import to_builtins
from msgspec.structs import replace

from common.errors import Conflict
from common.jobs.muted_groups import MutedGroups
from common.planning.execution import OWN_PAYLOAD_PREFIX, split_run_name
from common.runs.run import Run
from common.runs.states import ENDED
from common.storage import keys
from common.storage.expressions import PRESENT, Attribute, change, unchanged
from common.storage.table import Tables
from common.storage.transactions import Transaction
from common.tenants.audit import AuditedCommit

ERASED: Final = ("payload of its own", "answer", "log tails", "error texts", "progress", "notes of its end")
# What holds copies that Minute8 does not reach.
NOT_COVERED: Final = (
    "exported days of runs",
    "backups of the tables",
    "messages and events that were sent, and dead letters",
    "the job's definition and payload",
    "logs of the target and of traces",
)
_TEXTS: Final = (
    "error",
    "detail",
    "dead_letter_error",
    "stop_problem",
    "look_problem",
    "progress",
    "report",
    "stop",
)


def erase_details(tables: Tables, run: Run, error_group: str, commit: AuditedCommit, now: float) -> None:
    """Erase a run's texts, with an audit entry. Repeating it changes nothing more. `error_group`: of its failure.

    Raises Conflict (it goes on), Busy.
    """
    if run.status not in ENDED:
        raise Conflict(f"run {run.execution_id} goes on, and would write more: erase it when it has ended")
    bare = [to_builtins(replace(attempt, error="", log_tail="")) for attempt in run.attempts]
    tx = Transaction(tables.runs.client)
    kept = {"attempts": bare, "erased_at": int(now), "error_group": error_group}
    written = change(kept, remove=_TEXTS)
    as_read = unchanged(run.to_item(), "status", "attempt", "signs")
    tx.update(tables.runs, run.key, written, as_read)
    if failure := commit.try_commit(tx, run.tenant, "run.erased", run.execution_id, now):
        raise Conflict(f"run {run.execution_id} has changed meanwhile") from failure
    _erase_payload(tables, run)
    _erase_muted(tables, run)


def _erase_payload(tables: Tables, run: Run) -> None:
    named = split_run_name(run.run_name)
    if named and named[1].startswith(OWN_PAYLOAD_PREFIX):
        key = keys.asked_by_hand(run.tenant, run.job_id, named[1].removeprefix(OWN_PAYLOAD_PREFIX))
        tables.jobs.update_if(key, change(remove=["payload"]), PRESENT)


def _erase_muted(tables: Tables, run: Run) -> None:
    for group in MutedGroups(tables.jobs).stored(run.tenant):
        if group.job_id == run.job_id:
            key = keys.muted_group(run.tenant, group.job_id, group.fingerprint)
            tables.jobs.update_if(key, change({"error": ""}), Attribute("fingerprint") == group.fingerprint)
