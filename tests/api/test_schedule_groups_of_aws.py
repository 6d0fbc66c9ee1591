"""EventBridge Scheduler's API, called by boto3: lists and groups of schedules."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from common.planning.queue import REMOVAL_REQUEST
from common.storage import keys
from common.storage.table import Query
from minute8.eventbridge import group_deletion
from minute8.eventbridge.group_deletion import GroupDeletions
from minute8.eventbridge.groups import GroupRequest
from scheduler.removal import removal_of_groups
from tests.api.aws_schedules import ROLE, Aws, refusal, schedule
from tests.api.calls import Office
from tests.worlds import ARN, World

KNOWN_FOR_S = 1_800
MAX_AT_ONCE = 14
MAX_TRANSACTION_BYTES = 4_000_000


def test_lists_are_filtered_and_paged(office: Office, aws: Aws) -> None:
    client = aws()
    for group in ("billing", "b", "eb"):
        client.create_schedule_group(Name=group)
    office.alice("PUT", "/v1/jobs/own", {"schedule": {"every": 60}, "target": {"kind": "lambda", "arn": ARN}})
    names = [
        *(("default", name) for name in ("a", "b", "ab", "-odd", "a..b", "x" * 64)),
        *(("billing", name) for name in ("a", "b", ".a", "ab", "x" * 64)),
        *(("b", name) for name in ("illing", "a.b")),
        ("eb", "c"),
    ]
    for group, name in names:
        state = "DISABLED" if name == "ab" else "ENABLED"
        client.create_schedule(**schedule(Name=name, GroupName=group, State=state))

    def listed(**filters: Any) -> list[tuple[str, str]]:
        pages = client.get_paginator("list_schedules").paginate(**filters, PaginationConfig={"PageSize": 2})
        listed_names = [(entry["GroupName"], entry["Name"]) for page in pages for entry in page["Schedules"]]
        assert len(listed_names) == len(set(listed_names))
        return sorted(listed_names)

    assert listed() == sorted(names)
    for group in ("default", "billing", "b", "eb"):
        assert listed(GroupName=group) == sorted(entry for entry in names if entry[0] == group)
        for prefix in ("a", "ab", ".", "-", "x", "e"):
            expected = [entry for entry in names if entry[0] == group and entry[1].startswith(prefix)]
            assert listed(GroupName=group, NamePrefix=prefix) == sorted(expected)
    assert listed(State="DISABLED") == [("billing", "ab"), ("default", "ab")]
    entry = client.list_schedules(NamePrefix="ab", GroupName="billing")["Schedules"][0]
    assert entry == {
        "Arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/billing/ab",
        "CreationDate": entry["CreationDate"],
        "GroupName": "billing",
        "LastModificationDate": entry["CreationDate"],
        "Name": "ab",
        "State": "DISABLED",
        "Target": {"Arn": ARN},
    }
    assert refusal(client.list_schedules, GroupName="nothing")[0] == 404
    assert refusal(client.list_schedules, NextToken="x")[:2] == (400, "ValidationException")


def test_a_group_of_schedules_with_the_longest_inputs_goes(office: Office, aws: Aws) -> None:
    """Each has an Input beside its payload: 14 have more than 4 MB, which no transaction takes."""
    client = aws()
    client.create_schedule_group(Name="billing")
    message = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders", "MessageBody": "x"}
    message["MessageBody"] *= 125_000
    text = json.dumps(message) + " " * 128_000
    universal = {"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage", "RoleArn": ROLE, "Input": text}
    names = [f"n{n}" for n in range(MAX_AT_ONCE)]
    for name in names:
        client.create_schedule(**schedule(Name=name, GroupName="billing", Target=universal))
    texts = [size for name in names for size in _text_sizes(office.world, f"billing..{name}")]
    assert sum(texts) > MAX_TRANSACTION_BYTES
    client.delete_schedule_group(Name="billing")
    assert refusal(client.get_schedule_group, Name="billing")[0] == 404
    assert list(office.world.store.list_jobs("alice")) == []


def _text_sizes(world: World, job_id: str) -> list[int]:
    items = world.table("jobs").query(Query(keys.texts_of_job("alice", job_id)))
    return [len(item["text"]) for item in items]


def test_a_group_goes_with_its_schedules(office: Office, aws: Aws) -> None:
    client = aws()
    assert refusal(client.create_schedule, **schedule(GroupName="billing"))[:2] == (
        404,
        "ResourceNotFoundException",
    )
    client.create_schedule_group(Name="billing")
    for n in range(60):
        client.create_schedule(**schedule(Name=f"n{n}", GroupName="billing"))
    client.create_schedule(**schedule(Name="billing..n1"[:7]))
    client.delete_schedule_group(Name="billing")
    assert client.get_schedule_group(Name="billing")["State"] == "DELETING"
    # A planner goes on at once.
    assert office.world.planning.sent == [
        {"QueueUrl": "planning", "MessageBody": REMOVAL_REQUEST, "DelaySeconds": 0}
    ]
    assert refusal(client.create_schedule, **schedule(GroupName="billing"))[:2] == (409, "ConflictException")
    assert 0 < len(client.list_schedules(GroupName="billing")["Schedules"]) < 60
    removal = removal_of_groups(GroupDeletions(office.world.store), office.world.clock)
    done = office.world.round("groups", removal.steps)
    assert (done.counts["finished"], done.problems) == (1, [])
    assert refusal(client.get_schedule_group, Name="billing")[0] == 404
    assert [entry["Name"] for entry in client.list_schedules()["Schedules"]] == ["billing"]
    assert office.alice("GET", "/v1/tenant").json["usage"]["jobs"] == 1
    assert refusal(client.delete_schedule_group, Name="default")[:2] == (400, "ValidationException")


def test_a_deletion_of_which_nobody_knows_who_began_it_ends(office: Office, aws: Aws) -> None:
    """The group's item lost the token: no step could name what it deletes, and the group stayed for ever."""
    client, world = aws(), office.world
    client.create_schedule_group(Name="billing")
    client.create_schedule(**schedule(GroupName="billing", Name="a"))
    key = keys.schedule_group("alice", "billing")
    item = {**(world.table("jobs").get(key) or {}), "state": "DELETING"}
    world.table("jobs").put({name: value for name, value in item.items() if name != "deleted_by"})
    world.table("tenants").put(
        {**keys.group_deletion("alice", "billing"), "tenant": "alice", "name": "billing"}
    )
    done = world.round("groups", removal_of_groups(GroupDeletions(world.store), world.clock).steps)
    assert (done.counts["finished"], done.problems) == (1, [])
    assert refusal(client.get_schedule_group, Name="billing")[0] == 404
    assert refusal(client.get_schedule, Name="a", GroupName="billing")[0] == 404


