"""Registration against quotas and allowed targets; also many at once."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from common.errors import Busy, InvalidInput, NotFound, QuotaExceeded, TenantSuspended
from common.jobs.ledger import TenantLedger, most_per_day
from common.platform.tenants import Tenants
from common.registration.registry import Registry
from common.registration.schedule_text import parse_schedule
from common.tenants.rules_cache import KnownTenants
from tests.worlds import ARN, World, at, job


@pytest.fixture
def registry(world: World) -> Registry:
    return allowed(world)


def allowed(world: World) -> Registry:
    """alice may have two jobs and 100 executions a day of one target."""
    table = world.table("tenants")
    settings = {"allowed_targets": [ARN], "quotas": {"jobs": 2, "executions_per_day": 100}}
    Tenants(table).create("alice", "Alice", world.clock.now(), settings)
    counting = replace(world.store, ledger=TenantLedger(table, KnownTenants(table)))
    return replace(world.registry, store=counting)


def used(world: World) -> tuple[int, int]:
    tenant = Tenants(world.table("tenants")).get("alice")
    return tenant.jobs, tenant.executions_per_day


def edit(world: World, **changes: Any) -> None:
    Tenants(world.table("tenants")).edit("alice", changes, world.clock.now())


def test_jobs_count_until_they_are_deleted(world: World, registry: Registry) -> None:
    registry.create("alice", "a", job(cron="0 * * * *"))
    registry.put("alice", "b", job(every=3600))
    assert used(world) == (2, 48)
    registry.store.pause("alice", "a")
    registry.put("alice", "a", job(cron="0 * * * *", payload=1))
    registry.store.resume("alice", "a")
    registry.patch("alice", "a", {"name": "A"})
    assert used(world) == (2, 48)
    registry.patch("alice", "a", {"schedule": {"cron": "0,30 * * * *"}})
    assert used(world) == (2, 72)
    registry.store.delete("alice", "a")
    assert used(world) == (1, 24)
    registry.create("alice", "a", job(at="2026-12-01T00:00:00Z"))
    assert used(world) == (2, 25)
    for job_id in ("a", "b"):
        registry.store.delete("alice", job_id)
    assert used(world) == (0, 0)


def test_a_job_over_the_quota_is_refused_and_not_stored(world: World, registry: Registry) -> None:
    registry.create("alice", "a", job(cron="0 * * * *"))
    with pytest.raises(QuotaExceeded) as refused:
        registry.create("alice", "b", job(every=60))
    assert "quota executions_per_day: 24 of 100 are in use, and this needs 1440 more" in str(refused.value)
    with pytest.raises(QuotaExceeded):
        registry.patch("alice", "a", {"schedule": {"cron": "*/10 * * * *"}})
    registry.create("alice", "b", job(every=3600))
    with pytest.raises(QuotaExceeded) as refused:
        registry.create("alice", "c", job(at="2026-12-01T00:00:00Z"))
    assert (refused.value.quota, refused.value.used, refused.value.most) == ("jobs", 2, 2)
    assert used(world) == (2, 48)
    assert [job.job_id for job in registry.store.list_jobs("alice")] == ["a", "b"]


def test_a_tenant_over_a_lowered_quota_may_still_reduce_its_use(world: World, registry: Registry) -> None:
    registry.create("alice", "a", job(cron="0 * * * *"))
    registry.create("alice", "b", job(cron="0 * * * *"))
    edit(world, quotas={"jobs": 0, "executions_per_day": 1})
    registry.put("alice", "a", job(cron="0 0 * * *"))
    registry.store.delete("alice", "b")
    assert used(world) == (1, 1)


def test_concurrent_registrations_never_exceed(world: World) -> None:
    registry = allowed(world)
    edit(world, quotas={"jobs": 5, "executions_per_day": 1000})
    world.dynamodb.before = lambda name: time.sleep(0)  # another thread goes on
    ended: list[str] = []

    def register(n: int) -> None:
        try:
            registry.create("alice", f"job-{n}", job(cron="0 0 * * *"))
            ended.append("created")
        except (QuotaExceeded, Busy) as refused:
            ended.append(type(refused).__name__)

    threads = [threading.Thread(target=register, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == ["QuotaExceeded"] * 7 + ["created"] * 5
    assert used(world) == (5, 5)


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ({"kind": "lambda", "arn": ARN + "2"}, "target.arn"),
        ({"kind": "lambda", "arn": ARN, "role_arn": "arn:aws:iam::123456789012:role/x"}, "target.arn"),
        ({"kind": "http", "url": "https://hooks.example.com/"}, "target.url"),
    ],
)
def test_only_what_the_platform_allows_can_be_registered(
    world: World, registry: Registry, target: dict[str, Any], named: str
) -> None:
    definition = job(cron="0 0 * * *") | {"target": target}
    with pytest.raises(InvalidInput) as refused:
        registry.create("alice", "a", definition)
    assert refused.value.field == named
    assert "the platform allows this tenant" in str(refused.value)
    assert (target.get("url") or target["arn"]) in str(refused.value) and ARN in refused.value.accepted
    edit(world, allowed_targets=["*"])
    assert registry.create("alice", "a", definition).spec.target["kind"] == target["kind"]


def test_shortest_interval_and_payload(world: World, registry: Registry) -> None:
    edit(world, quotas={"shortest_interval_s": 60, "payload_bytes": 10, "executions_per_day": None})
    for schedule, payload, field in (
        ({"cron": "*/30 * * * * *"}, None, "schedule.cron"),
        ({"every": 59}, None, "schedule.every"),
        ({"every": 60}, "x" * 9, "payload"),
    ):
        with pytest.raises(InvalidInput) as refused:
            registry.create("alice", "a", job(**schedule, payload=payload))
        assert refused.value.field == field
    registry.create("alice", "a", job(every=60, payload="x" * 8))


def test_a_suspended_or_unknown_tenant_registers_nothing(world: World, registry: Registry) -> None:
    Tenants(world.table("tenants")).suspend("alice", "unpaid", world.clock.now())
    with pytest.raises(TenantSuspended):
        registry.create("alice", "a", job(cron="0 0 * * *"))
    with pytest.raises(NotFound):
        registry.create("zoe", "a", job(cron="0 0 * * *"))
    assert used(world) == (0, 0)


def test_suspended_between_the_check_and_the_commit(
    world: World, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated = registry.validated

    def suspended_then(self: Registry, *words: Any) -> Any:
        done = validated(*words)
        Tenants(world.table("tenants")).suspend("alice", "", world.clock.now())
        return done

    monkeypatch.setattr(Registry, "validated", suspended_then)
    with pytest.raises(TenantSuspended):
        registry.create("alice", "a", job(cron="0 0 * * *"))


@pytest.mark.parametrize(
    ("schedule", "most"),
    [
        ({"cron": "* * * * *"}, 1440),
        ({"cron": "* * * * * *"}, 86_400),
        ({"cron": "*/10 * * * * *"}, 8640),
        ({"cron": "0 9-17 * * 1-5"}, 9),
        ({"cron": "15 3 1 1 *"}, 1),
        ({"every": 7000}, 13),
        ({"every": 86_400 * 7}, 1),
        ({"at": "2026-12-01T00:00:00Z"}, 1),
    ],
)
def test_the_most_of_one_day(schedule: dict[str, Any], most: int) -> None:
    parsed = parse_schedule(schedule, job_key="a/b", now=at("2026-11-21T03:12:00Z"))
    assert most_per_day(parsed) == most
