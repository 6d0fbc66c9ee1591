"""Each alarm rings for its fault, within its stated time, and goes OK again; a healthy stage rings nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.storage import keys
from common.timing.slots import places
from common.truth.truth import Truth
from scripts.cloudwatch.alarms import declared, waits_s
from scripts.embedded.cloudwatch import Emitted
from tests.alarms import template
from tests.alarms.stage import Watched
from tests.worlds import damage_entry, job, put_in_directory

# What every fault that delays executions long enough also rings: they say that tenants notice.
SYMPTOMS = {"burn-fast", "burn-slow", "lateness", "canary", *(declared().keys() - template.NOTIFYING)}
Break = Callable[[Watched], None]


def set_(**fields: object) -> Break:
    def change(stage: Watched) -> None:
        for name, value in fields.items():
            setattr(stage, name, value)

    return change


def emits(*samples: tuple[str, str, float, dict[str, str]]) -> Break:
    """AWS emits these each minute."""

    def each_minute(emitted: Emitted) -> None:
        for namespace, name, value, dimensions in samples:
            emitted.add(namespace, name, value, **dimensions)

    return set_(every_minute=each_minute)


def queue_has(name: str, age_s: float) -> Break:
    def each_minute(emitted: Emitted) -> None:
        now = emitted.now()
        emitted.queue(name, [{"visible_at": now - age_s, "sent_at": now - age_s}], now)

    return set_(every_minute=each_minute)


def requests(*answers: tuple[int, float]) -> Break:
    """Each minute the API answers these: a status, and after how many milliseconds."""

    def each_minute(emitted: Emitted) -> None:
        for status, latency_ms in answers:
            emitted.request(template.API_ID, status, latency_ms)

    return set_(every_minute=each_minute)


def nothing(_: Emitted) -> None:
    """AWS emits nothing else."""


def garbage(stage: Watched) -> None:
    put_in_directory(stage.world.table("due"), "lunar|full#0")


def run_what_has_no_record(stage: Watched) -> None:
    """`minute8 unrecorded run --all --yes`."""
    unrecorded = stage.world.unrecorded
    listed = [entry.execution for entry in unrecorded.all()]
    unrecorded.send(listed, stage.world.queue, stage.world.clock.now())


def miscount(stage: Watched) -> None:
    """A directory item counts nine jobs in a shard that has none."""
    due = stage.world.table("due")
    due.put({**keys.directory(NEVER_DUE, 0), "jobs": 9, "filed": " ".join(places(NEVER_DUE))})
    for place in places(NEVER_DUE):
        due.put({**keys.listing(place, NEVER_DUE, 0)})


def repair(stage: Watched) -> None:
    """`minute8 check --fix`."""
    truth = Truth(stage.world.tables, stage.world.queue, stage.world.clock)
    for _, contradictions in truth.all():
        for contradiction in contradictions:
            assert contradiction.repair
            contradiction.repair()


NEVER_DUE = "cron|UTC|0-9 0 29 2 *"
EXECUTOR = {"FunctionName": "minute8-prod-executor"}
WELL = set_(
    ticks=True,
    tick_ends_in_error=False,
    tick_takes_s=0.0,
    takes_messages=True,
    crashes=False,
    throttles=False,
    late_by_s=0.0,
    loses=lambda _: False,
    every_minute=nothing,
)
# Alarm -> the fault, and which other alarms it may ring.
FAULTS: dict[str, tuple[Break, set[str]]] = {
    "no-tick": (set_(ticks=False), {"planning-lag", *SYMPTOMS}),
    "tick-errors": (set_(tick_ends_in_error=True), {"planning-lag", *SYMPTOMS}),
    "tick-duration": (set_(tick_takes_s=241.0), set()),
    "planning-lag": (set_(tick_ends_in_error=True), {"tick-errors", *SYMPTOMS}),
    "executor-errors": (set_(crashes=True), {"overdue", "no-record", *SYMPTOMS}),
    "executor-throttles": (set_(throttles=True), {"overdue", "no-record", *SYMPTOMS}),
    "overdue": (set_(takes_messages=False), {"no-record", *SYMPTOMS}),
    "lateness": (set_(late_by_s=6.0), {*SYMPTOMS}),
    "no-record": (set_(loses=lambda _: True), {*SYMPTOMS}),
    "contradictions": (miscount, set()),
    "skips": (emits(("Minute8", "Runs.skipped", 60, {"service": "minute8", "stage": "prod"})), set()),
    "burn-fast": (set_(late_by_s=2.0), {*SYMPTOMS}),
    "burn-slow": (set_(late_by_s=2.0), {*SYMPTOMS}),
    "planning-dead-letters": (queue_has("minute8-prod-planning-dead", 5), set()),
    "outcomes-dead-letters": (queue_has("minute8-prod-outcomes-dead", 5), set()),
    "outcomes-lag": (queue_has("minute8-prod-outcomes", 301), set()),
    "notifier-errors": (emits(("AWS/Lambda", "Errors", 1, {"FunctionName": "minute8-prod-notifier"})), set()),
    "exporter-errors": (emits(("AWS/Lambda", "Errors", 3, {"FunctionName": "minute8-prod-exporter"})), set()),
    "api-errors": (requests(*[(200, 20.0)] * 15, (502, 20.0)), set()),
    "api-latency": (requests(*[(200, 20.0)] * 8, (200, 3_001.0), (200, 3_001.0)), set()),
    "table-throttles": (
        set_(every_minute=lambda emitted: emitted.throttled("minute8-prod-runs", True)),
        set(),
    ),
    "concurrency": (emits(("AWS/Lambda", "ConcurrentExecutions", 801, {})), set()),
    "recursion": (emits(("AWS/Lambda", "RecursiveInvocationsDropped", 1, EXECUTOR)), set()),
    "canary": (set_(takes_messages=False), {"overdue", "no-record", *SYMPTOMS}),
}


def test_a_healthy_stage_rings_nothing_from_its_first_minute_on(stage: Watched) -> None:
    fresh = Watched(stage.world)
    for _ in range(60):
        fresh.run(1)
        assert fresh.ringing == set()
    # Silence counts only from when it is known that the stage is there.
    assert set(fresh.states.values()) == {"OK"}


def test_a_day_with_failing_targets_pauses_and_overlaps_rings_nothing(stage: Watched) -> None:
    """They are the tenants' own."""
    from common.runs.outcome import Outcome

    stage.world.registry.put("bob", "fails", job(every="1m"))
    stage.world.registry.put("bob", "pauses", job(every="1m"))
    answer = stage.world.target.answer

    def fails(event: object) -> Outcome:
        outcome = answer(event)  # type: ignore[arg-type]
        is_failing_job = event["minute8"]["job_id"] == "fails"  # type: ignore[index]
        return Outcome(ok=False, error_type="ValueError", error="no") if is_failing_job else outcome

    stage.world.target.answer = fails
    stage.run(30)
    stage.world.store.pause("bob", "pauses", "not now")
    stage.run(60)
    assert stage.ringing == set()