def test_a_late_step_of_a_deletion_spares_a_new_group(office: Office, aws: Aws) -> None:
    """A tick can read that a group is being deleted just before that is done, and the group made again."""
    client = aws()
    for _ in range(2):
        client.create_schedule_group(Name="billing")
        client.create_schedule(**schedule(GroupName="billing", Name="a"))
        deletions = GroupDeletions(office.world.store)
        assert deletions.move_on("alice", "billing", office.world.clock.now()) == 0
        assert client.get_schedule(Name="a", GroupName="billing")["State"] == "ENABLED"
        client.delete_schedule_group(Name="billing")
    assert deletions.move_on("alice", "billing", office.world.clock.now()) == 0


def test_a_second_deletion_is_known_while_the_first_is_under_way(
    office: Office, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_deletion, "STEP", 1)
    client, deletions = aws(), GroupDeletions(office.world.store)
    client.create_schedule_group(Name="billing")
    for name in ("a", "b", "c"):
        client.create_schedule(**schedule(GroupName="billing", Name=name))
    client.delete_schedule_group(Name="billing")
    client.delete_schedule_group(Name="billing", ClientToken="second")
    while deletions.move_on("alice", "billing", office.world.clock.now()):
        pass
    client.create_schedule_group(Name="billing")
    client.create_schedule(**schedule(GroupName="billing", Name="a"))
    status, code, message = refusal(client.delete_schedule_group, Name="billing", ClientToken="second")
    assert (status, code) == (409, "ConflictException") and "made again since" in message
    assert client.get_schedule(Name="a", GroupName="billing")["State"] == "ENABLED"


