"""What it costs to move an account's schedules here and back.

    python -m tests.eventbridge.moving --schedules 50000

The account is in memory, and so are the tables: the times are of this machine's processor, without a network. The
requests and DynamoDB's units are counted. docs/eventbridge.md has the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from common.storage.metering import Meter
from minute8.cli.commands.transfer import Contents, ImportOptions, imported
from minute8.cli.sources.source_job import Defaults
from minute8.client import Client
from minute8.eventbridge.moving import importing, written
from minute8.eventbridge.moving.account import Account
from minute8.eventbridge.moving.exporting import exported
from scripts.measure.prices import PRICES
from tests.api.calls import HandlerTransport, Office
from tests.api.conftest import open_office
from tests.worlds import ARN, open_world

_PAGE = 100
_GROUPS = 50
# Of an HTTP API, us-east-1: https://aws.amazon.com/api-gateway/pricing/
_API_REQUEST = 1.0e-6
# The API's function has 256 MB unless a parameter says more; 1,769 MB are a processor.
_API_GB, _API_CPU = 0.25, 256 / 1_769


@dataclass
class MemoryAccount:
    """boto3's clients of an account with so many schedules, and the number of requests to it."""

    count: int
    requests: dict[str, int] = field(default_factory=dict)
    since: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def get_paginator(self, name: str) -> MemoryPages:
        return MemoryPages(self, name)

    def counted(self, name: str) -> None:
        self.requests[name] = self.requests.get(name, 0) + 1

    def place(self, number: int) -> dict[str, Any]:
        group, name = f"group-{number % _GROUPS:02}", f"schedule-{number:05}"
        arn = f"arn:aws:scheduler:us-east-1:123456789012:schedule/{group}/{name}"
        return {"Arn": arn, "GroupName": group, "Name": name, "LastModificationDate": self.since}

    def get_schedule(self, GroupName: str, Name: str) -> dict[str, Any]:
        self.counted("get_schedule")
        number = int(Name.rpartition("-")[2])
        return {
            **self.place(number),
            "CreationDate": self.since,
            "ScheduleExpression": f"cron({number % 60} {number % 24} * * ? *)",
            "ScheduleExpressionTimezone": ("UTC", "Europe/Paris", "America/New_York")[number % 3],
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "State": "ENABLED",
            "Target": {
                "Arn": ARN,
                "RoleArn": "arn:aws:iam::123456789012:role/r",
                "Input": json.dumps({"customer": number, "report": "daily"}),
                "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 3_600},
            },
        }

    def list_tags_for_resource(self, ResourceArn: str) -> dict[str, Any]:
        self.counted("list_tags_for_resource")
        return {"Tags": [{"Key": "team", "Value": "money"}]}


@dataclass
class MemoryPages:
    """A paginator of the account."""

    account: MemoryAccount
    name: str

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        entries: list[Any] = []
        if self.name == "list_schedules":
            entries = [self.account.place(number) for number in range(self.account.count)]
        if self.name == "list_schedule_groups":
            entries = [{"Name": f"group-{n:02}", "Arn": f"arn:{n}"} for n in range(_GROUPS)]
        of = {"list_schedules": "Schedules", "list_schedule_groups": "ScheduleGroups", "list_rules": "Rules"}
        for first in range(0, max(1, len(entries)), _PAGE):
            self.account.counted(self.name)
            yield {of[self.name]: entries[first : first + _PAGE]}


@dataclass
class Phase:
    """One step of the move. Seconds are processor time of the API."""

    name: str
    result: str
    took_s: float
    api_requests: int
    api_s: float
    read_units: float
    write_units: float

    @property
    def dollars(self) -> float:
        units = (
            self.read_units * PRICES["dynamodb_read_unit"] + self.write_units * PRICES["dynamodb_write_unit"]
        )
        function = self.api_s / _API_CPU * _API_GB * PRICES["lambda_gb_s_arm64"]
        return units + function + self.api_requests * (_API_REQUEST + PRICES["lambda_request"])


