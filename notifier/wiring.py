"""Builds the notifier."""

from __future__ import annotations

from concurrent.futures import Executor

from common.clock import Clock
from common.notices.subscription import Subscriptions
from common.planning.due_index import DueIndex
from common.storage.table import Tables
from common.tenants.rules_cache import RulesOf
from notifier.delivery import Deliver
from notifier.look import Look
from notifier.notifier import Notifier


def notifier(
    tables: Tables, clock: Clock, rules: RulesOf, deliver: Deliver, pool: Executor, reads: Executor
) -> Notifier:
    """The notifier. `pool` runs tenants and messages, `reads` the reads of single jobs."""
    look = Look(tables.jobs, tables.runs, DueIndex(tables.due), reads)
    return Notifier(Subscriptions(tables.jobs), look, rules, deliver, clock, pool)
