"""A tenant with every kind of item, and the items that are left of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from common.declared import read
from common.history.job_directory import JobDirectory
from common.jobs.idempotency import IdempotencyKey
from common.jobs.ledger import TenantLedger
from common.jobs.muted_groups import MutedGroup, MutedGroups, Mutes
from common.notices.store import Subscriptions
from common.planning.directory import Listing, Shard
from common.planning.due_index import DueIndex
from common.platform.deletion import Deletions
from common.platform.request_rate import RequestRate
from common.platform.tenants import Tenants
from common.projection.days import day_start
from common.projection.entry import RunEntry
from common.registration.calendar_store import CalendarStore
from common.registration.definition import Limits
from common.registration.registry import Registry
from common.registration.subscriptions import SubscriptionDefinition, SubscriptionStore
from common.runs.states import SUCCEEDED
from common.storage import keys
from common.tenants.audit import Audit, AuditedCommit
from common.tenants.audit_chain import AuditSeals
from common.tenants.rules_cache import KnownTenants
from common.tenants.webhook_secrets import WebhookSecrets
from common.timing.instants import DAY_S
from minute8.eventbridge.groups import ScheduleGroups
from tests.worlds import TABLES, World, at, job

MAX_INLINE = 300
SETTLE_S = 1_200

TOMBSTONE = [("OPERATORS#", "AUDIT#"), ("alice", "TENANT")]
# The kinds of items that the furnished tenants have, by table and the first part of their keys.
KINDS_OF_ITEMS = {
    "jobs": {
        "JOB",
        "FORMER",
        "STREAK",
        "MUTED",
        "LISTED",
        "CALENDAR",
        "BACKFILL",
        "ASKED",
        "ONCE",
        "EVENT",
        "SCHEDULE_GROUP",
        "ADDITIONS",
    },
    "tenants": {"TENANT", "KEYREF", "WEBHOOK", "SECRET", "RATE", "ADDITIONS"},
    "audit": {"AUDIT"},
}

# The partitions of a tenant's projected runs.
PROJECTED = {"tenant##windows", "tenant##chunks", "tenant##days"}


def tenants_of(world: World) -> Tenants:
    return Tenants(world.table("tenants"))


def deletions_of(world: World) -> Deletions:
    return Deletions(
        world.table("tenants"),
        world.table("jobs"),
        world.table("runs"),
        DueIndex(world.table("due")),
        world.clock,
    )


def registry_of(world: World) -> Registry:
    """A registry that counts and audits like the API's, with empty caches."""
    table = world.table("tenants")
    store = replace(world.store, ledger=TenantLedger(table, KnownTenants(table)))
    return replace(world.registry, store=store)


def furnish(world: World) -> str:
    """alice and bob, alike: keys, jobs of each kind, runs, a calendar, a backfill, a secret. Returns alice's key."""
    table = world.table("tenants")
    world.executor = replace(world.executor, tenants=KnownTenants(table))
    registry = registry_of(world)
    alices = ""
    for tenant in ("bob", "alice"):
        tenants_of(world).create(tenant, "", world.clock.now(), {"allowed_targets": ["*"]})
        alices, _ = tenants_of(world).api_keys.create_key(tenant, "admin", world.clock.now())
        WebhookSecrets(table, lambda: world.secret_key).ensure(tenant, world.clock.now())
        world.secrets.put(tenant, "token", "a secret value", world.clock.now())
        RequestRate(table).take(tenant, 100, world.clock.now())
        _furnish_jobs(world, registry, tenant)
    for tenant in ("bob", "alice"):
        assert AuditSeals(Audit(table)).seal(tenant, world.clock.now() + SETTLE_S + 1, 1)
    world.run_until("2026-11-21T03:14:30Z")
    return alices


