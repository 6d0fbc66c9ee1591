"""Groups of schedules, read and made through EventBridge's API here with the key of Minute8's own command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

from minute8.client import Client, Minute8Problem
from minute8.eventbridge.names import DEFAULT_GROUP

_GROUPS: Final = "/eventbridge/schedule-groups"


def stored_groups(client: Client) -> Iterator[tuple[str, dict[str, str]]]:
    """All groups with their tags; the default group only if it has tags. Raises Minute8Problem, Unreachable."""
    token: str | None = None
    while True:
        page = client.call("GET", _GROUPS, query={"NextToken": token, "MaxResults": "100"})
        for group in page["ScheduleGroups"]:
            tags = _tags(client, group["Arn"])
            if tags or group["Name"] != DEFAULT_GROUP:
                yield group["Name"], tags
        if not (token := page.get("NextToken")):
            return


def tags_of_group(client: Client, name: str) -> dict[str, str] | None:
    """The tags of a group; None if there is no such group. Raises Minute8Problem, Unreachable."""
    arn = _arn(client, name)
    return _tags(client, arn) if arn else None


def set_group(client: Client, name: str, tags: Mapping[str, str]) -> None:
    """Make the group if it is missing, and add the tags. Raises Minute8Problem, Unreachable."""
    written = [{"Key": key, "Value": value} for key, value in tags.items()]
    arn = _arn(client, name)
    if arn is None:
        client.call("POST", f"{_GROUPS}/{quote(name, safe='')}", {"Tags": written})
    elif written:
        client.call("POST", f"/eventbridge/tags/{quote(arn, safe='')}", {"Tags": written})


def _arn(client: Client, name: str) -> str | None:
    try:
        return str(client.call("GET", f"{_GROUPS}/{quote(name, safe='')}")["Arn"])
    except Minute8Problem as error:
        if error.status == 404:
            return None
        raise


def lacks_tags(before: Mapping[str, str], tags: Mapping[str, str]) -> bool:
    """Whether an import adds or changes a tag. It removes none."""
    return any(before.get(key) != value for key, value in tags.items())


def _tags(client: Client, arn: str) -> dict[str, str]:
    answer = client.call("GET", f"/eventbridge/tags/{quote(arn, safe='')}")
    return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}
