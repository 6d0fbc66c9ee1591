"""Breakages of a stage by name: what is done, which alarm rings and how soon, and how it is repaired.

`test_breakages.py` plays those that have a break here; for the others it names the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from common.planning.execution import Execution, UnreadableMessage, parse_execution_id
from common.planning.packs import lines
from common.projection.state import PROJECTION
from common.storage import keys
from common.storage.table import Query
from common.storage.wire import Expression
from common.truth.truth import Truth
from executor.pipeline import Message
from scripts.embedded.cloudwatch import Emitted
from tests.alarms.stage import MAX_RECEIVES, Watched
from tests.planning.test_shares import Fleet
from tests.worlds import job

DAY_S: Final = 86_400
UNRECORDED: Final = "minute8 unrecorded run --all --yes"
CHECK: Final = "minute8 check --fix"
DOCTOR: Final = "minute8 doctor --fix"


@dataclass(frozen=True, slots=True)
class Breakage:
    """One breakage. `alarm`: empty if the next tick repairs it; `minutes`: at most so many until a
    tick or AWS emits what rings it, a minute before it rings.

    `doctor`: words that the doctor says of it. `proof`: the test, as file::name, if `breaks` is None.
    """

    name: str
    alarm: str
    minutes: int
    doctor: str
    repair: str
    breaks: Callable[[Watched], object] | None = None
    proof: str = ""
    losses: str = "0"


def lose_all(stage: Watched) -> None:
    stage.loses = lambda _: True


def lose_each_second(stage: Watched) -> None:
    stage.loses = lambda message: int(message.message_id.rpartition("-")[2]) % 2 == 0


def retain_a_minute(stage: Watched) -> None:
    sqs, soon = stage.world.sqs, stage.world.clock.now() + 60
    sqs._waiting = [message for message in sqs._waiting if message[0] <= soon]
    refuse(stage, lambda entry: entry["DelaySeconds"] > 60)


def lose_retries(stage: Watched) -> None:
    """The executor's address of the queue is another queue's."""
    refuse(stage, lambda entry: any(attempt > 1 for attempt in attempts_of(entry["MessageBody"])))


def refuse(stage: Watched, loses: Callable[[Mapping[str, Any]], bool]) -> None:
    """The queue takes these messages and forgets them, until `close_the_hole`."""
    send = stage.world.sqs.send_message_batch

    def forgetting(QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        send(QueueUrl, [entry for entry in Entries if not loses(entry)])
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    stage.world.sqs.send_message_batch = forgetting  # type: ignore[method-assign, assignment]


def attempts_of(body: str) -> list[int]:
    try:
        return [Execution.decode(line).attempt for line in lines(body)]
    except UnreadableMessage:  # a wake
        return []


def receive_once(stage: Watched) -> None:
    """A message is given up after one delivery, and an executor dies with one."""
    stage.max_receives, died = 1, list[Message]()

    def dies(message: Message) -> bool:
        if not died:
            died.append(message)
            stage.world.sqs.give_back(message)
        return message in died

    stage.loses = dies


def take_two_a_minute(stage: Watched) -> None:
    """Two executors, whose calls take a minute."""
    stage.takes_a_minute = 2


def crash(stage: Watched) -> None:
    """Lambda ends the function."""
    stage.crashes = True


def delay_shares(stage: Watched) -> None:
    """Planners plan every window, five minutes after its tick."""
    world = stage.world
    fleet, seen_at = Fleet(world, share_entries=1), dict[str, float]()
    stage.kept_scheduler, world.scheduler = world.scheduler, fleet.scheduler()

    def plan(emitted: Emitted) -> None:
        for body in list(fleet.queue.bodies):
            if emitted.now() - seen_at.setdefault(body, emitted.now()) >= 300:
                fleet.queue.bodies.remove(body)
                fleet.plan(body)

    stage.every_minute = plan


def close_the_hole(stage: Watched) -> None:
    """What `minute8 doctor --fix` or `make deploy` does about settings; the doctor also sends dead letters again."""
    stage.loses, stage.crashes = lambda _: False, False
    stage.max_receives, stage.takes_a_minute = MAX_RECEIVES, inf
    stage.world.sqs.__dict__.pop("send_message_batch", None)
    for dead_letter in stage.dead:
        stage.world.sqs._put(stage.world.clock.now(), dead_letter["body"])
    stage.dead.clear()
    if stage.kept_scheduler:
        stage.run(10)  # what was delayed comes
        stage.world.scheduler, stage.kept_scheduler = stage.kept_scheduler, None
        stage.every_minute = lambda _: None


def purge(stage: Watched) -> None:
    stage.world.sqs._waiting.clear()


def die_for_good(stage: Watched) -> None:
    """An executor has died during a call, and its message is lost."""
    world = stage.world
    run = world.run_items("alice", "often")[-1]
    kept = {name: run[name] for name in run if name not in ("finished_at", "outcome", "result")}
    world.table("runs").put({**kept, "status": "running", "lease_until": int(world.clock.now()) + 30})


def die_and_stay_hidden(stage: Watched) -> None:
    """An executor has died during a call, and its message stays hidden for twelve hours."""
    world = stage.world
    run = world.run_items("alice", "often")[-1]
    die_for_good(stage)
    body = parse_execution_id("alice", f"alice:often:{run['sk']}").encode()
    world.sqs._put(world.clock.now() + 43_200, body)


def delete_directory_item(stage: Watched) -> None:
    job = stage.world.store.get("alice", "often")
    stage.world.table("due").delete(keys.directory(job.group, job.shard))


def delete_entry(stage: Watched) -> None:
    job = stage.world.store.get("alice", "often")
    stage.world.table("due").delete(keys.due_entry(job.group, job.shard, "alice", "often"))


def put_mark_ahead(stage: Watched) -> None:
    ahead = int(stage.world.clock.now()) + 30 * DAY_S
    change = Expression("SET #planned_until = :at, #planning_until = :at", {":at": ahead})
    stage.world.table("due").update(keys.PROGRESS, change)


def corrupt_job(stage: Watched) -> None:
    jobs = stage.world.table("jobs")
    item = jobs.get(keys.job("alice", "often"))
    assert item
    stage.kept = item
    jobs.put({**item, "schedule": "?"})


def put_job_back(stage: Watched) -> None:
    """What the tenant does."""
    stage.world.table("jobs").put(stage.kept)


def repair_contradictions(stage: Watched) -> None:
    """`minute8 check --fix`."""
    truth = Truth(stage.world.tables, stage.world.queue, stage.world.clock)
    for _, contradictions in truth.all():
        for contradiction in contradictions:
            if contradiction.repair:
                contradiction.repair()


def run_unrecorded(stage: Watched) -> None:
    """`minute8 unrecorded run --all --yes`."""
    unrecorded = stage.world.unrecorded
    listed = [entry.execution for entry in unrecorded.all()]
    unrecorded.send(listed, stage.world.queue, stage.world.clock.now())


SETTINGS: Final = "doctor/test_settings.py"
DIFFERENCE: Final = f"{SETTINGS}::test_a_difference_is_found_and_repaired"
BROKEN: Final = "doctor/broken.py::BROKEN"

TWENTY: Final = (
    Breakage(
        "the queue is purged, retries with it",
        *("no-record", 10, "executions that were due have no record", f"`{UNRECORDED}`, `{CHECK}`"),
        breaks=purge,
    ),
    Breakage(
        "the executor sends retries to a wrong address",
        *("contradictions", 20, "run-stuck", f"`make deploy`, `{CHECK}`"),
        breaks=lose_retries,
    ),
    Breakage(
        "an executor dies, and its message is lost",
        *("contradictions", 20, "run-stuck", f"`{CHECK}`"),
        breaks=die_for_good,
    ),
    Breakage(
        "a directory item is deleted",
        *("contradictions", 10, "shard-missing", f"`{CHECK}`"),
        breaks=delete_directory_item,
    ),
    Breakage(
        "a due entry is deleted",
        *("contradictions", 10, "entry-missing", f"`{CHECK}`"),
        breaks=delete_entry,
    ),
    Breakage(
        "planned_until is 30 days ahead",
        *("", 10, "further ahead than a tick can plan", "the next tick"),
        breaks=put_mark_ahead,
    ),
    Breakage(
        "back to another version, and forward again",
        *("", 0, "nothing", "none"),
        proof="upgrade/stacks.py::Story",
    ),
    Breakage(
        "a filter on the mapping",
        *("no-record", 10, "FilterCriteria", f"`{DOCTOR}`, `{UNRECORDED}`"),
        breaks=lose_all,
        proof=f"{SETTINGS}::test_a_filter_is_found_and_taken_off",
    ),
    Breakage(
        "a second consumer of the queue",
        *("no-record", 10, "reads", f"`{DOCTOR}`, `{UNRECORDED}`"),
        breaks=lose_each_second,
        proof=f"{SETTINGS}::test_a_second_consumer_and_another_rule_are_named",
    ),
    Breakage(
        "the queue keeps messages for 60 s",
        *("no-record", 10, "MessageRetentionPeriod", f"`{DOCTOR}`, `{UNRECORDED}`"),
        breaks=retain_a_minute,
        proof=DIFFERENCE,
    ),
    Breakage(
        "messages stay hidden for 12 h, and an executor dies",
        *("contradictions", 20, "VisibilityTimeout", f"`{DOCTOR}`, `{CHECK}`"),
        breaks=die_and_stay_hidden,
        proof=DIFFERENCE,
    ),
    Breakage(
        "`maxReceiveCount` is 1, and an executor dies",
        *("dead-letters", 6, "maxReceiveCount", f"`{DOCTOR}`"),
        breaks=receive_once,
        proof=DIFFERENCE,
    ),
    Breakage(
        "the executor's concurrency is 2, and its calls take a minute",
        *("lateness", 7, "MaximumConcurrency", f"`{DOCTOR}`"),
        breaks=take_two_a_minute,
        proof=DIFFERENCE,
    ),
    Breakage(
        "the planning queue delays each message, by five minutes",
        *("burn-fast", 7, "DelaySeconds", f"`{DOCTOR}`"),
        breaks=delay_shares,
        proof=DIFFERENCE,
    ),
    Breakage(
        "the executor has too little memory",
        *("executor-errors", 10, "MemorySize", "`make deploy`"),
        breaks=crash,
        proof=DIFFERENCE,
    ),
    Breakage(
        "a wrong environment variable stops the executor",
        *("executor-errors", 10, "Variables.STAGE", "`make deploy`"),
        breaks=crash,
        proof=DIFFERENCE,
    ),
    Breakage(
        "another rule starts the executor",
        *("", 0, "the rule mine starts", "delete it"),
        proof=f"{SETTINGS}::test_a_second_consumer_and_another_rule_are_named",
    ),
    Breakage(
        "a job's item is garbage",
        *("contradictions", 10, "job-corrupt", "its tenant puts or deletes it"),
        breaks=corrupt_job,
        losses="skipped, recorded",
    ),
    Breakage(
        "a tenant's item is deleted",
        *("contradictions", 10, "tenant-missing", f"`{CHECK}`"),
        proof="cli/test_runbook.py::test_a_tenant_without_its_item",
        losses="skipped, recorded",
    ),
    Breakage(
        "`make up` after `make down`",
        *("", 0, "", "none"),
        proof="deploy/test_embedded_aws.py::test_a_stopped_instance_comes_back_with_its_last_write",
    ),
    Breakage(
        "all executors die in a burst",
        *("executor-errors", 10, "", "the queue delivers again"),
        proof="faults/test_handed_over.py::test_of_a_dead_executors_events_few_are_called_twice_and_each_once",
    ),
    Breakage(
        "a message of an event comes twice",
        *("", 0, "", "none"),
        proof="faults/test_handed_over.py::test_a_copy_of_a_pack_calls_again_only_what_no_later_claim_notes",
    ),
)


def and_then(*steps: Callable[[Watched], object]) -> Callable[[Watched], object]:
    return lambda stage: [step(stage) for step in steps]


def writes(table: str, key: keys.Key, **attributes: object) -> Callable[[Watched], object]:
    """Somebody writes these attributes of an item by hand."""

    def write(stage: Watched) -> None:
        stored = stage.world.table(table)
        stored.put({**(stored.get(key) or key), **attributes})

    return write


def damage_log(stage: Watched) -> None:
    """Each chunk of the log of planned executions is garbage."""
    due = stage.world.table("due")
    for bucket in range(keys.LOG_BUCKETS):
        for item in list(due.query(Query(keys.log_partition(bucket)))):
            due.put({**item, "data": "garbage"})


def delete_log(stage: Watched) -> None:
    due = stage.world.table("due")
    for bucket in range(keys.LOG_BUCKETS):
        due.delete_many([keys.key_of(item) for item in due.query(Query(keys.log_partition(bucket)))])


def hold_lock(stage: Watched) -> None:
    """A run that never was has the job's lock for a month."""
    stage.world.registry.put("alice", "often", {**OFTEN, "overlap": "skip"})
    lease_until = int(stage.world.clock.now()) + 30 * DAY_S
    key = keys.overlap_permit("alice", "often")
    stage.world.table("runs").put({**key, "holder": "20261121T000000Z", "lease_until": lease_until})