def _furnish_jobs(world: World, registry: Registry, tenant: str) -> None:
    CalendarStore(world.table("jobs"), world.store.audited).put(
        tenant, "days", {"dates": ["2026-12-24"]}, world.clock.now()
    )
    ScheduleGroups(world.table("jobs")).create(tenant, "billing", {}, world.clock.now(), world.store.audited)
    _subscribe(world, tenant)
    _project(world, tenant)
    minutely = job(cron="* * * * *", overlap="skip")
    registry.create(tenant, "minutely", minutely, IdempotencyKey.of(tenant, "key", minutely))
    registry.create(tenant, "later", job(at="2026-12-01T00:00:00Z", payload="x" * 2_000))
    registry.patch(tenant, "later", {"payload": "y" * 2_000})
    registry.store.failures.add(registry.store.get(tenant, "later"), "20261121T031200Z#1")
    muted = MutedGroup(tenant, "later", "0" * 12, int(world.clock.now()))
    Mutes(MutedGroups(world.table("jobs")), world.store.audited).mute(muted, world.clock.now())
    registry.create(tenant, "paused", job(every=600))
    registry.store.pause(tenant, "paused")
    past = at("2026-11-21T02:00:00Z")
    world.manual.backfills.start(tenant, "paused", past, past + 1200, 1, "again")
    registry.create(tenant, "gone", job(cron="0 0 * * *", payload="z" * 2_000))
    world.manual.run_now(tenant, "gone", "1")
    registry.store.delete(tenant, "gone")
    world.table("jobs").put({**keys.newest_event(tenant, "later"), "at": 1, "done": []})
    world.table("jobs").put({**keys.exported_day(tenant, "2026-11-20"), "parts": 1})
    JobDirectory(world.table("jobs"), Audit(world.table("tenants"))).listed(tenant, world.clock.now())


def _project(world: World, tenant: str) -> None:
    """A window with chunks, and its day rolled up."""
    start, now = at("2026-11-20T03:00:00Z"), int(world.clock.now())
    entries = [
        RunEntry(f"20261120T030000Z:{number}", "minutely", SUCCEEDED) for number in range(MAX_INLINE + 1)
    ]
    window = world.projector.windows.merge(
        tenant, start, {entry.key: entry for entry in entries}, now + DAY_S
    )
    assert window.chunks
    world.projector.days.roll_up(tenant, day_start(start))


def _subscribe(world: World, tenant: str) -> None:
    table = world.table("tenants")
    stored = Subscriptions(world.table("jobs"))
    store = SubscriptionStore(
        stored, KnownTenants(table), WebhookSecrets(table, lambda: None), Limits(), world.clock
    )
    target = {"kind": "http", "url": "https://hooks.example.com/minute8"}
    store.put(
        tenant,
        "on-call",
        read({"target": target}, SubscriptionDefinition, "body"),
        world.clock.now(),
        AuditedCommit(Audit(table), "key", world.clock),
    )


def items_of(world: World, table: str) -> list[dict[str, Any]]:
    items = world.dynamodb.scan(TableName=f"test-{table}")["Items"]
    return [item for item in items if isinstance(item, dict)]


def left_of(world: World, tenant: str) -> list[tuple[str, str]]:
    """The keys of a tenant's items in all tables, without the log of changed tenants. Audit entries count by kind."""
    item_keys = [
        (item["pk"]["S"], item["sk"]["S"])
        for name in TABLES
        for item in items_of(world, name)
        if tenant in str(item) and item["pk"]["S"] != keys.TENANT_CHANGES
    ]
    return sorted((pk, "AUDIT#" if sk.startswith("AUDIT#") else sk) for pk, sk in item_keys)


def directory(world: World) -> dict[str, int]:
    index = DueIndex(world.table("due"))
    recurring = [listing.shard for listing in index.directory.all() if isinstance(listing, Listing)]
    shards = [*recurring, *index.directory.one_off_shards(0, 10**10 - 1)]
    return {shard.group: shard.jobs for shard in shards if isinstance(shard, Shard)}


def finish(world: World, most: int = 500) -> int:
    """Continue alice's deletion to its end; returns the number of slices."""
    world.clock.sleep(60)
    for slices in range(1, 500):
        if deletions_of(world).move_on("alice", world.clock.now(), most).finished_at is not None:
            return slices
    raise AssertionError("it never ends")
