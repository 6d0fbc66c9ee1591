"""The same random requests to Minute8, to moto and to the embedded AWS's own scheduler: every difference is explained.

    python -m tests.eventbridge.differential --cases 2000 --seed 7

A case is a few requests about a group and schedules of its own. Its first difference is compared with the table
`EXPLAINED`; what follows in the case may follow from it. A difference that no entry explains is printed, and the exit
code is 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from scripts.embedded import kill, start
from scripts.embedded.deployment import client as embedded_client
from tests.api.conftest import open_office
from tests.api.scheduler_client import new_pair, scheduler_client, sign_at
from tests.worlds import ARN, open_world

ROLE = "arn:aws:iam::123456789012:role/r"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
MOTO, EMBEDDED = "moto", "embedded"
EXPRESSIONS = (
    *("rate(5 minutes)", "rate(1 hour)", "rate(2 days)", "cron(0 3 * * ? *)", "cron(15 10 ? * 6L 2027-2030)"),
    *("at(2030-01-01T00:00:00)", "at(2020-01-01T00:00:00)", "cron(*/5 8-17 ? * MON-FRI *)"),
)
BAD_EXPRESSIONS = (
    *("rate(10 seconds)", "rate( 10 minutes )", "rate(0 minutes)", "cron(0 3 * * *)", "cron(61 3 * * ? *)"),
    *("at(2030-01-01)", "at(2030-01-01T00:00:00Z)", "every day", "cron(0 3 * * * *)", "rate(5 minuten)"),
)
BAD_NAMES = ("a b", "ä", "a%b", "x" * 65)

_CASES_OF_WORLD = 400

Request = tuple[str, dict[str, Any]]
# (status, code) of a refusal, or the members of an answer.
Answer = Any


@dataclass(frozen=True, slots=True)
class Difference:
    """The first request of a case about which two systems differ."""

    system: str
    operation: str
    request: Mapping[str, Any]
    minute8_answer: Answer
    other_answer: Answer

    @property
    def is_refused_here(self) -> bool:
        return isinstance(self.minute8_answer, tuple)

    @property
    def members(self) -> set[str]:
        """The members of the answers that differ, at the first level."""
        if not (isinstance(self.minute8_answer, dict) and isinstance(self.other_answer, dict)):
            return set()
        names = self.minute8_answer.keys() | self.other_answer.keys()
        return {name for name in names if self.minute8_answer.get(name) != self.other_answer.get(name)}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a system differs from Minute8, and AWS probably does not."""

    system: str
    why: str
    takes: Callable[[Difference], bool]


def cases(count: int, seed: int) -> Iterator[list[Request]]:
    """Random cases, the same for each seed."""
    chance = random.Random(seed)
    for number in range(count):
        group, names = f"g{number}", [f"s{number}-{n}" for n in range(2)]
        requests: list[Request] = []
        if chance.random() < 0.8:
            requests.append(("create_schedule_group", {"Name": group, **_tags(chance)}))
        for _ in range(chance.randint(2, 7)):
            requests.append(_request(chance, group, chance.choice(names)))
        yield requests


def _request(chance: random.Random, group: str, name: str) -> Request:
    operation = chance.choices(
        ("create_schedule", "update_schedule", "get_schedule", "delete_schedule", "list_schedules", "group"),
        (40, 20, 20, 8, 7, 8),
    )[0]
    place = {"GroupName": group} if chance.random() < 0.9 else {}
    if chance.random() < 0.03:
        name = chance.choice(BAD_NAMES)
    if operation in ("create_schedule", "update_schedule"):
        return operation, {"Name": name, **place, **_schedule(chance)}
    if operation == "list_schedules":
        narrowed = {"State": chance.choice(("ENABLED", "DISABLED"))} if chance.random() < 0.5 else {}
        return operation, {"GroupName": group, **narrowed}
    if operation == "group":
        operation = chance.choice(("create_schedule_group", "get_schedule_group", "delete_schedule_group"))
        return operation, {"Name": group}
    return operation, {"Name": name, **place}


