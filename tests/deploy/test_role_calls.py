"""Each function's role in deploy/roles.yml grants what the function calls in the tests' flows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from common.projection import windows
from common.storage import keys
from common.tenants.rules_cache import KnownTenants
from minute8.eventbridge.group_deletion import GroupDeletions
from scheduler import removal
from tests import worlds
from tests.api import (
    scheduler_client,
    test_bulk,
    test_calendars,
    test_dead_letters,
    test_manual,
    test_operator,
    test_registrations,
)
from tests.api.conftest import open_office, settle
from tests.api.walk import calls_of_document
from tests.deploy.role_calls import ENTRIES, Needed, Recorder, play
from tests.deploy.statements import as_list, logical_name
from tests.flows import (
    test_after_completion,
    test_ages,
    test_asked,
    test_comparison,
    test_executing,
    test_export,
    test_failures_in_a_row,
    test_large_payloads,
    test_long_waits,
    test_outcomes,
    test_overlap,
    test_overlap_ends,
    test_registering,
    test_removal_at_once,
    test_throttling,
    test_ticks,
)
from tests.flows import (
    test_manual as manual_flows,
)
from tests.notices import test_not_running, test_rounds
from tests.planning import test_packs, test_quarantine, test_shares
from tests.platform import test_removal
from tests.worlds import ARN, World, at, job, open_world

ROLES_YML = Path(__file__).resolve().parents[2] / "deploy" / "roles.yml"
_OF_POLLERS = {
    *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
}


class Grant(NamedTuple):
    """An action that a role allows on a resource; with `leading_keys` only on these partitions."""

    function: str
    action: str
    resource: str
    leading_keys: tuple[str, ...] = ()

    def allows(self, needed: Needed) -> bool:
        return self[:3] == needed[:3] and (
            not self.leading_keys or any(fnmatchcase(needed.pk, pattern) for pattern in self.leading_keys)
        )

    @property
    def is_used_elsewhere(self) -> bool:
        """Whether no flow can use it."""
        return (
            self.action.startswith("logs:")  # Lambda itself
            or self.action in _OF_POLLERS  # Lambda's pollers, under the function's role
            or self.resource == "targets"  # each kind of target has its own tests
            or ":function:canary-" in self.resource
            # planned_until is made where there is none, as in a table that was lost.
            or self == Grant("Outcomes", "dynamodb:PutItem", "DueTable")
        )


def grants() -> Iterator[Grant]:
    resources = yaml.safe_load(ROLES_YML.read_text())["Resources"]
    for function in {function for function, _, _ in ENTRIES}:
        policy, *_ = resources[f"{function}Role"]["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                leading = tuple(
                    pattern
                    for operator in ("ForAllValues:StringEquals", "ForAllValues:StringLike")
                    for pattern in statement.get("Condition", {})
                    .get(operator, {})
                    .get("dynamodb:LeadingKeys", ())
                )
                for resource in as_list(statement["Resource"]):
                    for action in as_list(statement["Action"]):
                        yield Grant(function, action, _named(resource), leading)


def _named(resource: dict[str, Any] | str) -> str:
    if name := logical_name(resource):
        return name
    match resource:
        case {"Fn::Sub": text}:
            if ":sqs:" in text:
                return str(text.rpartition("-${sls:stage}-")[2])
            return "signing-masters" if text.endswith("/signing-masters") else str(text)
    return "targets"


@pytest.fixture(scope="module")
def needed() -> set[Needed]:
    recorder = Recorder()
    with recorder.installed():
        play(
            test_after_completion,
            test_ages,
            test_asked,
            test_executing,
            test_failures_in_a_row,
            test_large_payloads,
            test_long_waits,
            manual_flows,
        )
        play(test_outcomes, test_overlap, test_overlap_ends, test_registering, test_throttling, test_ticks)
        play(test_comparison)
        play(test_packs, test_quarantine, test_removal, test_shares)
        play(test_bulk, test_calendars, test_dead_letters, test_manual, test_operator)
        play(test_removal_at_once, test_rounds)
        play(test_registrations)
        for flow in (
            aws_clients,
            exported_days,
            removed_history,
            every_route,
            two_tenants_in_a_batch,
            an_outage,
            an_outage_for_planners,
            an_address_switched_off,
        ):
            with open_world() as world:
                flow(world)
    return recorder.needed


@pytest.mark.parametrize("function", ["Notifier", "Exporter"])
def test_who_talks_to_others_addresses_can_write_no_job(function: str) -> None:
    """No item of a tenant's jobs, and none of another kind that stands beside them in its partition."""
    of_jobs = {
        row.partition("alice", *"abc"[: row.pk.count("{") - 1])
        for row in vars(keys).values()
        if isinstance(row, keys.Row) and row.table.startswith("jobs") and row.pk.startswith("{tenant}")
    }
    forbidden = of_jobs - {keys.notices("alice"), keys.exports("alice")} | {keys.job("alice", "j")["pk"]}
    assert {"alice", "alice#a#text"} <= forbidden
    writes = [
        Needed(function, action, "JobsTable", pk)
        for action in ("dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:UpdateItem")
        for pk in forbidden
    ]
    assert [needed for needed in writes for grant in grants() if grant.allows(needed)] == []
    own = keys.notices("alice") if function == "Notifier" else keys.exports("alice")
    assert any(grant.allows(Needed(function, "dynamodb:PutItem", "JobsTable", own)) for grant in grants())


