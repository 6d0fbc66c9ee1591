"""Logs and metrics: all metric names are here.

One log line per invocation and per failure, none per successful run: for a million runs, log lines would cost more than
the runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from common.config import config

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.metrics import EphemeralMetrics

NAMESPACE = "Minute8"

EXECUTIONS_PLANNED = "ExecutionsPlanned"
EXECUTIONS_MISSED = "ExecutionsMissed"
BAD_ENTRIES = "BadDueEntries"
OVER_PACE = "ExecutionsOverPace"
PLANNING_LAG_S = "PlanningLagSeconds"
SET_ASIDE = "SetAside"
CONTRADICTIONS = "Contradictions"
EXECUTIONS_WITHOUT_RECORD = "ExecutionsWithoutRecord"
LATENESS_S = "LatenessSeconds"
RUNS = "Runs"
OUTCOMES = "Outcomes"
MESSAGES_FAILED = "MessagesFailed"
# The service level: executions that started in time and were recorded, of all that were due.
SERVICE_GOOD = "ServiceGood"
SERVICE_TOTAL = "ServiceTotal"


_log = logging.getLogger("minute8")


class tolerated:
    """Logs whatever the block raises as `message`, and goes on after it: somebody else does what it leaves undone."""

    __slots__ = ("_fields", "_message")

    def __init__(self, message: str, **fields: object) -> None:
        self._message, self._fields = message, fields

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        is_error = isinstance(error, Exception)
        if is_error:
            _log.warning(self._message, extra=self._fields, exc_info=error)
        return is_error


@contextmanager
def spans_are_packaged() -> Iterator[None]:
    """Log an error in place of a block whose modules are not packaged (deploy/spans.js)."""
    try:
        yield
    except ImportError as error:
        logger().error("spans are not exported", problem=repr(error))


@cache
def logger() -> Logger:
    """The logger of this process. Logs are JSON, one object a line."""
    from aws_lambda_powertools import Logger

    powertools = Logger(service="minute8")
    # Powertools takes the level of Lambda's own filter. That has to let INFO pass, which is what metrics count as.
    logging.getLogger("minute8").setLevel(config().log_level)
    return powertools


@cache
def metrics() -> EphemeralMetrics:
    """The metrics of this process. `flush_metrics` writes them into the log."""
    from aws_lambda_powertools.metrics import EphemeralMetrics

    powertools = EphemeralMetrics(namespace=NAMESPACE, service="minute8")
    powertools.set_default_dimensions(stage=config().stage)  # two stages may share an account
    return powertools
