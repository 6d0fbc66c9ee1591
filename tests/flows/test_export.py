"""The export of runs: what is in the bucket is what the days had, whatever happens to its rounds."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

from common.planning.chores import Done
from common.platform.deletion import Deletions
from common.platform.tenants import Tenants
from common.projection import windows
from common.projection.rebuild import Rebuild
from common.runs.outcome import Outcome
from common.runs.states import FAILED
from common.storage import keys
from common.storage.table import Query
from common.storage.wire import Item
from common.timing.instants import DAY_S
from scheduler import export_handler
from scheduler.export_handler import Exporter, S3Bucket
from tests.scheduler_handler import go_on
from tests.worlds import Killed, World, at, job

DAY = "2026-11-22"


@dataclass
class MemoryBucket:
    """A bucket, and the names that were written. `before` is called before each request."""

    objects: dict[str, bytes] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def put(self, name: str, data: bytes) -> None:
        self.before()
        self.objects[name] = data
        self.written.append(name)

    def delete(self, names: Iterable[str]) -> None:
        self.before()
        for name in names:
            del self.objects[name]

    def names(self, prefix: str) -> Iterator[str]:
        self.before()
        return iter(sorted(name for name in self.objects if name.startswith(prefix)))

    def folders(self, prefix: str) -> Iterator[str]:
        self.before()
        names = [name for name in self.objects if name.startswith(prefix)]
        return iter(sorted({name[: name.index("/", len(prefix)) + 1] for name in names}))


@dataclass
class Platform:
    """A world with tenants and an exporter."""

    world: World
    bucket: MemoryBucket

    def exporter(self) -> Exporter:
        return Exporter(self.world.tables, self.bucket, "minute8-test/runs", self.world.clock)

    def round(self, seconds: float = 200) -> Done:
        done = self.go(seconds)
        assert done.problems + done.errors == []
        return done

    def go(self, seconds: float = 200) -> Done:
        return go_on(self.world, self.exporter().steps, "export", seconds)

    def pass_time(self, until: str) -> None:
        """Ticks and their projection, every ten minutes, or for days without work every six hours."""
        while self.world.clock.now() < at(until):
            now = int(self.world.clock.now())
            self.world.clock.sleep((480 - now) % 600 or 600)
            self.world.tick()
            self.world.deliver()
            self.world.project()

    def lines(self, tenant: str = "alice", day: str = DAY) -> list[dict[str, Any]]:
        names = self.bucket.names(f"minute8-test/runs/tenant={tenant}/day={day}/")
        texts = (gzip.decompress(self.bucket.objects[name]).decode() for name in names)
        return [json.loads(line) for text in texts for line in text.splitlines()]

    def over(self, day: str = DAY) -> set[str]:
        """The runs of alice's jobs that are over, as their records have them."""
        start = at(f"{day}T00:00:00Z")
        return {
            json.dumps([item["job_id"], item["fire_at"], item["status"], item.get("attempt")])
            for job_id in ("hourly", "fails", "later")
            for item in self.world.run_items("alice", job_id)
            if start <= item["fire_at"] < start + DAY_S and item["status"] not in ("retrying", "running")
        }

    def exported(self, day: str = DAY) -> set[str]:
        lines = [
            json.dumps([line["job_id"], at(line["fire_at"]), line["status"], line.get("attempt")])
            for line in self.lines(day=day)
        ]
        assert len(set(lines)) == len(lines)
        return set(lines)


@pytest.fixture
def platform(world: World) -> Platform:
    return of_world(world)


def of_world(world: World) -> Platform:
    tenants = Tenants(world.table("tenants"))
    for tenant in ("alice", "bob"):
        tenants.create(tenant, "", world.clock.now(), {"allowed_targets": ["*"]})
    world.project()
    world.registry.create("alice", "hourly", job(cron="0 */2 * * *"))
    slow = {"max_attempts": 2, "base_s": DAY_S, "cap_s": DAY_S, "max_age_s": 7 * DAY_S}
    world.registry.create("alice", "fails", job(cron="30 7 * * *", retry={"max_attempts": 1}))
    world.registry.create("alice", "later", job(at="2026-11-22T12:00:00Z", retry=slow))
    world.registry.create("bob", "hourly", job(cron="0 */8 * * *"))

    def answer(event: dict[str, Any]) -> Outcome:
        execution = event["minute8"]
        ok = execution["job_id"] == "hourly" or execution["attempt"] > 1
        return Outcome(ok=ok, error_type="Boom", error="it went wrong")

    world.target.answer = answer
    return Platform(world, MemoryBucket())