@pytest.mark.parametrize("is_deleted_again", [False, True])
def test_a_step_of_a_deletion_meets_a_new_group_at_each_of_its_calls(
    office: Office, aws: Aws, is_deleted_again: bool
) -> None:
    """Another step ends the deletion, and the tenant makes the group and its schedules again, within a second."""
    world, client = office.world, aws()
    deletions = GroupDeletions(world.store)

    def furnish() -> None:
        client.create_schedule_group(Name="billing")
        for name in ("a", "b"):
            client.create_schedule(**schedule(GroupName="billing", Name=name))

    def begin() -> None:
        request = GroupRequest("alice", secrets.token_hex(8))
        assert deletions.begin("alice", "billing", world.clock.now(), request)

    def step() -> None:
        deletions.move_on("alice", "billing", world.clock.now())

    def meanwhile() -> None:
        step()
        furnish()
        if is_deleted_again:
            begin()

    def listed() -> list[str]:
        return [item["job_id"] for item in office.alice("GET", "/v1/jobs").json["jobs"]]

    furnish()
    begin()
    for nth in count(1):
        if not _makes_a_call(world, nth, step, meanwhile):
            break
        if is_deleted_again:
            assert not listed() or client.get_schedule_group(Name="billing")["State"] == "DELETING", nth
            step()
            assert not listed(), nth
            furnish()
        assert client.get_schedule_group(Name="billing")["State"] == "ACTIVE", nth
        assert listed() == ["billing..a", "billing..b"], nth
        begin()
    assert nth > 8


def _makes_a_call(world: World, nth: int, step: Callable[[], None], meanwhile: Callable[[], None]) -> bool:
    """Whether a step makes an nth call. `meanwhile` happens before it."""
    calls = 0

    def before(call: str) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            world.dynamodb.before = lambda call: None
            meanwhile()

    world.dynamodb.before = before
    step()
    world.dynamodb.before = lambda call: None
    return calls >= nth


def test_a_tombstone_does_not_keep_the_request(office: Office, aws: Aws) -> None:
    client = aws()
    client.create_schedule_group(Name="billing")
    for name in ("a", "b", "c"):
        client.create_schedule(**schedule(GroupName="billing", Name=name, ClientToken=f"first-{name}"))
    client.delete_schedule(GroupName="billing", Name="a")
    office.alice("DELETE", "/v1/jobs/billing..b")
    client.delete_schedule_group(Name="billing")
    for name in ("a", "b", "c"):
        assert office.world.table("jobs").get(keys.job("alice", f"billing..{name}")) is None
        item = office.world.table("jobs").get(keys.former_job("alice", f"billing..{name}"))
        assert item
        assert set(item["imported_from"]) == {"kind", "known"}
    client.create_schedule_group(Name="billing")
    for name in ("a", "b", "c"):
        known = schedule(GroupName="billing", Name=name, ClientToken=f"first-{name}")
        assert refusal(client.create_schedule, **known)[:2] == (409, "ConflictException")


def test_a_token_whose_group_is_gone_is_refused(office: Office, aws: Aws) -> None:
    client = aws()
    for _ in range(2):
        client.create_schedule_group(Name="billing", ClientToken="one")
    for _ in range(2):
        client.delete_schedule_group(Name="billing", ClientToken="two")
    assert refusal(client.delete_schedule_group, Name="billing", ClientToken="three")[0] == 404
    status, code, message = refusal(client.create_schedule_group, Name="billing", ClientToken="one")
    assert (status, code) == (409, "ConflictException") and "another ClientToken" in message
    office.world.clock.sleep(KNOWN_FOR_S)
    client.create_schedule_group(Name="billing", ClientToken="one")


def test_tags_that_change_nothing_are_not_audited(office: Office, aws: Aws) -> None:
    client, tags = aws(), [{"Key": "k", "Value": "v"}]
    for name in ("billing", "default"):
        arn = f"arn:aws:scheduler:us-east-1:123456789012:schedule-group/{name}"
        if name != "default":
            client.create_schedule_group(Name=name)
        for _ in range(2):
            client.tag_resource(ResourceArn=arn, Tags=tags)
            client.untag_resource(ResourceArn=arn, TagKeys=["other"])
        assert client.list_tags_for_resource(ResourceArn=arn)["Tags"] == tags
    entries = office.alice_admin("GET", "/v1/audit?action=group.tagged").json["entries"]
    assert sorted(entry["subject"] for entry in entries) == ["billing", "default"]
