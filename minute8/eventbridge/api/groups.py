"""Schedule groups and their tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import InvalidInput, NotFound
from minute8.api.http.paging import write_cursor
from minute8.api.services import Services
from minute8.eventbridge.api.operation import Operation, SchedulerRequest
from minute8.eventbridge.group_deletion import STEP, GroupDeletions
from minute8.eventbridge.groups import GroupRequest, ScheduleGroup, ScheduleGroups
from minute8.eventbridge.shapes import (
    CLIENT_TOKEN,
    GROUP,
    GROUP_ARN,
    MAX_RESULTS,
    MAX_TAGS,
    NAME,
    NEXT_TOKEN,
    TAG_KEY,
    TAGGING,
    ListOf,
    check,
    check_name,
)

_PAGE = 100
_LIST = "eventbridge-groups"


def create(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """CreateScheduleGroup"""
    check_name(request.label)
    check(GROUP, request.body)
    group_request = _group_request(request, request.body.get("ClientToken"))
    tags = _tags(request.body.get("Tags", []))
    audited = services.store.audited
    _stored(services).create(request.tenant, request.label, tags, request.now, audited, group_request)
    return {"ScheduleGroupArn": request.account.group_arn(request.label)}


def get(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """GetScheduleGroup"""
    check_name(request.label)
    return _view(services, request, _stored(services).existing(request.tenant, request.label))


def delete(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """DeleteScheduleGroup"""
    check_name(request.label)
    deletions = GroupDeletions(services.store)
    group_request = _group_request(request, request.query.get("clientToken"))
    if (
        deletions.begin(request.tenant, request.label, request.now, group_request)
        # A small group is deleted at once; a planner deletes the rest of a large one.
        and deletions.move_on(request.tenant, request.label, request.now) == STEP
        and services.removals
    ):
        services.removals.ask()
    return {}


def list_page(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """ListScheduleGroups"""
    limit, prefix = request.query.get("MaxResults", _PAGE), request.query.get("NamePrefix", "")
    after = request.after(f"{_LIST}{prefix}")
    groups = _stored(services).after(request.tenant, prefix, after, limit + 1)
    page = groups[:limit]
    answer: dict[str, Any] = {"ScheduleGroups": [_view(services, request, group) for group in page]}
    if len(groups) > limit:
        answer["NextToken"] = write_cursor(request.tenant, f"{_LIST}{prefix}", page[-1].name)
    return answer


def tag(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """TagResource"""
    check(TAGGING, request.body)
    return _tagged(services, request, _tags(request.body["Tags"]), ())


def untag(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """UntagResource"""
    removed_keys = request.query.get("TagKeys")
    if removed_keys is None:
        raise InvalidInput("TagKeys", "is missing", accepted="the keys of the tags to remove")
    return _tagged(services, request, {}, removed_keys)


def list_tags(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """ListTagsForResource"""
    tags = _stored(services).existing(request.tenant, _group(request)).tags
    return {"Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}


def _tagged(
    services: Services, request: SchedulerRequest, set_tags: Mapping[str, str], removed_keys: Sequence[str]
) -> Mapping[str, Any]:
    group_request, audited = _group_request(request, None), services.store.audited
    _stored(services).tag(group_request, _group(request), set_tags, removed_keys, request.now, audited)
    return {}


def _group_request(request: SchedulerRequest, client_token: str | None) -> GroupRequest:
    return GroupRequest(request.tenant, request.token(client_token), client_token is not None)


def _stored(services: Services) -> ScheduleGroups:
    return ScheduleGroups(services.store.jobs)


def _group(request: SchedulerRequest) -> str:
    """The name of the group with the path's ARN. Raises InvalidInput, NotFound."""
    check(GROUP_ARN, request.label, "ResourceArn")
    name = request.account.group_of(request.label)
    if name is None:
        raise NotFound("schedule group", request.label)
    return name


def _tags(tag_list: list[Mapping[str, str]]) -> dict[str, str]:
    tags = {tag["Key"]: tag["Value"] for tag in tag_list}
    if len(tags) < len(tag_list):
        raise InvalidInput(
            "Tags", "names a key twice", value=[tag["Key"] for tag in tag_list], accepted="each key once"
        )
    return tags


def _view(services: Services, request: SchedulerRequest, group: ScheduleGroup) -> dict[str, Any]:
    # The default group is as old as its tenant.
    created_at = group.created_at or services.tenants.get(request.tenant).created_at
    return {
        "Arn": request.account.group_arn(group.name),
        "CreationDate": created_at,
        "LastModificationDate": group.updated_at or created_at,
        "Name": group.name,
        "State": group.state,
    }


OPERATIONS = (
    Operation("POST", "schedule-groups", "CreateScheduleGroup", "write", create, takes_body=True),
    Operation("GET", "schedule-groups", "GetScheduleGroup", "read", get),
    Operation(
        "DELETE",
        "schedule-groups",
        "DeleteScheduleGroup",
        "write",
        delete,
        query={"clientToken": CLIENT_TOKEN},
    ),
    Operation(
        "GET",
        "schedule-groups",
        "ListScheduleGroups",
        "read",
        list_page,
        has_label=False,
        query={"NamePrefix": NAME, "MaxResults": MAX_RESULTS, "NextToken": NEXT_TOKEN},
    ),
    Operation("POST", "tags", "TagResource", "write", tag, takes_body=True),
    Operation(
        "DELETE", "tags", "UntagResource", "write", untag, query={"TagKeys": ListOf(TAG_KEY, MAX_TAGS)}
    ),
    Operation("GET", "tags", "ListTagsForResource", "read", list_tags),
)