def _schedule(chance: random.Random) -> dict[str, Any]:
    target: dict[str, Any] = {"Arn": chance.choice((ARN, QUEUE)), "RoleArn": ROLE}
    if target["Arn"] == QUEUE or chance.random() < 0.5:
        target["Input"] = json.dumps({"n": chance.randint(0, 9), "at": "<aws.scheduler.scheduled-time>"})
    if chance.random() < 0.3:
        target["RetryPolicy"] = {"MaximumRetryAttempts": chance.choice((0, 3, 3, 185, 185, 186))}
    if chance.random() < 0.2:
        target["DeadLetterConfig"] = {"Arn": f"{QUEUE}-dead"}
    window: dict[str, Any] = {"Mode": "OFF"}
    if chance.random() < 0.3:
        window = {
            "Mode": "FLEXIBLE",
            "MaximumWindowInMinutes": chance.choice((1, 15, 60, 1_440, 1_440, 1_441)),
        }
    elif chance.random() < 0.03:
        window = chance.choice(({"Mode": "FLEXIBLE"}, {"Mode": "OFF", "MaximumWindowInMinutes": 5}))
    is_bad = chance.random() < 0.06
    schedule: dict[str, Any] = {
        "ScheduleExpression": chance.choice(BAD_EXPRESSIONS if is_bad else EXPRESSIONS),
        "FlexibleTimeWindow": window,
        "Target": target,
    }
    # Each with values that AWS takes, and one that it refuses.
    options: dict[str, tuple[tuple[Any, ...], Any]] = {
        "Description": (("a text", "ü" * 512), "x" * 513),
        "State": (("ENABLED", "DISABLED"), "PAUSED"),
        "ScheduleExpressionTimezone": (("UTC", "Europe/Paris"), "Mars/Base"),
        "ActionAfterCompletion": (("NONE", "DELETE"), "KEEP"),
        "StartDate": ((1_900_000_000,), 1_500_000_000),
        "EndDate": ((1_950_000_000,), 1_850_000_000),
    }
    for name, (good, bad) in options.items():
        if chance.random() < 0.25:
            schedule[name] = bad if chance.random() < 0.08 else chance.choice(good)
    return schedule


def _tags(chance: random.Random) -> dict[str, Any]:
    return {"Tags": [{"Key": "team", "Value": "money"}]} if chance.random() < 0.3 else {}


def answers(client: Any, requests: Iterable[Request]) -> list[Answer]:
    """What a system answers to the requests of a case."""
    results: list[Answer] = []
    for operation, request in requests:
        try:
            answer = getattr(client, operation)(**request)
        except ClientError as error:
            response = error.response
            results.append((response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]))
        except Exception as error:  # noqa: BLE001  moto's own mistakes are answers, too
            results.append(("failed", type(error).__name__))
        else:
            answer.pop("ResponseMetadata")
            results.append(comparable(answer))
    return results


def comparable(value: Any) -> Any:
    """Without times of creation, with one account, and with lists in one order."""
    if isinstance(value, dict):
        left_out = ("CreationDate", "LastModificationDate", "NextToken")
        return {name: comparable(member) for name, member in value.items() if name not in left_out}
    if isinstance(value, list):
        return sorted((comparable(member) for member in value), key=repr)
    if isinstance(value, str):
        return value.replace("000000000000", "123456789012")
    return value.timestamp() if hasattr(value, "timestamp") else value


def differences(
    system: str, many: list[list[Request]], minute8_answers: Any, other_answers: Any
) -> Iterator[Difference]:
    """The first difference of each case."""
    for requests, our_answers, their_answers in zip(many, minute8_answers, other_answers, strict=True):
        for (operation, request), our, their in zip(requests, our_answers, their_answers, strict=True):
            if our != their:
                yield Difference(system, operation, request, our, their)
                break