def damage_slots(stage: Watched) -> None:
    stage.world.registry.put("alice", "often", {**OFTEN, "concurrency": {"key": "db", "limit": 1}})
    key = keys.key_permits("alice", "db")
    stage.world.table("runs").put({**key, "holders": "nobody", "waiting": [], "version": "x"})


OFTEN: Final = job(every="20s")
FAR_AT: Final = 1_800_000_000
TEN: Final = (
    Breakage(
        "where the walk goes on is nonsense, and a due entry is deleted",
        *("contradictions", 10, "entry-missing", f"`{CHECK}`"),
        breaks=and_then(writes("due", keys.chore("truth"), at={"of": 7, "after": []}), delete_entry),
    ),
    Breakage(
        "the list of contradictions has garbage, and a due entry is deleted",
        *("contradictions", 10, "entry-missing", f"`{CHECK}`"),
        breaks=and_then(writes("due", {"pk": keys.CONTRADICTIONS, "sk": "a"}, about="?"), delete_entry),
    ),
    Breakage(
        "the list of executions without a record has garbage, and messages are lost",
        *("no-record", 10, "executions that were due have no record", f"`{UNRECORDED}`"),
        breaks=and_then(writes("due", keys.unrecorded("a:b:c"), body=7), purge),
    ),
    Breakage(
        "runs are followed up to next year, and retries are lost",
        *("contradictions", 20, "run-stuck", f"`{CHECK}`"),
        breaks=and_then(
            writes("due", keys.chore(PROJECTION), at={"since": 0, "until": [FAR_AT] * keys.LOG_BUCKETS}),
            lose_retries,
        ),
    ),
    Breakage(
        "the log of planning is garbage",
        *("", 10, "was moved back", "the next tick"),
        breaks=damage_log,
    ),
    Breakage(
        "the queue is purged, and the log of planning deleted",
        *("", 10, "was moved back", f"the next tick; retries: `{CHECK}`"),
        breaks=and_then(purge, delete_log),
    ),
    Breakage(
        "planned_until is no instant",
        *("", 10, "planned_until cannot be read", "the next tick"),
        breaks=writes("due", keys.PROGRESS, planned_until="soon"),
    ),
    Breakage(
        "a run that never was has a job's lock for a month",
        *("", 10, "", "the next run"),
        breaks=hold_lock,
    ),
    Breakage(
        "a concurrency key's item is garbage",
        *("", 10, "", "the next run"),
        breaks=damage_slots,
    ),
    Breakage(
        "a tenant's item is garbage",
        *("contradictions", 10, "tenant-corrupt", f"`{CHECK}`"),
        proof="truth/test_names.py::test_a_damage_is_found_and_repaired",
        losses="skipped, recorded",
    ),
)