def test_a_day_is_exported_two_hours_after_its_end_and_again_when_it_has_changed(platform: Platform) -> None:
    platform.pass_time("2026-11-23T01:50:00Z")
    assert platform.round().counts["days"] == 0
    platform.pass_time("2026-11-23T02:10:00Z")
    done = platform.round()
    assert (done.counts, done.is_cut) == ({"days": 2, "runs": 16, "objects": 2}, False)
    assert len(platform.lines()) == 13 and platform.exported() == platform.over()
    failed = next(line for line in platform.lines() if line["job_id"] == "fails")
    assert failed["execution_id"] == "alice:fails:20261122T073000Z"
    assert (failed["status"], failed["error_type"], failed["fire_at"]) == (
        FAILED,
        "Boom",
        "2026-11-22T07:30:00Z",
    )
    assert len(platform.lines("bob")) == 3
    assert platform.round().counts["days"] == 0 and len(platform.bucket.written) == 2
    platform.pass_time("2026-11-26T00:30:00Z")
    platform.round()
    assert platform.exported() == platform.over()
    assert [line["attempt"] for line in platform.lines() if line["job_id"] == "later"] == [2]


def test_a_day_without_changes_is_not_written_again(platform: Platform) -> None:
    platform.pass_time("2026-11-23T02:10:00Z")
    platform.round()
    before = platform.bucket.objects["minute8-test/runs/tenant=bob/day=2026-11-22/part-0000.json.gz"]
    platform.world.clock.move_to(at("2026-11-26T00:30:00Z"))
    platform.round()
    assert len([name for name in platform.bucket.written if DAY in name]) == 2
    platform.world.table("jobs").delete(keys.exported_day("bob", DAY))
    platform.world.table("due").delete(keys.chore("export"))
    platform.round()
    assert platform.bucket.objects["minute8-test/runs/tenant=bob/day=2026-11-22/part-0000.json.gz"] == before


def test_a_round_that_dies_anywhere_is_made_up_for(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_handler, "PART_BYTES", 700)
    platform.pass_time("2026-11-23T02:10:00Z")
    deaths = 0
    for after in range(60):
        requests = iter(range(after))

        def before(requests: Iterator[int] = requests) -> None:
            if next(requests, None) is None:
                raise Killed

        platform.bucket.before = before
        try:
            platform.go()
        except Killed:
            deaths += 1
        platform.bucket.before = lambda: None
        platform.round()
        assert platform.exported() == platform.over()
        assert len(list(platform.bucket.names("minute8-test/runs/tenant=alice/"))) > 3
        for tenant in ("alice", "bob"):
            platform.world.table("jobs").delete(keys.exported_day(tenant, DAY))
        platform.world.table("due").delete(keys.chore("export"))
    assert deaths > 5


def test_what_there_is_no_time_for_goes_on_in_the_next_round(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_handler, "PART_BYTES", 700)
    platform.pass_time("2026-11-23T02:10:00Z")
    rounds, records = 0, Exporter._records

    def slowly(*args: Any) -> Iterator[Item]:
        platform.world.clock.sleep(2)
        return records(*args)

    monkeypatch.setattr(Exporter, "_records", slowly)
    while platform.round(seconds=1).is_cut:
        rounds += 1
        assert rounds < 50
    assert rounds > 10
    assert platform.exported() == platform.over() and len(platform.lines("bob")) == 3


def test_an_error_with_one_tenant_holds_no_other_one_back(platform: Platform) -> None:
    platform.pass_time("2026-11-23T02:10:00Z")
    start = at(f"{DAY}T08:00:00Z")
    platform.world.table("runs").put(
        {**keys.projected_window("alice", start), "runs": "broken", "version": 9}
    )
    done = platform.go()
    assert [problem.split()[:2] for problem in done.problems] == [["alice", f"{DAY}:"]]
    assert len(platform.lines("bob")) == 3 and platform.lines("alice") == []


def test_a_day_whose_runs_have_expired_stays_as_it_was_written(platform: Platform) -> None:
    platform.pass_time("2026-11-23T02:10:00Z")
    platform.round()
    before = dict(platform.bucket.objects)
    for item in platform.world.run_items("alice", "hourly"):
        platform.world.table("runs").delete(keys.run("alice", "hourly", item["sk"]))
    platform.pass_time("2026-11-26T00:30:00Z")  # the retry has changed the day
    platform.round()
    of_day = {name: data for name, data in platform.bucket.objects.items() if DAY in name}
    assert of_day == before


