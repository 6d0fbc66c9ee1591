"""Spread: jobs of one minute start at different seconds, each job always at the same one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs, to_builtins

from common.errors import AlreadyExists, InvalidInput
from common.jobs.ledger import TenantLedger
from common.platform.tenants import Tenants, changed
from common.registration.registry import Registry
from common.storage.stored import read
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import TenantRules
from common.timing.fires import due_at
from tests.worlds import World, at, job

NIGHT = at("2026-11-21T03:20:00Z")


def with_default(world: World, tenants: int | None, platforms: int = 0) -> Registry:
    table = world.table("tenants")
    settings = {"allowed_targets": ["*"], "spread_s": tenants}
    try:
        Tenants(table).create("alice", "Alice", world.clock.now(), settings)
    except AlreadyExists:
        Tenants(table).edit("alice", settings, world.clock.now())
    store = replace(world.store, ledger=TenantLedger(table, KnownTenants(table)))
    return replace(world.registry, store=store, limits=replace(world.registry.limits, spread_s=platforms))


def resolved(registry: Registry, **fields: Any) -> int:
    return registry.put("alice", "job", job(**fields)).schedule.spread_s


def test_each_job_starts_at_its_own_second_and_always_at_the_same(world: World) -> None:
    registry = with_default(world, 59)
    for n in range(200):
        registry.create("alice", f"j{n}", job(cron="20,30 3 * * *", invocation="Event"))
    world.run_until("2026-11-21T03:33:00Z", ticks=True)
    seconds: dict[str, set[int]] = {}
    for called_at, context in world.target.calls:
        assert called_at == at(context["due_at"])
        seconds.setdefault(context["job_id"], set()).add(at(context["due_at"]) - at(context["fire_at"]))
    assert {len(own) for own in seconds.values()} == {1}
    seconds_used = Counter(second for own in seconds.values() for second in own)
    assert (
        min(seconds_used) >= 0,
        max(seconds_used) <= 59,
        max(seconds_used.values()) <= 12,
        len(seconds_used) > 50,
    ) == (True,) * 4


@pytest.mark.parametrize(
    ("tenants", "platforms", "spread_s"), [(None, 0, 0), (None, 30, 30), (20, 30, 20), (0, 30, 0)]
)
def test_the_tenants_default_goes_before_the_platforms(
    world: World, tenants: int | None, platforms: int, spread_s: int
) -> None:
    registry = with_default(world, tenants, platforms)
    assert resolved(registry, cron="20 3 * * *") == spread_s


def test_only_a_cron_that_names_no_second_has_the_default(world: World) -> None:
    registry = with_default(world, 300)
    assert resolved(registry, cron="20 3 * * *") == 300
    assert resolved(registry, cron="20 3 * * *", exclude={"dates": ["2026-12-24"]}) == 300
    for fields in ({"cron": "0 20 3 * * *"}, {"every": "1d"}, {"at": "2026-11-22T03:20:00Z"}):
        assert resolved(registry, **fields) == 0
    # It never reaches the next fire time.
    assert resolved(registry, cron="*/2 * * * *") == 119


def test_a_jobs_own_spread_goes_before_the_default(world: World) -> None:
    registry = with_default(world, 300)
    for spread_s in (0, 7, 3_600):
        definition = job(cron="20 3 * * *")
        definition["schedule"]["spread_s"] = spread_s
        assert registry.put("alice", "job", definition).schedule.spread_s == spread_s


def test_a_changed_default_does_not_move_a_job_that_stays_as_it_is(world: World) -> None:
    definition = job(cron="20 3 * * *")
    before = with_default(world, 300).create("alice", "job", definition)
    registry = with_default(world, 20)
    assert registry.put("alice", "job", definition | {"name": "renamed"}).schedule == before.schedule
    assert resolved(registry, cron="21 3 * * *") == 20


def test_spread_and_jitter_add_up(world: World) -> None:
    schedule = with_default(world, 59).create("alice", "job", job(cron="20 3 * * *", jitter_s=100)).schedule
    spread = due_at(structs.replace(schedule, jitter_s=0), "alice/job", NIGHT) - NIGHT
    days = [NIGHT + n * 86_400 for n in range(50)]
    delays = {due_at(schedule, "alice/job", day) - day - spread for day in days}
    assert (min(delays) >= 0, max(delays) <= 100, len(delays) > 20) == (True, True, True)


@pytest.mark.parametrize("value", [-1, 3_601, True, "60", 1.5])
def test_an_invalid_spread_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="spread_s"):
        changed(TenantRules(), {"spread_s": value})


@pytest.mark.parametrize(("default_s", "stored"), [(0, 0), (3_600, 3_600), (None, None)])
def test_a_tenants_default_is_kept(default_s: int | None, stored: int | None) -> None:
    rules = changed(TenantRules(spread_s=7), {"spread_s": default_s})
    assert read(to_builtins(rules), TenantRules).spread_s == rules.spread_s == stored
