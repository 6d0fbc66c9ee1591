"""The queues, the functions that read them, their dead letters, and executions without a record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from common.platform.dead_letters import audit_dead_letters
from common.platform.findings import DEPLOY, RESTORE, Finding, Repair, failed, ok, repairable, warning
from common.platform.run_again import MAX_RUN, RunAgain, by_job
from common.tenants.audit import Audit, AuditedCommit
from common.timing.instants import rfc3339
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import Feed
from minute8.cli.output import plural

# Due but not yet received: a full batch for each of a hundred executors, a second or two of work.
_BACKLOG: Final = 1_000
_MAX_REPAIRED_DEAD_LETTERS: Final = 1_000


def queue(deployment: Deployment, feed: Feed) -> Iterator[Finding]:
    """Whether a queue exists, fits its function, and has no backlog."""
    name, attributes = deployment.named(feed.queue), deployment.queue(feed.queue)
    if attributes is None:
        yield failed(f"there is no queue {name}", RESTORE)
        return
    function = deployment.function(feed.function)
    hidden_s = int(attributes["VisibilityTimeout"])
    if function and hidden_s < function["Timeout"]:
        yield failed(
            f"messages come back after {hidden_s} s while {feed.function} may still work on them,"
            f" for {function['Timeout']} s",
            DEPLOY,
        )
    dead = json.loads(attributes.get("RedrivePolicy", "{}")).get("deadLetterTargetArn")
    if dead != deployment.queue_arn(f"{feed.queue}-dead"):
        yield failed(f"{name} has the dead-letter queue {dead} instead of {name}-dead", RESTORE)
    waiting, delayed = (int(attributes[f"ApproximateNumberOfMessages{state}"]) for state in ("", "Delayed"))
    if waiting > _BACKLOG:
        yield warning(
            f"{waiting} messages are due and wait for {feed.function}",
            "more pollers, or a higher maximumConcurrency: docs/capacity.md",
        )
    yield ok(f"{waiting} due, {delayed} delayed, hidden for {hidden_s} s")


def dead_letters(deployment: Deployment, feed: Feed) -> Iterator[Finding]:
    """Messages that were given up, which a person must examine."""
    name, attributes = deployment.named(f"{feed.queue}-dead"), deployment.queue(f"{feed.queue}-dead")
    if attributes is None:
        yield failed(f"there is no queue {name}", RESTORE)
        return
    count = sum(int(attributes[f"ApproximateNumberOfMessages{state}"]) for state in ("", "NotVisible"))
    if count:
        repair = Repair(
            f"send what is readable in {name} again, and discard what no version of Minute8 has written",
            lambda: _sort_out(deployment, feed.queue),
            order=1,
            sends=True,
        )
        yield failed(
            f"{plural(count, 'message')} in {name}",
            f"the log of {deployment.named(feed.function)} says why; `minute8 doctor --fix` sends them again",
            repair,
        )
    yield ok("empty")


def _sort_out(deployment: Deployment, queue: str) -> str:
    """Send them again or discard them, and note it in the audit. Returns the counts as text."""
    done = deployment.dead_letters().redrive(queue, _MAX_REPAIRED_DEAD_LETTERS, discard_garbage=True)
    commit = AuditedCommit(Audit(deployment.tenants_table()), clock=deployment.clock)
    audit_dead_letters(commit, queue, done, deployment.clock.now())
    counts = {"moved": done.moved, "discarded": done.discarded, "left": done.remaining}
    text = ", ".join(f"{len(dead_letters)} {word}" for word, dead_letters in counts.items() if dead_letters)
    first = f"; the first that was discarded: {done.discarded[0].problem}" if done.discarded else ""
    return text + first + ("; there may be more: repeat it" if done.more else "")


def mapping(deployment: Deployment, feed: Feed) -> Iterator[Finding]:
    """The event source mapping: exactly one, enabled, with its batch size, and reports of failed messages."""
    mappings = deployment.mappings(feed)
    if len(mappings) != 1:
        remedy = "aws lambda delete-event-source-mapping --uuid … for those that the stack does not have"
        yield failed(
            f"{len(mappings) or 'no'} event source mappings lead from {feed.queue} to {feed.function}",
            remedy if mappings else RESTORE,
        )
        return
    (source_mapping,) = mappings
    update = deployment.client("lambda").update_event_source_mapping
    if source_mapping["FunctionArn"] != (called := deployment.called_arn(feed.function)):
        lead = (
            f"aws lambda update-event-source-mapping --uuid {source_mapping['UUID']} --function-name {called}"
        )
        yield repairable(
            f"it calls {source_mapping['FunctionArn']} instead of {called}",
            Repair(lead, lambda: update(UUID=source_mapping["UUID"], FunctionName=called)),
        )
    if source_mapping["State"] in ("Disabled", "Disabling"):
        enable = f"aws lambda update-event-source-mapping --enabled --uuid {source_mapping['UUID']}"
        yield failed(
            f"it is {source_mapping['State'].lower()}: nothing reads the queue {feed.queue}",
            enable,
            Repair(enable, lambda: update(UUID=source_mapping["UUID"], Enabled=True)),
        )
    elif source_mapping["State"] != "Enabled":
        yield warning(f"it is {source_mapping['State'].lower()}", "look again in a minute")
    if source_mapping["BatchSize"] != feed.batch_size:
        yield warning(
            f"it takes batches of {source_mapping['BatchSize']} instead of {feed.batch_size}", RESTORE
        )
    if (window_s := source_mapping.get("MaximumBatchingWindowInSeconds", 0)) and feed.queue == "executions":
        yield warning(f"it waits {window_s} s for a fuller batch: executions are late by that", RESTORE)
    if feed.reports_failures and "ReportBatchItemFailures" not in source_mapping.get(
        "FunctionResponseTypes", []
    ):
        report = "--function-response-types ReportBatchItemFailures"
        yield repairable(
            "one message's failure brings its whole batch back: no ReportBatchItemFailures",
            Repair(
                f"aws lambda update-event-source-mapping {report} --uuid {source_mapping['UUID']}",
                lambda: update(
                    UUID=source_mapping["UUID"], FunctionResponseTypes=["ReportBatchItemFailures"]
                ),
            ),
        )
    yield ok(f"enabled, batches of {source_mapping['BatchSize']}")


_MAX_UNRECORDED: Final = 1_000
_JOBS_SHOWN: Final = 5


def without_record(deployment: Deployment) -> Iterator[Finding]:
    """Planned executions that ticks looked for and that have no record now."""
    executions, more = deployment.unrecorded().page(limit=_MAX_UNRECORDED)
    if not executions:
        yield ok("every planned execution that ticks looked for has a record")
        return
    ids = [unrecorded.execution.execution_id for unrecorded in executions]
    first = min(executions, key=lambda unrecorded: unrecorded.execution.due_at).execution
    command = f"minute8 unrecorded run --all --yes --stage {deployment.stage}"
    jobs = sorted(by_job(executions), key=lambda of_job: -of_job.executions)
    counts = ", ".join(f"{job.tenant}/{job.job_id} {job.executions}" for job in jobs[:_JOBS_SHOWN])
    rest = f" and of {len(jobs) - _JOBS_SHOWN} more jobs" if len(jobs) > _JOBS_SHOWN else ""
    yield failed(
        f"{'over ' if more else ''}{len(executions)} executions that were due have no record,"
        f" the earliest of {rfc3339(first.due_at)}: {first.execution_id}",
        f"look at dead letters and queues first; `{command}` sends them again, without --yes it shows the plan: "
        f"{counts}{rest}. What is known to have had a record is only recorded anew",
        Repair(command, lambda: _run_again(deployment, ids), order=2, sends=True),
    )


def _run_again(deployment: Deployment, ids: list[str]) -> str:
    again = RunAgain(
        deployment.unrecorded(), deployment.executions(), deployment.tenants_table(), deployment.clock
    )
    plans = [again.run(ids[at : at + MAX_RUN], dry_run=False) for at in range(0, len(ids), MAX_RUN)]
    sent, known = (
        sum(len(of_plan) for of_plan in parts)
        for parts in zip(*((p.ids, p.known) for p in plans), strict=True)
    )
    # They have their records in seconds if the executor runs.
    for _ in range(10):
        if not deployment.unrecorded().page(limit=_MAX_UNRECORDED)[0]:
            break
        deployment.clock.sleep(1)
    return f"{sent} sent again" + (f", {known} recorded anew" if known else "")
