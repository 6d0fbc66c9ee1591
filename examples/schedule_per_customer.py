"""A platform that has an EventBridge schedule for each of its customers, by boto3, and knows nothing of Minute8.

    python examples/schedule_per_customer.py customers.csv TARGET_ARN ROLE_ARN

The file has the columns `id` and `timezone`. With AWS_ENDPOINT_URL_SCHEDULER and a key pair of Minute8 in
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the schedules are Minute8's.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import boto3

GROUP = "reports"


def register(scheduler: Any, customer: Mapping[str, str], target: str, role: str) -> None:
    """Create or update this customer's schedule."""
    schedule = {
        "Name": f"report-{customer['id']}",
        "GroupName": GROUP,
        "ScheduleExpression": "cron(30 2 * * ? *)",
        "ScheduleExpressionTimezone": customer["timezone"],
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 10},
        "Target": {"Arn": target, "RoleArn": role, "Input": json.dumps({"customer": customer["id"]})},
    }
    try:
        scheduler.create_schedule(**schedule)
    except scheduler.exceptions.ConflictException:
        scheduler.update_schedule(**schedule)


def register_all(scheduler: Any, customers: Iterable[Mapping[str, str]], target: str, role: str) -> list[str]:
    """One schedule per customer; schedules of former customers are deleted. Returns the names of all schedules."""
    groups = scheduler.get_paginator("list_schedule_groups").paginate(NamePrefix=GROUP)
    if all(group["Name"] != GROUP for page in groups for group in page["ScheduleGroups"]):
        scheduler.create_schedule_group(Name=GROUP, Tags=[{"Key": "team", "Value": "reports"}])
    former_names = set(names(scheduler))
    for customer in customers:
        register(scheduler, customer, target, role)
        former_names.discard(f"report-{customer['id']}")
    for name in former_names:
        scheduler.delete_schedule(Name=name, GroupName=GROUP)
    return names(scheduler)


def names(scheduler: Any) -> list[str]:
    """The names of the group's schedules."""
    pages = scheduler.get_paginator("list_schedules").paginate(GroupName=GROUP)
    return sorted(schedule["Name"] for page in pages for schedule in page["Schedules"])


def main(file: str, target: str, role: str) -> int:
    """Register the file's customers, and print their schedules."""
    with Path(file).open() as rows:
        registered = register_all(boto3.client("scheduler"), csv.DictReader(rows), target, role)
    print("\n".join(registered))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