@pytest.mark.parametrize("alarm", FAULTS)
def test_an_alarm_rings_in_its_time_and_for_its_fault_and_goes_ok_again(stage: Watched, alarm: str) -> None:
    breaks, also_ringing = FAULTS[alarm]
    # The tick of minute 8 is where most faults begin to show.
    stage.run((8 - int(stage.world.clock.now() // 60)) % 10)
    breaks(stage)
    shows_after = {"no-record": 10, "burn-slow": 60, "planning-lag": 10}.get(alarm, 1)
    waits = waits_s(alarm, declared()) // 60
    assert stage.minutes_until(alarm, "ALARM", waits + shows_after + 10)
    assert stage.ringing <= {alarm, *also_ringing}
    WELL(stage)
    if alarm == "no-record":  # ticks find the last ones up to half an hour later
        stage.run(35)
        run_what_has_no_record(stage)
    if alarm == "contradictions":
        repair(stage)
    assert stage.minutes_until(alarm, "OK", 400)


def test_dead_letters_ring_after_the_last_delivery(stage: Watched) -> None:
    stage.dead.append({"visible_at": 0.0, "sent_at": 0.0})
    assert stage.minutes_until("dead-letters", "ALARM", 2) == 1
    assert stage.ringing == {"dead-letters"}
    stage.dead.clear()
    assert stage.minutes_until("dead-letters", "OK", 3)


def test_only_the_quarantine_alarm_rings_for_an_unplannable_group(stage: Watched) -> None:
    garbage(stage)
    assert stage.minutes_until("quarantine", "ALARM", 40)
    assert stage.ringing == {"quarantine"}


def test_a_job_that_cannot_be_planned_rings_although_it_is_due_once(stage: Watched) -> None:
    stage.world.registry.put("alice", "once", job(cron="45 3 21 11 *"))
    damage_entry(stage.world, "alice", "once")
    assert stage.minutes_until("quarantine", "ALARM", 20)
    assert stage.ringing == {"quarantine"}
    assert stage.minutes_until("quarantine", "OK", 30)
    # The entry also differs from its job: four ticks walk through the tables of a small stage.
    stage.minutes_until("contradictions", "ALARM", 40)
    assert stage.ringing == {"contradictions"}


def test_a_single_late_run_in_a_quiet_hour_rings_nothing(stage: Watched) -> None:
    stage.world.store.delete("alice", "often")
    stage.run(60)
    stage.late_by_s = 2.0
    stage.run(1)
    WELL(stage)
    for _ in range(60):
        assert not {"burn-fast", "burn-slow"} & stage.ringing
        stage.run(1)


def test_every_alarm_has_a_fault() -> None:
    assert {*FAULTS, "dead-letters", "quarantine"} == set(template.NOTIFYING)