class MeasuredTransport(HandlerTransport):
    """The API's handler, with its processor time. A world's clock goes on, so that the tenant's budget refills."""

    def __init__(self, office: Office) -> None:
        super().__init__()
        self.office = office
        self.api_s = 0.0

    def handle_request(self, request: Any) -> Any:
        self.office.world.clock.move_to(self.office.world.clock.now() + 30)
        begun_at = time.thread_time()
        try:
            return super().handle_request(request)
        finally:
            self.api_s += time.thread_time() - begun_at


def move(count: int, note: Callable[[str], None]) -> tuple[MemoryAccount, list[Phase]]:
    """Read the account, plan, import, import again, and export."""
    account = MemoryAccount(count)
    phases: list[Phase] = []
    totals = {"read_units": 0.0, "write_units": 0.0, "processor_s": 0.0}
    add = Meter.add

    def adding(meter: Meter, **parts: float) -> None:
        for name, part in parts.items():
            totals[name] += part
        add(meter, **parts)

    with open_world() as world, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Meter, "add", adding)
        office = open_office(world, monkeypatch)
        quotas = {"jobs": max(count, 1), "requests_per_minute": 60_000}
        office.operator("PATCH", "/v1/tenants/alice", {"quotas": quotas})
        transport = MeasuredTransport(office)
        client = Client("https://api.test", office.alice.key or "", transport=transport, sleep=lambda _: None)

        def phase(name: str, work: Callable[[], str]) -> None:
            transport.requests.clear()
            transport.api_s = 0.0
            before, begun_at = dict(totals), time.monotonic()
            result = work()
            took_s = time.monotonic() - begun_at
            units = {unit: totals[unit] - before[unit] for unit in ("read_units", "write_units")}
            phases.append(Phase(name, result, took_s, len(transport.requests), transport.api_s, **units))
            note(f"{name}: {result}, {took_s:.0f} s")

        text = ""

        def read() -> str:
            nonlocal text
            text = Account(account, account).read("")
            return f"{len(text) / 1e6:.0f} MB"

        def steps(options: ImportOptions) -> str:
            jobs = list(importing.read(text, Defaults()))
            return _counts([step.action for step in imported(client, jobs, Contents.of(jobs), options)])

        def plan() -> str:
            return steps(ImportOptions(dry_run=True))

        def apply() -> str:
            return steps(ImportOptions())

        def export() -> str:
            jobs = list(exported(client.export_jobs(eventbridge=True), None))
            files = list(written.terraform([], [job.schedule for job in jobs if not job.refusal]))
            return f"{sum(not job.refusal for job in jobs)} schedules, {len(files[0][1]) / 1e6:.0f} MB"

        phase("read the account", read)
        phase("plan (`--dry-run`)", plan)
        phase("import", apply)
        phase("plan again", plan)
        phase("export as Terraform", export)
    return account, phases


def _counts(actions: list[str]) -> str:
    return ", ".join(f"{actions.count(action)} {action}" for action in dict.fromkeys(actions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--schedules", type=int, default=50_000)
    count = parser.parse_args().schedules
    account, phases = move(count, lambda text: print(text, file=sys.stderr, flush=True))
    print(f"requests to AWS: {account.requests}")
    print("| step | result | s here | API requests | API's processor, s | read units | write units | $ |")
    print("| --- " * 8 + "|")
    for phase in phases:
        print(
            f"| {phase.name} | {phase.result} | {phase.took_s:.0f} | {phase.api_requests:,} | {phase.api_s:.0f} "
            f"| {phase.read_units:,.0f} | {phase.write_units:,.0f} | {phase.dollars:.3f} |"
        )
    print(f"all: ${sum(phase.dollars for phase in phases):.2f}")


if __name__ == "__main__":
    main()
