"""The Lambda functions of stage one: the scheduler, and the planner.

EventBridge calls the scheduler at minute 8, 18, 28… The planner takes shares of a window from the planning queue if the
tick has too much work.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from itertools import chain
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from common import telemetry
from common.config import config
from common.deployment import Deployment
from common.planning.chores import ChoreRunner
from common.planning.due_index import PlanningProgress
from common.planning.queue import REMOVAL_REQUEST
from common.planning.shares import PlanningQueue, Shares
from common.storage import aws, keys
from common.storage.table import Query, Tables
from common.timing.windows import WINDOW_S
from common.truth.contradiction import SHARD_COUNT, Contradiction, shard_subject
from scheduler.chores import REMOVALS, chores
from scheduler.gaps import REOPENED
from scheduler.planner import FanOut, Planner, SharePlanner
from scheduler.summary import TickSummary
from scheduler.tick import Scheduler

# No step of a chore begins later than this after the tick's start. The function has 300 s (serverless.yml).
MAX_CHORES_S: Final = 150


def handle(event: object, context: object) -> dict[str, Any]:
    """Run a tick, write down what became of past windows, delete what is to be deleted. Returns the tick's summary.

    The scheduler ignores the event.
    """
    planner = scheduler().planner
    began_at = planner.clock.now()
    summary, planned_at = None, None
    try:
        summary = scheduler().tick(publish_lag(scheduler()))
        planned_at = planner.clock.now()
        _follow_up(summary)
    finally:
        error = sys.exc_info()[0]
        export_spans(summary, began_at, planned_at or planner.clock.now(), error.__name__ if error else "")
    if is_removal_due(deployment().tables, summary):
        remove(summary.now)
    return asdict(summary)


def _follow_up(summary: TickSummary) -> None:
    """Write down what the tick planned and what became of past windows."""
    publish(summary, "tick")
    telemetry.metrics().add_metric(telemetry.SET_ASIDE, "Count", summary.set_aside)
    note_suspects(summary)
    runner = ChoreRunner(deployment().tables.due, deployment().clock, "tick")
    all_done = runner.run(chores(deployment()), summary.now + MAX_CHORES_S)
    telemetry.metrics().flush_metrics()
    if any(done.counts[REOPENED] for done in all_done):
        planned_again = scheduler().tick()
        publish(planned_again, "tick")
        note_suspects(planned_again)


def remove(began_at: float) -> None:
    """Delete what is over, unless another process does."""
    from scheduler.removal import MAX_REMOVAL_S, RemovalLease, run_alone  # most ticks have nothing to delete

    due, clock = deployment().tables.due, deployment().clock
    runner = ChoreRunner(due, clock, "removal")
    until = began_at + MAX_REMOVAL_S
    run_alone(RemovalLease(due), clock, lambda: runner.run(chores(deployment(), REMOVALS), until), until)


def handle_shares(event: Mapping[str, Any], context: object) -> None:
    """Plan the shares of one message, or delete what is over. If it raises, the queue delivers the message again."""
    for record in event["Records"]:
        if record["body"] == REMOVAL_REQUEST:
            remove(deployment().clock.now())
            continue
        summary = _share_planner().plan(record["body"])
        note_suspects(summary)
        publish(summary, "share")
        scheduler().planner.write_down(summary, planners=1)


def publish_lag(scheduler: Scheduler) -> PlanningProgress:
    """Count how late planned_until is, before the tick, which may fail. Returns the progress."""
    now = scheduler.planner.clock.now()
    progress = scheduler.planner.index.ensure_progress(now)
    lag_s = max(0.0, now - progress.planned_until)
    telemetry.metrics().add_metric(telemetry.PLANNING_LAG_S, "Seconds", lag_s)
    telemetry.metrics().flush_metrics()
    return progress


def publish(summary: TickSummary, message: str) -> None:
    """Log and count the results of a tick or a planner."""
    logger, metrics = telemetry.logger(), telemetry.metrics()
    for bad in summary.bad:
        logger.error("not planned", item=bad.name, problem=bad.reason)
    logger.info(
        message,
        **{
            name: value
            for name, value in asdict(summary).items()
            if name not in ("bad", "suspects", "places")
        },
    )
    metrics.add_metric(telemetry.EXECUTIONS_PLANNED, "Count", summary.planned)
    metrics.add_metric(telemetry.EXECUTIONS_MISSED, "Count", summary.missed)
    metrics.add_metric(telemetry.BAD_ENTRIES, "Count", summary.bad_entries + bool(summary.unlogged))
    if summary.missed:  # they were due and never ran
        metrics.add_metric(telemetry.SERVICE_GOOD, "Count", 0)
        metrics.add_metric(telemetry.SERVICE_TOTAL, "Count", summary.missed)
    if summary.over_pace:  # a metric costs money in each hour in which it has a value
        metrics.add_metric(telemetry.OVER_PACE, "Count", summary.over_pace)
    metrics.flush_metrics()


def export_spans(summary: TickSummary | None, began_at: float, ended_at: float, error: str = "") -> None:
    """Export the spans of a tick, where the parameter `otlpEndpoint` is on. `summary` is None: it could not plan."""
    if not config().otlp_endpoint:
        return
    with telemetry.spans_are_packaged():
        from common.tracing.export import span_export
        from scheduler.tick_spans import failed_span, spans_of

        queue_url = config().executions_queue_url
        if export := span_export():
            planned = spans_of(summary, ended_at, queue_url, error) if summary else ()
            export.export([*planned] or [failed_span(began_at, ended_at, queue_url, error)])


def note_suspects(summary: TickSummary) -> None:
    """List the shards that planning found suspicious: the truth chore examines them. An error is only logged."""
    suspects = [
        Contradiction(SHARD_COUNT, shard_subject(group, shard), "another number of entries was read")
        for group, shard in summary.suspects
    ]
    if not suspects:
        return
    from common.truth.contradiction import FoundContradictions  # most planners do not need it

    try:
        FoundContradictions(deployment().tables.due).suspect(suspects, summary.now)
    except (BotoCoreError, ClientError) as error:
        telemetry.logger().error("suspects are not noted", problem=repr(error)[:500])


def is_removal_due(tables: Tables, summary: TickSummary) -> bool:
    """Whether a job has ended, or a group of schedules or a tenant is being deleted.

    Executors ask for the removal of jobs that have ended. What they could not ask for is found within eight ticks, as
    each looks into another partition; what this tick has noted, at once.

    True if this cannot be read: the removal reads it again, and logs the error.
    """
    partitions = keys.partitions("ENDED")
    turn = int(summary.now) // WINDOW_S % len(partitions)
    looked_into = partitions if summary.missed else partitions[turn : turn + 1]
    ended = (tables.due.query(Query(partition, limit=1)) for partition in looked_into)
    deletions = (
        tables.tenants.query(Query(partition, limit=1))
        for partition in (keys.GROUP_DELETIONS, keys.DELETIONS)
    )
    with telemetry.tolerated("not known whether anything is to be removed"):
        return any(True for _ in chain.from_iterable(chain(ended, deletions)))
    return True


@cache
def deployment() -> Deployment:
    """This process's deployment."""
    return Deployment(config())


@cache
def scheduler() -> Scheduler:
    """This process's scheduler. The planner does not need the fan-out."""
    fan_out = None
    if config().planning_queue_url:
        fan_out = FanOut(Shares(deployment().tables.due), _planning_queue(), config().planner_share_entries)
    return Scheduler(Planner.of(deployment(), patient=True), fan_out)


@cache
def _share_planner() -> SharePlanner:
    return SharePlanner(scheduler().planner, Shares(deployment().tables.due), _planning_queue())


def _planning_queue() -> PlanningQueue:
    return PlanningQueue(deployment().sqs, config().required("planning_queue_url"))


if aws.in_lambda():  # also in a planner
    aws.warm_up(scheduler, aws.sqs)
