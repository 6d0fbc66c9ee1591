"""Two changes of one item at once: none is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from common.declared import read
from common.errors import Conflict, NotFound, QuotaExceeded
from common.jobs.muted_groups import MutedGroup, MutedGroups, Mutes
from common.notices.store import Subscriptions
from common.platform.api_keys import ApiKeys
from common.platform.tenants import Tenants
from common.registration.calendar_store import CalendarStore
from common.registration.definition import Limits
from common.registration.subscriptions import SubscriptionDefinition, SubscriptionStore
from common.storage import keys
from common.storage.table import Query
from common.tenants.rules_cache import KnownTenants
from common.tenants.webhook_secrets import WebhookSecrets
from minute8.eventbridge.group_deletion import GroupDeletions
from minute8.eventbridge.groups import DELETING, GroupRequest, ScheduleGroups
from tests.faults.interleaving import every_order, play
from tests.faults.stage import Stage, staged
from tests.worlds import World

Add = Callable[[object], object]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as stage:
        yield stage


def apart(call: str) -> bool:
    """Where the order matters."""
    return call.startswith(("get_item", "transact_write_items"))


def before_writes(call: str) -> bool:
    """Where both have read and neither has written."""
    return call.startswith("transact_write_items")


def test_a_group_of_schedules_that_is_tagged_meanwhile_is_deleted(stage: Stage) -> None:
    world = stage.world
    groups, deletions = ScheduleGroups(world.table("jobs")), GroupDeletions(world.store)
    now, audited = world.clock.now(), world.store.audited
    groups.create("alice", "billing", {}, now, audited)
    stage.save()
    tagged = set()
    for choose in every_order():
        stage.restore()
        steps = {
            "tag": lambda: groups.tag(
                GroupRequest("alice", "tag"), "billing", {"team": "a"}, (), now, audited
            ),
            "delete": lambda: deletions.begin("alice", "billing", now, GroupRequest("alice", "delete")),
        }
        died = play(stage.wire, steps, choose, apart)
        group = groups.existing("alice", "billing")
        assert (died["delete"], group.state) == (None, DELETING)
        assert died["tag"] is None or isinstance(died["tag"], Conflict)
        assert (died["tag"] is None) == (group.tags == {"team": "a"})
        tagged.add(died["tag"] is None)
    assert tagged == {True, False}


def test_all_secrets_of_two_rotations_at_once_sign(stage: Stage) -> None:
    world = stage.world
    first = WebhookSecrets(world.table("tenants"), lambda: None).ensure("alice", world.clock.now())
    stage.save()
    secrets: list[str] = []
    orders = 0
    for choose in every_order():
        orders += 1
        stage.restore()
        secrets.clear()
        steps = {
            name: lambda: secrets.append(
                WebhookSecrets(world.table("tenants"), lambda: None).rotate("alice", world.clock.now())
            )
            for name in ("one", "another")
        }
        assert set(play(stage.wire, steps, choose, apart).values()) == {None}
        signing = WebhookSecrets(world.table("tenants"), lambda: None).signing("alice", world.clock.now())
        assert set(signing) == {first, *secrets} and signing[-1] == first
    assert orders > 2


def keys_of(world: World) -> Add:
    api_keys = ApiKeys(world.table("tenants"), world.clock)
    return lambda nth: api_keys.create_key("alice", "read", world.clock.now())


def calendars_of(world: World) -> Add:
    store = CalendarStore(world.table("jobs"), world.store.audited)
    return lambda nth: store.put("alice", f"c{nth}", {"dates": []}, world.clock.now())


def groups_of(world: World) -> Add:
    groups = ScheduleGroups(world.table("jobs"))
    return lambda nth: groups.create("alice", f"g{nth}", {}, world.clock.now(), world.store.audited)


def subscriptions_of(world: World) -> Add:
    rules = KnownTenants(world.table("tenants"))
    secrets = WebhookSecrets(world.table("tenants"), lambda: None)
    store = SubscriptionStore(Subscriptions(world.table("jobs")), rules, secrets, Limits(), world.clock)
    topic = read(
        {"target": {"kind": "sns", "arn": "arn:aws:sns:us-east-1:123456789012:t"}},
        SubscriptionDefinition,
        "body",
    )
    return lambda nth: store.put("alice", f"s{nth}", topic, world.clock.now(), world.store.audited)


def muted_of(world: World) -> Add:
    mutes, now = Mutes(MutedGroups(world.table("jobs")), world.store.audited), world.clock.now()
    return lambda nth: mutes.mute(MutedGroup("alice", f"j{nth}", "0" * 12, int(now)), now)


BOUNDED: dict[str, tuple[Callable[[World], Add], str, str, str]] = {
    "keys": (keys_of, "common.platform.api_keys.MAX_KEYS", "tenants", keys.KEY_REFERENCE_PREFIX),
    "calendars": (
        calendars_of,
        "common.registration.calendar_store.MAX_TENANT_CALENDARS",
        "jobs",
        keys.CALENDAR_PREFIX,
    ),
    "groups": (groups_of, "minute8.eventbridge.groups.MAX_GROUPS", "jobs", keys.SCHEDULE_GROUP_PREFIX),
    "subscriptions": (
        subscriptions_of,
        "common.registration.subscriptions.MAX_SUBSCRIPTIONS",
        "jobs",
        keys.SUBSCRIPTION_PREFIX,
    ),
    "muted groups": (muted_of, "common.jobs.muted_groups.MAX_MUTED_GROUPS", "jobs", keys.MUTED_PREFIX),
}


@pytest.mark.parametrize("kind", BOUNDED)
def test_a_bound_holds_for_two_additions_at_once(
    stage: Stage, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stage.world
    of, bound, table, prefix = BOUNDED[kind]
    monkeypatch.setattr(bound, 2)
    Tenants(world.table("tenants"), world.clock).create(
        "alice", "", world.clock.now(), {"allowed_targets": ["*"]}
    )
    of(world)(0)
    stage.save()
    for choose in every_order():
        stage.restore()
        steps = {name: partial(of(world), name) for name in ("1", "2")}
        died = play(stage.wire, steps, choose, before_writes)
        refused = [type(error) for error in died.values() if error]
        assert refused in ([Conflict], [QuotaExceeded]), died
        partition = keys.notices("alice") if kind == "subscriptions" else "alice"
        assert len(list(world.table(table).query(Query(partition, sk_prefix=prefix)))) == 2


@pytest.mark.parametrize("checked", [True, False])
def test_two_edits_of_a_calendar_at_once(stage: Stage, checked: bool) -> None:
    """With the revision that both read, one is refused. Without one, each replaces the whole, as with jobs."""
    world = stage.world
    store = CalendarStore(world.table("jobs"), world.store.audited)
    now = world.clock.now()
    read = store.put("alice", "feasts", {"dates": []}, now).revision
    stage.save()
    days = ("2026-12-24", "2026-12-25")
    for choose in every_order():
        stage.restore()
        edits = {
            day: partial(store.put, "alice", "feasts", {"dates": [day]}, now, read if checked else None)
            for day in days
        }
        died = play(stage.wire, edits, choose, before_writes)
        stored = store.get("alice", "feasts")
        (last,) = stored.dates
        if checked:
            assert sorted(type(error).__name__ for error in died.values()) == ["NoneType", "RevisionMismatch"]
            assert (stored.revision, died[last]) == (read + 1, None)
        else:
            assert (stored.revision, set(died.values())) == (read + 2, {None})
            changes = world.store.audited.audit.newest("alice", 3)
            replaced = [change.before["dates"] for change in changes if change.before]
            assert sorted(replaced) == sorted([[], [day for day in days if day != last]])


def test_a_calendar_that_is_not_there_has_no_revision_to_expect(stage: Stage) -> None:
    world = stage.world
    store = CalendarStore(world.table("jobs"), world.store.audited)
    with pytest.raises(NotFound):
        store.put("alice", "others", {"dates": []}, world.clock.now(), 1)
