"""Two changes of one item at once: none is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from common.errors import Conflict
from common.jobs.group_deletion import GroupDeletions
from common.jobs.group_requests import GroupRequest
from common.jobs.schedule_groups import DELETING, ScheduleGroups
from common.tenants.webhook_secrets import WebhookSecrets
from tests.faults.interleaving import every_order, play
from tests.faults.stage import Stage, staged


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged("2026-11-21T03:12:00Z") as made:
        yield made


def apart(call: str) -> bool:
    """Where the order matters."""
    return call.startswith(("get_item", "transact_write_items"))


def test_a_group_of_schedules_that_is_tagged_meanwhile_is_deleted(stage: Stage) -> None:
    w = stage.w
    groups, deletions = ScheduleGroups(w.table("jobs")), GroupDeletions(w.store)
    now, audited = w.clock.now(), w.store.audited
    groups.create("alice", "billing", {}, now, audited)
    stage.save()
    tagged = set()
    for choose in every_order():
        stage.restore()
        steps = {
            "tag": lambda: groups.tag(
                "alice", "billing", {"team": "a"}, (), now, audited, GroupRequest("alice", "tag")
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
    w = stage.w
    first = WebhookSecrets(w.table("tenants")).ensure("alice", w.clock.now())
    stage.save()
    made: list[str] = []
    orders = 0
    for choose in every_order():
        orders += 1
        stage.restore()
        made.clear()
        steps = {
            name: lambda: made.append(WebhookSecrets(w.table("tenants")).rotate("alice", w.clock.now()))
            for name in ("one", "another")
        }
        assert set(play(stage.wire, steps, choose, apart).values()) == {None}
        signing = WebhookSecrets(w.table("tenants")).signing("alice", w.clock.now())
        assert set(signing) == {first, *made} and signing[-1] == first
    assert orders > 2
