"""Random worlds in which jobs, runs, messages and settings are damaged: found, repaired, and each fire time recorded.

The targets fail at random, so there are retries to lose. After each tick somebody follows the pages of the alarms.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.jobs.job import ACTIVE
from common.runs.outcome import Outcome
from common.runs.states import ENDED
from common.storage import keys
from common.storage.keys import key_of
from common.storage.wire import Item
from common.timing.windows import WINDOW_S, window_start
from common.truth.contradiction import JOB_CORRUPT, JOB_LOST, JOB_ROLLED_BACK, TEXT_MISSING
from tests.faults.truth import everything_explained, index_is_right
from tests.truth.damage import TENANTS, found_names, truth_of
from tests.truth.test_random_damage import FROM, LAST_TICK, UNTIL, due_times, items, text
from tests.worlds import World

SEEDS = 20


@dataclass
class Scene:
    """A world, what its damages allow, and how a person takes each back."""

    world: World
    rng: random.Random
    # So many attempts may be called twice: their records are lost.
    twice: int = 0
    heals: list[Callable[[], object]] = field(default_factory=list)

    def job(self) -> Item:
        """An active job's item."""
        jobs = [item for item in items(self.world, "jobs") if item.get("state") == ACTIVE]
        return self.rng.choice(jobs)

    def change_job(self, item: Item, contradiction: str, /, **attributes: Any) -> None:
        """Write a job's attributes by hand; without any delete it. It has to be found at once."""
        jobs = self.world.table("jobs")
        before = jobs.get(key_of(item))
        jobs.put({**item, **attributes}) if attributes else jobs.delete(key_of(item))
        self.heals.append(lambda: jobs.put(before or item))
        assert contradiction in {name for name, _ in found_names(self.world)}, contradiction


def delete_job(scene: Scene) -> None:
    scene.change_job(scene.job(), JOB_LOST)


def corrupt_job(scene: Scene) -> None:
    broken = {"schedule": "?", "revision": "new", "spec": "{}", "state": "on"}
    name = scene.rng.choice(sorted(broken))
    scene.change_job(scene.job(), JOB_CORRUPT, **{name: broken[name]})


def roll_job_back(scene: Scene) -> None:
    """A change that moves no fire time, then the item as it was before."""
    item = scene.job()
    stored = scene.world.store.get(item["tenant"], item["job_id"])
    scene.world.clock.sleep(1)  # the audit sorts by milliseconds
    definition = {
        "schedule": dict(stored.spec.schedule),
        "target": dict(stored.spec.target),
        "name": "changed",
    }
    definition |= {"catch_up": stored.spec.catch_up}
    if stored.payload.reference:
        definition["payload"] = "x" * 3_000
    scene.world.registry.put(stored.tenant, stored.job_id, definition)
    scene.change_job(item, JOB_ROLLED_BACK, name="before")


def delete_text(scene: Scene) -> None:
    tenant = scene.rng.choice(TENANTS)
    payload = scene.world.store.get(tenant, "hourly").payload
    scene.change_job({**keys.job_text(tenant, "hourly", payload.sha256)}, TEXT_MISSING)


def delete_run(scene: Scene) -> None:
    if run := _new_run(scene):
        scene.world.table("runs").delete(key_of(run))
        scene.twice += int(run.get("attempt", 1))


def age_run(scene: Scene) -> None:
    """As if its executor had died long ago, or its next attempt's message were lost."""
    if (run := _new_run(scene)) and run["status"] == "succeeded":
        ended = ("finished_at", "expires_at")
        before = {name: value for name, value in run.items() if name not in ended}
        past = scene.world.clock.now() - 300
        scene.world.table("runs").put({**before, "status": "running", "lease_until": int(past)})
        scene.twice += 1


def corrupt_run(scene: Scene) -> None:
    """Its follower and its checker cannot read it, until it is restored."""
    if (run := _new_run(scene)) and run["status"] in ENDED:
        broken = {"status": 7, "lateness_s": "?", "attempt": [], "job_id": 0}
        name = scene.rng.choice(sorted(broken))
        runs = scene.world.table("runs")
        runs.put({**run, name: broken[name]})
        scene.heals.append(lambda: runs.put(run))