def test_a_deleted_tenants_history_goes_and_nobody_elses(platform: Platform) -> None:
    world = platform.world
    platform.pass_time("2026-11-23T02:10:00Z")
    platform.round()
    deletions = Deletions(
        world.table("tenants"), world.table("jobs"), world.table("runs"), world.store.index, world.clock
    )
    deletions.begin("bob", world.clock.now(), by="operator:1")
    platform.bucket.put("minute8-test/runs/tenant=unknown/day=2020-01-01/part-0000.json.gz", b"")
    while deletions.progress("bob").finished_at is None:
        world.clock.sleep(120)
        deletions.move_on("bob", world.clock.now())
    assert platform.round().counts["removed_tenants"] == 1
    assert {name.split("/")[2] for name in platform.bucket.objects} == {"tenant=alice", "tenant=unknown"}
    assert platform.round().counts["removed_tenants"] == 0


def test_without_a_projection_nothing_is_exported(world: World) -> None:
    assert Platform(world, MemoryBucket()).round().counts == {}


@pytest.mark.usefixtures("on_moto")
def test_the_bucket_of_s3_does_what_the_one_in_memory_does(monkeypatch: pytest.MonkeyPatch) -> None:
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="history")
    monkeypatch.setattr("scheduler.export_handler._DELETED_AT_ONCE", 2)
    rng = random.Random(1)
    names = [f"p/tenant={tenant}/day={day}/part-0000.json.gz" for tenant in "ab" for day in range(3)]
    buckets = S3Bucket(client, "history"), MemoryBucket()
    for bucket in buckets:
        for name in rng.sample(names, 6):
            bucket.put(name, gzip.compress(b"{}\n", mtime=0))
    for prefix in ("p/tenant=a/", "p/", "q/"):
        assert [sorted(bucket.names(prefix)) for bucket in buckets] == [
            [name for name in names if name.startswith(prefix)]
        ] * 2
    assert [list(bucket.folders("p/tenant=")) for bucket in buckets] == [["p/tenant=a/", "p/tenant=b/"]] * 2
    for bucket in buckets:
        bucket.delete(names[:5])
        assert list(bucket.names("")) == names[5:]
    stored = client.get_object(Bucket="history", Key=names[5])
    assert gzip.decompress(stored["Body"].read()) == b"{}\n"


@pytest.mark.parametrize(
    "damage", [{"parts": "two"}, {"fingerprint": 7}, {"next_start": None}, {"is_done": "yes"}]
)
def test_a_day_whose_state_is_damaged_is_written_anew(platform: Platform, damage: Item) -> None:
    platform.pass_time("2026-11-23T02:10:00Z")
    platform.round()
    jobs, key = platform.world.table("jobs"), keys.exported_day("alice", DAY)
    stored = jobs.get(key)
    assert stored
    platform.bucket.objects.clear()
    jobs.put({**stored, **damage})
    platform.world.table("due").delete(keys.chore("export"))
    platform.round()
    assert platform.exported() == platform.over() != set()
    assert jobs.get(key) == stored


def test_a_run_that_cannot_be_read_holds_back_no_other_one_of_its_day(platform: Platform) -> None:
    platform.pass_time("2026-11-23T02:10:00Z")
    start = at(f"{DAY}T00:00:00Z")
    run = next(item for item in platform.world.run_items("alice", "hourly") if item["fire_at"] >= start)
    platform.world.table("runs").put({**run, "attempt": []})
    assert platform.round().counts["unreadable"] == 1
    exported = platform.exported()
    assert len(exported) == 12
    assert exported == {line for line in platform.over() if json.loads(line)[3] != []}


@pytest.mark.parametrize("damage", ["head", "chunk", "no chunk"])
def test_a_day_whose_runs_are_not_all_known_is_named_and_written_after_the_repair(
    platform: Platform, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(windows, "MAX_INLINE", 0)
    platform.pass_time("2026-11-23T02:10:00Z")
    world, start = platform.world, at(f"{DAY}T06:00:00Z")
    runs = world.table("runs")
    head = runs.get(keys.projected_window("alice", start))
    assert head
    (chunk,) = runs.query(Query(keys.projected_chunks("alice"), sk_prefix=f"{start:010d}#"))
    if damage == "no chunk":
        runs.delete(keys.key_of(chunk))
    else:
        runs.put({**head, "chunks": 7} if damage == "head" else {**chunk, "runs": "text"})
    done = platform.go()
    (named,) = done.problems
    assert "'alice' from 2026-11-22T06:00:00Z on is damaged: minute8 check --fix" in named
    assert platform.exported() == set()
    Rebuild(world.table("jobs"), runs, world.table("due")).day(
        "alice", at(f"{DAY}T00:00:00Z"), world.clock.now()
    )
    world.table("due").delete(keys.chore("export"))
    platform.round()
    assert platform.exported() == platform.over() != set()