def exported_days(world: World) -> None:
    """Two days are written, and one of them again; their windows are large ones, with chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "MAX_INLINE", 0)
        test_export.test_a_day_is_exported_two_hours_after_its_end_and_again_when_it_has_changed(
            test_export.of_world(world)
        )


def removed_history(world: World) -> None:
    """A tenant is deleted, and its files go."""
    test_export.test_a_deleted_tenants_history_goes_and_nobody_elses(test_export.of_world(world))


def aws_clients(world: World) -> None:
    """Schedules and groups by EventBridge Scheduler's API; a tick deletes what is left of a large group."""
    with pytest.MonkeyPatch.context() as patch:
        open_office(world, patch)
        scheduler_client.sign_at(world.clock, patch)
        client = scheduler_client.scheduler_client(
            *scheduler_client.new_pair("alice", "write", world.clock.now())
        )
        client.create_schedule_group(Name="billing")
        for number in range(30):
            client.create_schedule(
                Name=f"n{number}",
                GroupName="billing",
                ScheduleExpression="rate(1 hour)",
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={"Arn": ARN, "RoleArn": "arn:aws:iam::123456789012:role/r"},
            )
        client.delete_schedule_group(Name="billing")
        groups = removal.removal_of_groups(GroupDeletions(world.store), world.clock)
        assert world.round("groups", groups.steps).counts["finished"] == 1
        client.delete_schedule_group(Name=_small_group(client))
        assert len(world.planning.sent) == 1


def _small_group(client: Any) -> str:
    client.create_schedule_group(Name="small")
    return "small"


def every_route(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        office = open_office(world, patch)
        settle(office, office.alice)
        patch.setattr("common.history.job_directory.RENEWED_AFTER", 0)
        for n in range(2):  # the second one replaces what the first one has made
            office.alice("PUT", "/v1/jobs/another", job(cron=f"{n} 3 * * *"))
            office.world.clock.sleep(1)
            assert office.alice("GET", "/v1/jobs?q=another").json["matched"] == 1
        order = ("GET", "POST", "PATCH", "PUT", "DELETE")
        for call in sorted(calls_of_document(), key=lambda call: order.index(call.method)):
            caller = office.operator if call.role == "operator" else office.alice_admin
            assert caller(call.method, call.url, call.body).status < 500, call


def two_tenants_in_a_batch(world: World) -> None:
    """Their rules are read together."""
    for tenant in ("alice", "bob"):
        world.registry.create(tenant, "once", job(at="2026-11-21T03:15:00Z"))
    world.clock.move_to(at("2026-11-21T03:15:00Z"))
    messages = [message for _ in range(2) if (message := world.sqs.receive())]
    reports, _ = worlds.execute_batch(
        replace(world.executor, tenants=KnownTenants(world.table("tenants"))), messages, world.redelivery
    )
    assert {report.result for report in reports} == {"succeeded"}


def an_address_switched_off(world: World) -> None:
    """Another subscription is told."""
    with test_not_running.telling_world() as telling:
        test_not_running.test_an_address_that_is_switched_off_is_told_to_the_other_and_audited(telling)


def an_outage(world: World) -> None:
    """Of an hour, with all that a window can hold: skipped and missed times, a calendar, far and bad entries."""
    with_much_in_a_window(world)
    world.scheduler.tick()
    assert "skipped(cancelled)" in world.statuses("alice", "skipped")


def an_outage_for_planners(world: World) -> None:
    """The same for planners, one for each shard."""
    with_much_in_a_window(world)
    fleet = test_shares.Fleet(world, share_entries=1)
    fleet.tick()
    assert len(fleet.queue.bodies) > 1
    fleet.plan_all()


def with_much_in_a_window(world: World) -> None:
    world.table("jobs").put({**keys.calendar("alice", "c"), "dates": "2026-01-01"})
    world.registry.create("alice", "calendared", job(cron="25 * * * *", exclude={"calendars": ["c"]}))
    world.registry.create("alice", "far", job(cron="10 4 * * *", jitter_s=3_600))
    world.registry.create("alice", "missed", job(cron="24,26 3 * * *"))
    world.registry.create("alice", "skipped", job(cron="22-24 3 * * *", timezone="Iceland"))
    world.manual.skip_next("alice", "skipped", 2, "")
    bad = world.store.get("alice", "calendared")
    world.table("due").put({**keys.due_entry(bad.group, bad.shard, "alice", "bad"), "entry": "[9]"})
    world.run_until("2026-11-21T04:08:00Z")


def test_a_role_grants_each_call_of_its_function(needed: set[Needed]) -> None:
    granted = list(grants())
    assert [need for need in sorted(needed) if not any(grant.allows(need) for grant in granted)] == []


def test_a_role_grants_no_call_that_its_function_does_not_make(needed: set[Needed]) -> None:
    unused = [grant for grant in grants() if not any(grant.allows(need) for need in needed)]
    assert sorted(grant for grant in unused if not grant.is_used_elsewhere) == []