def of_minute8(many: list[list[Request]]) -> list[list[Answer]]:
    """Minute8's answers, over tables in memory. A tenant has at most 500 groups, so some cases share a world."""
    results = []
    for first in range(0, len(many), _CASES_OF_WORLD):
        with open_world() as world, pytest.MonkeyPatch.context() as monkeypatch:
            open_office(world, monkeypatch)
            sign_at(world.clock, monkeypatch)
            client = scheduler_client(
                *new_pair("alice", "write", world.clock.now()), parameter_validation=False
            )
            for requests in many[first : first + _CASES_OF_WORLD]:
                # The tenant's budget of requests refills with time.
                world.clock.move_to(world.clock.now() + 60)
                results.append(answers(client, requests))
    return results


def of_moto(many: list[list[Request]]) -> list[list[Answer]]:
    """moto's answers."""
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    credentials = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    with mock_aws():
        client = boto3.client("scheduler", region_name="us-east-1", config=config, **credentials)
        return [answers(client, requests) for requests in many]


def of_embedded(many: list[list[Request]], folder: Path) -> list[list[Answer]]:
    """The answers of the embedded AWS's own scheduler."""
    instance = start(folder, 0, tied=True)
    try:
        client = embedded_client(instance, "scheduler")
        return [answers(client, requests) for requests in many]
    finally:
        kill(folder)


def faults(request: Mapping[str, Any]) -> list[str]:
    """What AWS's model or guide forbids in a generated request. Minute8's own checks are not asked."""
    target, window = request.get("Target", {}), request.get("FlexibleTimeWindow", {})
    expression = request.get("ScheduleExpression", "")
    has_bounds = not expression.startswith("at(")
    start, end = request.get("StartDate"), request.get("EndDate")
    return [
        name
        for name, is_wrong in {
            "Name": request.get("Name") in BAD_NAMES,
            "ScheduleExpression": expression in BAD_EXPRESSIONS,
            "ScheduleExpressionTimezone": request.get("ScheduleExpressionTimezone") == "Mars/Base",
            "State": request.get("State") == "PAUSED",
            "ActionAfterCompletion": request.get("ActionAfterCompletion") == "KEEP",
            "Description": len(request.get("Description", "")) > 512,
            "MaximumWindowInMinutes": window.get("MaximumWindowInMinutes", 1) > 1_440,
            "FlexibleTimeWindow": bool(window)
            and (window["Mode"] == "FLEXIBLE") != ("MaximumWindowInMinutes" in window),
            "MaximumRetryAttempts": target.get("RetryPolicy", {}).get("MaximumRetryAttempts", 0) > 185,
            "StartDate": has_bounds and start == 1_500_000_000,
            "EndDate": has_bounds and bool(start and end and end < start),
        }.items()
        if is_wrong
    ]


def _refused_for_a_fault(difference: Difference) -> bool:
    """Minute8 refuses what AWS's model or guide forbids, and the other does not."""
    return difference.minute8_answer == (400, "ValidationException") and bool(faults(difference.request))


def _answers(minute8_answers: Answer, *other_answers: Answer) -> Callable[[Difference], bool]:
    """These answers: `None` is success."""

    def takes(difference: Difference) -> bool:
        their = difference.other_answer if isinstance(difference.other_answer, tuple) else None
        own = difference.minute8_answer if isinstance(difference.minute8_answer, tuple) else None
        return own == minute8_answers and their in other_answers

    return takes


def _members(*names: str) -> Callable[[Difference], bool]:
    """These members of answers to GetSchedule differ, and the target by the default of its RetryPolicy alone."""

    def takes(difference: Difference) -> bool:
        if difference.operation != "get_schedule" or not difference.members <= {*names, "Target"}:
            return False
        targets = [answer["Target"] for answer in (difference.minute8_answer, difference.other_answer)]
        policies = [target.get("RetryPolicy") for target in targets]
        plain = [{**target, "RetryPolicy": None} for target in targets]
        same = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185, **(policies[1] or {})}
        return bool(difference.members) and plain[0] == plain[1] and policies[0] == same

    return takes


