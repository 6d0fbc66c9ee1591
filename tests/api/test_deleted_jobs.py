"""Deleted jobs: no read of live jobs meets them, and a job that is created again continues their revisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from common.errors import AlreadyExists
from common.jobs.job import Job
from common.jobs.revisions import deleted
from minute8.eventbridge.group_deletion import GroupDeletions
from tests.api.aws_schedules import Aws, schedule
from tests.api.calls import Office
from tests.worlds import World, job

MAX_AT_ONCE = 14

DELETED_JOBS = 1_000
LISTS = (
    "/v1/jobs",
    "/v1/jobs?tag=nobody",
    "/v1/jobs?health=true",
    "/v1/jobs/_export",
    "/v1/upcoming",
    "/v1/density",
    "/v1/expected",
)


@contextmanager
def items_read(world: World) -> Iterator[Counter[str]]:
    """Counts the items of the jobs table that queries read, also those that a filter drops.

    Only lists of runs look for deleted jobs, to find their runs: that is counted apart.
    """
    read: Counter[str] = Counter()
    query = world.dynamodb.query

    def counted(**request: Any) -> Any:
        answer = query(**request)
        if request["TableName"] == "test-jobs":
            looks_for_runs = "FORMER#" in str(request["ExpressionAttributeValues"])
            read["deleted jobs" if looks_for_runs else "items"] += answer["ScannedCount"]
        return answer

    world.dynamodb.query = counted  # type: ignore[method-assign]
    yield read
    world.dynamodb.query = query  # type: ignore[method-assign]


def delete_many(world: World, prefix: str) -> None:
    """Create and delete DELETED_JOBS jobs whose ids begin with the prefix."""
    model = world.store.get("alice", "live-0")

    def created(job_id: str) -> Callable[[Job | None, float], Job]:
        return lambda old, now: Job.from_item({**model.to_item(), "job_id": job_id, "payload": "null"})

    job_ids = [f"{prefix}{number:04}" for number in range(DELETED_JOBS)]
    for first in range(0, DELETED_JOBS, MAX_AT_ONCE):
        batch = job_ids[first : first + MAX_AT_ONCE]
        world.store.change_all("alice", {job_id: created(job_id) for job_id in batch})
        world.store.change_all("alice", dict.fromkeys(batch, lambda old, now: deleted(old, now)))  # type: ignore[arg-type]


def test_lists_read_no_deleted_job(office: Office, aws: Aws) -> None:
    world, client = office.world, aws()
    for number in range(3):
        office.alice("PUT", f"/v1/jobs/live-{number}", job(cron="0 3 * * *"))
    client.create_schedule_group(Name="billing")
    client.create_schedule(**schedule(Name="a", GroupName="billing"))

    def read_by_each() -> dict[str, int]:
        counts = {}
        for url in LISTS:
            with items_read(world) as read:
                assert office.alice_reads("GET", url).status == 200
            counts[url] = read["items"]
        with items_read(world) as read:
            assert office.operator("GET", "/v1/tenants/alice/health").status == 200
        counts["tenant health"] = read["items"]
        with items_read(world) as read:
            assert office.alice("POST", "/v1/jobs/_all/pause", {"all": True, "dry_run": True}).json["matched"]
        counts["pause all"] = read["items"]
        with items_read(world) as read:
            assert len(client.list_schedules()["Schedules"]) == 1
        counts["ListSchedules"] = read["items"]
        with items_read(world) as read:
            list(GroupDeletions(world.store)._schedules("alice", "billing"))
        counts["the removal of a group"] = read["items"]
        return counts

    read_by_each()  # the first look makes the directory of jobs
    before = read_by_each()
    delete_many(world, "gone-")
    delete_many(world, "billing..")
    read_by_each()  # the directory of jobs reads the deletions once
    after = read_by_each()
    # These read the directory's own items, now and then.
    by_directory = dict.fromkeys(("/v1/jobs?tag=nobody", "/v1/upcoming", "/v1/density"), 0)
    assert after | by_directory == before | by_directory
    assert all(count <= 8 for count in (*before.values(), *after.values())), (before, after)


def test_created_again_a_job_continues_its_revisions(office: Office) -> None:
    first = office.alice("PUT", "/v1/jobs/nightly", job(cron="0 3 * * *")).json
    office.alice("DELETE", "/v1/jobs/nightly")
    office.world.clock.sleep(20 * 86_400)  # longer than its last runs are shown
    assert office.alice("GET", "/v1/jobs/nightly").status == 404
    again = office.alice("PUT", "/v1/jobs/nightly", job(cron="0 3 * * *")).json
    assert (first["revision"], again["revision"]) == (1, 3)
    assert (first["schedule_revision"], again["schedule_revision"]) == (1, 2)
    office.alice("DELETE", "/v1/jobs/nightly")
    assert office.alice("PUT", "/v1/jobs/nightly", job(cron="0 3 * * *")).json["revision"] == 5


@pytest.mark.parametrize("known_before", ["never", "deleted"])
def test_a_creation_sees_what_was_created_and_deleted_while_it_decided(
    world: World, known_before: str
) -> None:
    """Else both jobs would have one schedule revision, and messages of the deleted one would run."""
    if known_before != "never":
        world.registry.create("alice", "nightly", job(cron="0 3 * * *"))
        world.store.delete("alice", "nightly")
    meanwhile = []

    def create(old: Job | None, now: float) -> Job:
        if not meanwhile:
            meanwhile.append(world.registry.create("alice", "nightly", job(cron="0 3 * * *")))
            world.store.delete("alice", "nightly")
        new = meanwhile[0]
        revision = old.revision + 1 if old else 1
        schedule_revision = old.schedule_revision + 1 if old else 1
        item = {**new.to_item(), "revision": revision, "schedule_revision": schedule_revision}
        return Job.from_item(item)

    job_again = world.store.change("alice", "nightly", create)
    assert job_again.revision == meanwhile[0].revision + 2
    assert job_again.schedule_revision == meanwhile[0].schedule_revision + 1
    with pytest.raises(AlreadyExists):
        world.registry.create("alice", "nightly", job(cron="0 3 * * *"))


def test_a_deleted_job_is_explained_in_its_time_zone(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/nightly", job(cron="0 3 * * *", timezone="Europe/Paris"))
    office.alice("DELETE", "/v1/jobs/nightly")
    explained = office.alice("GET", "/v1/jobs/nightly/explain?at=2026-11-25T03:00:00").json
    assert (explained["at"], explained["timezone"]) == ("2026-11-25T02:00:00Z", "Europe/Paris")
