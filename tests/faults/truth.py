"""What must hold at the end, after any fault: read from the tables and the target's log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from common.jobs.job import ACTIVE
from common.storage import keys
from common.timing.instants import rfc3339
from common.timing.slots import places
from tests.worlds import World, at

FINAL = {"succeeded", "failed", "dispatched", "skipped"}

_deserialize = TypeDeserializer().deserialize

Fires = Mapping[tuple[str, str], Iterable[int]]


def everything_explained(world: World, fires: Fires, twice: int = 0) -> None:
    """Every fire time has one record in a final state or lies in one aggregate, and was called accordingly.

    `fires` are all fire times that each job had. `twice`: so many attempts may have been called twice.
    """
    assert len(world.sqs) == 0, f"messages are left: {world.sqs._waiting}"
    called = Counter((c["tenant"], c["job_id"], c["fire_at"], c["attempt"]) for _, c in world.target.calls)
    doubled = {key: count for key, count in called.items() if count > 1}
    assert len(doubled) <= twice, f"called more than once: {doubled}"
    assert all(count <= 2 for count in doubled.values()), doubled
    for (tenant, job_id), fire_times in fires.items():
        _explained(world, tenant, job_id, sorted(fire_times))
    strangers = {(c["tenant"], c["job_id"]) for _, c in world.target.calls} - set(fires)
    assert not strangers, strangers
    for called_at, context in world.target.calls:
        assert called_at >= at(context["due_at"]), f"early: {context}"


def _explained(world: World, tenant: str, job_id: str, fire_times: list[int]) -> None:
    records = world.run_items(tenant, job_id)
    recorded: Counter[int] = Counter()
    for record in records:
        assert record["status"] in FINAL, f"not final: {record}"
        if "skipped_count" in record:
            covered = [f for f in fire_times if record["skipped_from_at"] <= f <= record["fire_at"]]
            assert record["skipped_count"] == len(covered), f"counts wrongly: {record}, {covered}"
        else:
            covered = [record["fire_at"]]
        recorded.update(covered)
    assert recorded == Counter(fire_times), (
        f"{tenant}/{job_id}: missing {[rfc3339(f) for f in fire_times if not recorded[f]]}, "
        f"more than once {[rfc3339(f) for f, n in recorded.items() if n > 1]}, "
        f"never due {[rfc3339(f) for f in recorded if f not in fire_times]}"
    )
    _called_as_recorded(world, tenant, job_id, records)


def _called_as_recorded(world: World, tenant: str, job_id: str, records: list[dict[str, Any]]) -> None:
    """Executions recorded as run were called, those recorded as skipped were not."""
    called = {c["fire_at"] for _, c in world.target.calls if (c["tenant"], c["job_id"]) == (tenant, job_id)}
    for record in records:
        fire_at = rfc3339(record["fire_at"])
        if record["status"] in ("succeeded", "dispatched"):
            assert fire_at in called, f"recorded and never called: {record}"
        if record["status"] == "skipped":
            first = rfc3339(record.get("skipped_from_at", record["fire_at"]))
            ran = [c for c in called if first <= c <= fire_at]
            assert not ran, f"skipped and yet called: {record}, {ran}"


def index_is_right(world: World, pending: int = 0) -> None:
    """Each active job has one due entry in its shard, the shards' counts are right, and there are no other entries."""
    due = _items(world, "due")
    entries = {(i["pk"], i["sk"]): i["entry"] for i in due if i["pk"].startswith("GROUP#")}
    jobs = [i for i in _items(world, "jobs") if i.get("state") == ACTIVE]
    expected = {
        (f"GROUP#{i['group']}#{i['shard']}", f"{i['tenant']}#{i['job_id']}"): int(i["schedule_revision"])
        for i in jobs
    }
    assert set(entries) == set(expected)
    for key, text in entries.items():
        assert f",{expected[key]}," in text, (key, text)
    counted = {i["sk"]: int(i["jobs"]) for i in due if i["pk"].startswith(("DIRECTORY#", "ONE_OFF#"))}
    real = Counter(pk.removeprefix("GROUP#") for pk, _ in entries)
    assert {sk: n for sk, n in counted.items() if n} == real
    listed = {(i["pk"], i["sk"]) for i in due if i["pk"].startswith("LISTED#")}
    for sk in real:
        group, _ = keys.group_and_shard(sk)
        assert {(keys.listings(place), sk) for place in places(group)} <= listed, (
            f"{sk} is not where ticks look"
        )
    assert len([i for i in due if i["pk"].startswith("PENDING#")]) == pending
    texts_are_right(world)


def texts_are_right(world: World) -> None:
    """Each large text that a job names is stored and stays. Each other text expires."""
    jobs = _items(world, "jobs")
    named = {
        (keys.texts_of_job(i["tenant"], i["job_id"]), i["payload"]["sha256"])
        for i in jobs
        if i["sk"].startswith(keys.JOB_PREFIX) and isinstance(i.get("payload"), dict)
    }
    stored = {(i["pk"], i["sk"]): "expires_at" in i for i in jobs if i["pk"].endswith("#text")}
    assert {key for key, expires in stored.items() if not expires} == named


def _items(world: World, table: str) -> list[dict[str, Any]]:
    items = world.dynamodb.scan(TableName=f"test-{table}", ConsistentRead=True)["Items"]
    return [{name: _deserialize(value) for name, value in item.items()} for item in items]
