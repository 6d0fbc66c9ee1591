"""What an AWS account has of EventBridge: groups with their tags, schedules, and scheduled rules.

A copy in a file makes it resumable: what is in the copy and did not change is not read again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress

from common.storage.aws import new_session

# Before the name of a group, in place of a file. Without a name: the whole account.
PREFIX: Final = "eventbridge:"
# AWS accepts some tens of requests a second per account; botocore slows down if AWS throttles.
_THREADS: Final = 8

Described = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Account:
    """botocore's clients of one account and region."""

    scheduler: Any
    events: Any

    def read(self, group: str, copy: Path | None = None) -> str:
        """Groups, schedules and rules as a list of JSON, with a progress bar on a terminal. A group alone has no rules.

        Raises botocore's errors: if an account cannot be read completely, nothing is imported.
        """
        resources = [*self._groups(group), *self._schedules(group, copy)]
        if not group:
            resources += self._rules()
        return json.dumps(resources, default=_instant)

    def _groups(self, group: str) -> Iterator[Described]:
        """As CreateScheduleGroup takes them. AWS makes the default group itself."""
        pages = self.scheduler.get_paginator("list_schedule_groups").paginate()
        for listed in (each for page in pages for each in page["ScheduleGroups"]):
            if listed["Name"] != "default" and group in ("", listed["Name"]):
                tags = self.scheduler.list_tags_for_resource(ResourceArn=listed["Arn"])["Tags"]
                yield {"Name": listed["Name"], "Tags": tags}

    def _schedules(self, group: str, copy: Path | None) -> list[Described]:
        narrowed = {"GroupName": group} if group else {}
        pages = self.scheduler.get_paginator("list_schedules").paginate(**narrowed)
        if copy:  # what targets get may be secret
            copy.touch(mode=0o600)
        known = dict(_copied(copy)) if copy else {}

        def get(listed: Mapping[str, Any]) -> Described:
            copied = known.get(listed["Arn"])
            if copied and copied.get("LastModificationDate") == _instant(listed["LastModificationDate"]):
                return copied
            return self._schedule(listed["GroupName"], listed["Name"])

        names = [schedule for page in pages for schedule in page["Schedules"]]
        resources: list[Described] = []
        with (
            _progress() as progress,
            ThreadPoolExecutor(_THREADS) as pool,
            copy.open("a", encoding="utf-8") if copy else nullcontext() as file,
        ):
            for schedule in progress.track(pool.map(get, names), len(names), description="reading"):
                resources.append(schedule)
                if file and known.get(schedule["Arn"]) is not schedule:
                    file.write(json.dumps(schedule, default=_instant, ensure_ascii=False) + "\n")
        return resources

    def _schedule(self, group: str, name: str) -> Described:
        schedule: Described = self.scheduler.get_schedule(GroupName=group, Name=name)
        schedule.pop("ResponseMetadata", None)
        return schedule

    def _rules(self) -> Iterator[Described]:
        """The scheduled rules, which only the default bus has, with their targets."""
        for rule in _all_rules(self.events):
            if rule.get("ScheduleExpression"):
                yield {**rule, "Targets": _all_targets(self.events, rule["Name"])}


def account() -> Account:
    """The account and region of the AWS credentials. Raises botocore's errors."""
    from botocore.config import Config

    config = Config(retries={"mode": "adaptive", "total_max_attempts": 10}, max_pool_connections=_THREADS)
    session = new_session()
    return Account(*(session.create_client(name, config=config) for name in ("scheduler", "events")))


def _all_rules(events: Any) -> Iterator[Described]:
    for page in events.get_paginator("list_rules").paginate():
        yield from page["Rules"]


def _all_targets(events: Any, rule: str) -> list[Described]:
    pages = events.get_paginator("list_targets_by_rule").paginate(Rule=rule)
    return [target for page in pages for target in page["Targets"]]


def _copied(copy: Path) -> Iterator[tuple[str, Described]]:
    """The schedules of a copy by their ARNs. A line that was cut off is taken away."""
    text = copy.read_text("utf-8")
    lines, newline, rest = text.rpartition("\n")
    if rest:
        copy.write_text(lines + newline, "utf-8")
    for line in lines.split("\n"):
        if line:
            schedule = json.loads(line)
            yield schedule["Arn"], schedule


def _progress() -> Progress:
    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no JSON for {value!r}")