def _lists_without_state(difference: Difference) -> bool:
    """The same schedules, some without a State, which it therefore does not find by their state."""
    if difference.operation != "list_schedules" or difference.members != {"Schedules"}:
        return False
    lists = [answer["Schedules"] for answer in (difference.minute8_answer, difference.other_answer)]
    plain = [[{**each, "State": ""} for each in schedules] for schedules in lists]
    if difference.request.get("State") == "ENABLED":
        return all(each in plain[0] for each in plain[1])
    return plain[0] == plain[1] and any("State" not in each for each in lists[1])


_NOT_FOUND = (404, "ResourceNotFoundException")
_CONFLICT = (409, "ConflictException")
_FAILED = ("failed", "KeyError")
# Each entry says what the other does. AWS's own model, guide or recordings say what Minute8 does.
EXPLAINED: tuple[Explanation, ...] = (
    Explanation(MOTO, "it does not check what AWS's model and guide forbid", _refused_for_a_fault),
    Explanation(MOTO, "it fails where a group does not exist", _answers(_NOT_FOUND, _FAILED)),
    Explanation(MOTO, "it creates a group again, where AWS has a conflict", _answers(_CONFLICT, None)),
    Explanation(
        MOTO,
        "its conflict has the status 400; AWS's model says 409",
        _answers(_CONFLICT, (400, "ConflictException")),
    ),
    Explanation(MOTO, "it lists the schedules of groups that do not exist", _answers(_NOT_FOUND, None)),
    Explanation(
        MOTO,
        "it leaves out defaults, and an update keeps what AWS's resets",
        _members("ActionAfterCompletion", "State"),
    ),
    Explanation(MOTO, "its update takes the State away that is left out", _lists_without_state),
    Explanation(EMBEDDED, "it does not check what AWS's model and guide forbid", _refused_for_a_fault),
    Explanation(EMBEDDED, "it lists the schedules of groups that do not exist", _answers(_NOT_FOUND, None)),
    Explanation(
        EMBEDDED,
        "it has an empty description where none was given, and leaves out defaults",
        _members("Description"),
    ),
)


def misjudged(
    many: list[list[Request]], minute8_answers: list[list[Answer]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Requests that Minute8 accepts against AWS's model or guide, or refuses as invalid though they are not."""
    for requests, our_answers in zip(many, minute8_answers, strict=True):
        for (operation, request), answer in zip(requests, our_answers, strict=True):
            # Which of two refusals comes first is not known of AWS.
            is_refused = isinstance(answer, tuple)
            if not is_refused and faults(request):
                yield operation, request
            if answer == (400, "ValidationException") and not faults(request):
                yield operation, request


def explanation_of(difference: Difference) -> str | None:
    """Why, or None."""
    fitting = (each for each in EXPLAINED if each.system == difference.system and each.takes(difference))
    return next((each.why for each in fitting), None)


def compared(count: int, seed: int, folder: Path) -> tuple[Counter[str], list[Difference]]:
    """How often each explanation was needed, and the differences that have none."""
    many = list(cases(count, seed))
    minute8_answers = of_minute8(many)
    counts: Counter[str] = Counter()
    unexplained = [Difference("AWS's model", *each, None, None) for each in misjudged(many, minute8_answers)]
    for system, other_answers in ((MOTO, of_moto(many)), (EMBEDDED, of_embedded(many, folder))):
        for difference in differences(system, many, minute8_answers, other_answers):
            if why := explanation_of(difference):
                counts[f"{system}: {why}"] += 1
            else:
                unexplained.append(difference)
    return counts, unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts, unexplained = compared(options.cases, options.seed, Path(folder))
    for why, count in counts.most_common():
        print(f"{count:6} {why}")
    for difference in unexplained[:20]:
        print(f"UNEXPLAINED {difference}")
    print(
        f"{options.cases} cases, {sum(counts.values())} explained differences, {len(unexplained)} unexplained"
    )
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
