"""EventBridge Scheduler's API, called by boto3: lists and groups of schedules."""

from __future__ import annotations

from typing import Any

from common.jobs.group_deletion import GroupDeletions
from scheduler.removal import remove_groups
from tests.api.aws_schedules import Aws, refusal, schedule
from tests.api.calls import Office
from tests.worlds import ARN


def test_lists_are_filtered_and_paged(office: Office, aws: Aws) -> None:
    client = aws()
    for group in ("billing", "b", "eb"):
        client.create_schedule_group(Name=group)
    office.alice("PUT", "/v1/jobs/own", {"schedule": {"every": 60}, "target": {"kind": "lambda", "arn": ARN}})
    wanted = [
        *(("default", name) for name in ("a", "b", "ab", "-odd", "a..b", "x" * 64)),
        *(("billing", name) for name in ("a", "b", ".a", "ab", "x" * 64)),
        *(("b", name) for name in ("illing", "a.b")),
        ("eb", "c"),
    ]
    for group, name in wanted:
        state = "DISABLED" if name == "ab" else "ENABLED"
        client.create_schedule(**schedule(Name=name, GroupName=group, State=state))

    def listed(**filters: Any) -> list[tuple[str, str]]:
        pages = client.get_paginator("list_schedules").paginate(**filters, PaginationConfig={"PageSize": 2})
        found = [(one["GroupName"], one["Name"]) for page in pages for one in page["Schedules"]]
        assert len(found) == len(set(found))
        return sorted(found)

    assert listed() == sorted(wanted)
    for group in ("default", "billing", "b", "eb"):
        assert listed(GroupName=group) == sorted(one for one in wanted if one[0] == group)
        for prefix in ("a", "ab", ".", "-", "x", "e"):
            expected = [one for one in wanted if one[0] == group and one[1].startswith(prefix)]
            assert listed(GroupName=group, NamePrefix=prefix) == sorted(expected)
    assert listed(State="DISABLED") == [("billing", "ab"), ("default", "ab")]
    one = client.list_schedules(NamePrefix="ab", GroupName="billing")["Schedules"][0]
    assert one == {
        "Arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/billing/ab",
        "CreationDate": one["CreationDate"],
        "GroupName": "billing",
        "LastModificationDate": one["CreationDate"],
        "Name": "ab",
        "State": "DISABLED",
        "Target": {"Arn": ARN},
    }
    assert refusal(client.list_schedules, GroupName="nothing")[0] == 404
    assert refusal(client.list_schedules, NextToken="x")[:2] == (400, "ValidationException")


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
    assert refusal(client.create_schedule, **schedule(GroupName="billing"))[:2] == (409, "ConflictException")
    assert 0 < len(client.list_schedules(GroupName="billing")["Schedules"]) < 60
    removed = remove_groups(GroupDeletions(office.world.store), office.world.clock, office.world.clock.now())
    assert (removed.finished, removed.problems) == (1, [])
    assert refusal(client.get_schedule_group, Name="billing")[0] == 404
    assert [one["Name"] for one in client.list_schedules()["Schedules"]] == ["billing"]
    assert office.alice("GET", "/v1/tenant").json["usage"]["jobs"] == 1
    assert refusal(client.delete_schedule_group, Name="default")[:2] == (400, "ValidationException")


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
