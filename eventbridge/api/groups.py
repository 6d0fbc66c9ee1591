"""Schedule groups and their tags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.http.paging import read_cursor, write_cursor
from api.services import Services
from common.errors import InvalidInput, NotFound
from eventbridge.api.operation import Asked, Operation
from eventbridge.group_deletion import GroupDeletions
from eventbridge.groups import GroupRequest, ScheduleGroup, ScheduleGroups
from eventbridge.shapes import (
    CLIENT_TOKEN,
    GROUP,
    MAX_RESULTS,
    MAX_TAGS,
    NAME,
    NEXT_TOKEN,
    TAG_KEY,
    TAGGING,
    Listed,
    check,
)

_PAGE = 100
_LIST = "eventbridge-groups"


def create(services: Services, asked: Asked) -> Mapping[str, Any]:
    """CreateScheduleGroup"""
    check(NAME, asked.label, "Name")
    check(GROUP, asked.body)
    request = _request(asked, asked.body.get("ClientToken"))
    tags = _tags(asked.body.get("Tags", []))
    audited = services.store.audited
    _stored(services).create(asked.tenant, asked.label, tags, asked.now, audited, request)
    return {"ScheduleGroupArn": asked.place.group_arn(asked.label)}


def get(services: Services, asked: Asked) -> Mapping[str, Any]:
    """GetScheduleGroup"""
    check(NAME, asked.label, "Name")
    return _view(services, asked, _stored(services).existing(asked.tenant, asked.label))


def delete(services: Services, asked: Asked) -> Mapping[str, Any]:
    """DeleteScheduleGroup"""
    check(NAME, asked.label, "Name")
    deletions = GroupDeletions(services.store)
    request = _request(asked, asked.query.get("clientToken"))
    if deletions.begin(asked.tenant, asked.label, asked.now, request):
        # A small group is gone at once; the ticks remove what is left of a large one.
        deletions.move_on(asked.tenant, asked.label, asked.now)
    return {}


def list_page(services: Services, asked: Asked) -> Mapping[str, Any]:
    """ListScheduleGroups"""
    limit, prefix = asked.query.get("MaxResults", _PAGE), asked.query.get("NamePrefix", "")
    after = read_cursor(asked.tenant, f"{_LIST}{prefix}", asked.query.get("NextToken"))
    found = _stored(services).after(asked.tenant, prefix, after, limit + 1)
    page = found[:limit]
    answer: dict[str, Any] = {"ScheduleGroups": [_view(services, asked, one) for one in page]}
    if len(found) > limit:
        answer["NextToken"] = write_cursor(asked.tenant, f"{_LIST}{prefix}", page[-1].name)
    return answer


def tag(services: Services, asked: Asked) -> Mapping[str, Any]:
    """TagResource"""
    check(TAGGING, asked.body)
    return _tagged(services, asked, _tags(asked.body["Tags"]), ())


def untag(services: Services, asked: Asked) -> Mapping[str, Any]:
    """UntagResource"""
    fewer = asked.query.get("TagKeys")
    if fewer is None:
        raise InvalidInput("TagKeys", "is missing", accepted="the keys of the tags to remove")
    return _tagged(services, asked, {}, fewer)


def list_tags(services: Services, asked: Asked) -> Mapping[str, Any]:
    """ListTagsForResource"""
    tags = _stored(services).existing(asked.tenant, _group(asked)).tags
    return {"Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}


def _tagged(
    services: Services, asked: Asked, more: Mapping[str, str], fewer: Sequence[str]
) -> Mapping[str, Any]:
    request, audited = _request(asked, None), services.store.audited
    _stored(services).tag(asked.tenant, _group(asked), more, fewer, asked.now, audited, request)
    return {}


def _request(asked: Asked, client_token: str | None) -> GroupRequest:
    return GroupRequest(asked.tenant, asked.token(client_token), client_token is not None)


def _stored(services: Services) -> ScheduleGroups:
    return ScheduleGroups(services.store.jobs)


def _group(asked: Asked) -> str:
    """The name of the group with the path's ARN. Raises NotFound."""
    name = asked.place.group_of(asked.label)
    if name is None:
        raise NotFound("schedule group", asked.label)
    return name


def _tags(given: list[Mapping[str, str]]) -> dict[str, str]:
    tags = {one["Key"]: one["Value"] for one in given}
    if len(tags) < len(given):
        raise InvalidInput(
            "Tags", "names a key twice", value=[one["Key"] for one in given], accepted="each key once"
        )
    return tags


def _view(services: Services, asked: Asked, group: ScheduleGroup) -> dict[str, Any]:
    # The default group is as old as its tenant.
    created_at = group.created_at or services.tenants.get(asked.tenant).created_at
    return {
        "Arn": asked.place.group_arn(group.name),
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
        "DELETE", "tags", "UntagResource", "write", untag, query={"TagKeys": Listed(TAG_KEY, MAX_TAGS)}
    ),
    Operation("GET", "tags", "ListTagsForResource", "read", list_tags),
)
