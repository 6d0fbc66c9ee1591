"""The platform's rules for a tenant apply to each attempt of each run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.runs.outcome import Outcome
from common.storage import keys
from common.tenants.rules_cache import KnownTenants
from tests.worlds import ARN, World, at, job, with_spec

TRUSTED_FOR_S = 15

FAILS = Outcome(ok=False, error_type="Boom", error="it went wrong")


@pytest.fixture
def ruled(world: World) -> World:
    """A world whose executor reads the tenants table; alice may call the target."""
    world.executor = replace(world.executor, tenants=KnownTenants(world.table("tenants")))
    tenants(world).create("alice", "Alice", world.clock.now(), {"allowed_targets": [ARN]})
    return world


def tenants(world: World) -> Tenants:
    return Tenants(world.table("tenants"))


def change(world: World, **changes: Any) -> None:
    tenants(world).edit("alice", changes, world.clock.now())
    world.clock.sleep(TRUSTED_FOR_S)


def test_a_suspended_tenants_jobs_stop_and_go_on(ruled: World) -> None:
    ruled.registry.create("alice", "minutely", job(cron="* * * * *"))
    ruled.run_until("2026-11-21T03:13:30Z")
    tenants(ruled).suspend("alice", "unpaid", ruled.clock.now())
    ruled.run_until("2026-11-21T03:15:30Z")
    tenants(ruled).resume("alice", ruled.clock.now())
    ruled.run_until("2026-11-21T03:16:30Z")
    assert ruled.statuses("alice", "minutely") == [
        "succeeded",
        "skipped(suspended)",
        "skipped(suspended)",
        "succeeded",
    ]
    assert "suspended" in ruled.run_items("alice", "minutely")[1]["detail"]


def test_a_retry_of_a_suspended_tenant_ends_explained(ruled: World) -> None:
    ruled.target.answer = lambda event: FAILS
    ruled.registry.create("alice", "once", job(at="2026-11-21T03:13:00Z", retry={"base_s": 60}))
    ruled.run_until("2026-11-21T03:13:10Z")
    assert ruled.statuses("alice", "once") == ["retrying"]
    tenants(ruled).suspend("alice", "", ruled.clock.now())
    ruled.run_until("2026-11-21T03:20:00Z")
    (run,) = ruled.run_items("alice", "once")
    assert (run["status"], run["error_type"]) == ("failed", "suspended")
    words = "not tried again: the platform has suspended the tenant; attempt 1 failed: Boom: it went wrong"
    assert run["error"] == words
    assert len(ruled.target.calls) == 1


def test_manual_runs_stop_too(ruled: World) -> None:
    ruled.registry.create("alice", "daily", job(cron="0 9 * * *"))
    tenants(ruled).suspend("alice", "", ruled.clock.now())
    ruled.manual.run_now("alice", "daily", "1")
    ruled.run_until("2026-11-21T03:13:00Z")
    assert ruled.statuses("alice", "daily") == ["skipped(suspended)"]


def test_a_tenant_that_is_not_there_runs_nothing(ruled: World) -> None:
    ruled.registry.create("zoe", "once", job(at="2026-11-21T03:13:00Z"))
    ruled.table("tenants").delete(keys.tenant("zoe"))
    ruled.run_until("2026-11-21T03:14:00Z")
    (run,) = ruled.run_items("zoe", "once")
    assert (run["reason"], run["detail"]) == ("deleted", "there is no such tenant (any more)")
    assert run["expires_at"] - at("2026-11-21T03:13:00Z") == 86_400
    assert ruled.target.calls == []


@pytest.mark.parametrize(
    ("patterns", "status"),
    [
        ([], "skipped(target_not_allowed)"),
        (["hooks.example.com"], "skipped(target_not_allowed)"),
        (["arn:aws:lambda:*:999999999999:function:*"], "skipped(target_not_allowed)"),
        (["arn:aws:lambda:*:123456789012:function:tar*"], "succeeded"),
        (["*"], "succeeded"),
    ],
)
def test_only_allowed_targets_are_called(ruled: World, patterns: list[str], status: str) -> None:
    ruled.registry.create("alice", "minutely", job(cron="* * * * *"))
    change(ruled, allowed_targets=patterns)
    ruled.run_until("2026-11-21T03:13:30Z")
    assert ruled.statuses("alice", "minutely") == [status]
    if status != "succeeded":
        assert ARN in ruled.run_items("alice", "minutely")[0]["detail"]
        assert ruled.target.calls == []


def test_minute8s_own_functions_are_never_called(ruled: World) -> None:
    """A job that was stored before registration refused such targets."""
    own = "arn:aws:lambda:us-east-1:123456789012:function:minute8-test-scheduler"
    ruled.registry.create("alice", "own", job(cron="* * * * *"))
    stored = ruled.store.get("alice", "own")
    changed = with_spec(stored, target={**stored.spec.target, "arn": own})
    ruled.table("jobs").put({**keys.job("alice", "own"), **changed.to_item()})
    change(ruled, allowed_targets=["*"])
    ruled.run_until("2026-11-21T03:13:30Z")
    assert ruled.statuses("alice", "own") == ["skipped(target_not_allowed)"]
    assert ruled.run_items("alice", "own")[0]["detail"] == f"{own} is Minute8's own"


def test_runs_are_kept_as_long_as_the_platform_says(ruled: World) -> None:
    ruled.registry.create("alice", "minutely", job(cron="* * * * *"))
    change(ruled, retention_days=7)
    ruled.run_until("2026-11-21T03:13:30Z")
    ruled.registry.store.pause("alice", "minutely")
    ruled.run_until("2026-11-21T03:14:30Z")
    ran, skipped = ruled.run_items("alice", "minutely")
    assert ran["expires_at"] == at("2026-11-28T03:13:00Z")
    assert (skipped["reason"], skipped["expires_at"]) == ("paused", at("2026-11-28T03:14:00Z"))