def _new_run(scene: Scene) -> Item | None:
    """A run whose window ticks have not compared yet."""
    since = window_start(int(scene.world.clock.now()) - WINDOW_S) + WINDOW_S
    runs = [run for run in items(scene.world, "runs") if run.get("fire_at", 0) >= since and "due_at" in run]
    return scene.rng.choice(runs) if runs else None


def lose_messages(scene: Scene) -> None:
    waiting = scene.world.sqs._waiting
    kept = scene.rng.sample(waiting, len(waiting) // scene.rng.choice((1, 2, 10)))
    heapq.heapify(kept)
    scene.world.sqs._waiting = kept


def duplicate_messages(scene: Scene) -> None:
    for _, _, _, body in list(scene.world.sqs._waiting):
        scene.world.sqs._put(scene.world.clock.now() + scene.rng.randrange(900), body)


def age_messages(scene: Scene) -> None:
    """Somebody has received them, and hides them for two hours."""
    waiting = scene.world.sqs._waiting
    hidden = {message[2] for message in scene.rng.sample(waiting, len(waiting) // 2)}
    aged = [(at + 7_200 * (name in hidden), number, name, body) for at, number, name, body in waiting]
    heapq.heapify(aged)
    scene.world.sqs._waiting = aged


def short_retention(scene: Scene) -> None:
    """For a while the queue keeps nothing for longer than a minute."""
    send = scene.world.sqs.send_message_batch

    def forgetting(QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        kept = [entry for entry in Entries if entry["DelaySeconds"] <= 60]
        send(QueueUrl, kept)
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    scene.world.sqs.send_message_batch = forgetting  # type: ignore[method-assign, assignment]
    scene.heals.append(lambda: setattr(scene.world.sqs, "send_message_batch", send))


def filtered(scene: Scene) -> None:
    """For a while somebody else takes each second message."""
    receive, numbers = scene.world.sqs.receive, iter(range(10**6))

    def half() -> Any:
        message = receive()
        return half() if message and next(numbers) % 2 else message

    scene.world.sqs.receive = half  # type: ignore[method-assign]
    scene.heals.append(lambda: setattr(scene.world.sqs, "receive", receive))


DAMAGES = (
    *(delete_job, corrupt_job, roll_job_back, delete_text, delete_run, age_run, corrupt_run),
    *(lose_messages, duplicate_messages, age_messages, short_retention, filtered),
)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_damage_is_found_and_repaired_and_each_fire_time_has_its_record(served: World, seed: int) -> None:
    play(served, seed)


def play(world: World, seed: int) -> None:
    """One world: up to two damages, taken back after a while, and somebody who follows the pages after each tick."""
    scene = Scene(world, random.Random(seed))
    expected = due_times(world)
    world.target.answer = lambda event: Outcome(
        ok=_is_good(seed, event["minute8"]), error_type="No", error="no"
    )
    damage_at = FROM + scene.rng.randrange(900, 5_400)
    world.run_until(text(damage_at), ticks=True)
    for damage in scene.rng.sample(DAMAGES, scene.rng.choice((1, 1, 2))):
        damage(scene)
    world.run_until(text(damage_at + scene.rng.choice((30, 400, 1_300, 3_000))), ticks=True)
    for heal in scene.heals:
        heal()
    while world.clock.now() < LAST_TICK:
        world.run_until(text(window_start(int(world.clock.now()) + 120) + 490), ticks=True)
        follow_the_pages(world)
    world.run_until(text(UNTIL + 120))
    world.run_until(text(UNTIL + 7_200)) if len(world.sqs) else None
    assert found_names(world) == set()
    assert not list(world.unrecorded.all())
    index_is_right(world)
    everything_explained(world, expected, twice=scene.twice)


def _is_good(seed: int, call: Mapping[str, Any]) -> bool:
    return random.Random(f"{seed} {call['execution_id']} {call['attempt']}").random() > 0.2


def follow_the_pages(world: World) -> None:
    """`minute8 check --fix` and `minute8 unrecorded run --all`."""
    for _, contradictions in truth_of(world).all():
        for contradiction in contradictions:
            assert contradiction.repair, contradiction
            contradiction.repair()
    unrecorded = world.unrecorded
    listed = [listed.execution for listed in unrecorded.all()]
    unrecorded.send(listed, world.queue, world.clock.now())
    world.deliver()
