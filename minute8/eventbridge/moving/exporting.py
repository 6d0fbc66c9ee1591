"""Jobs as schedules for an AWS account: the inverse of `importing.py`. Pure.

What AWS's API cannot say of a job's times, target or input is a refusal, with the job's field. Minute8's own policies,
such as an owner or an overlap rule, are left out with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from msgspec import to_builtins

from common.errors import InvalidInput
from common.jobs.spec import Retry
from minute8.cli.job_fields import sections
from minute8.eventbridge.import_lines import check_schedule
from minute8.eventbridge.mapping import definition_of, moment
from minute8.eventbridge.names import DEFAULT_GROUP, job_id_of, names_in
from minute8.eventbridge.unmapping import IN_TARGET, Inexpressible, request_parts

# The fields that a schedule has, too.
_SAID: Final = frozenset(
    (
        *("job_id", "state", "note", "eventbridge", "schedule", "target", "payload", "retry", "name"),
        *("after_completion", "dead_letter"),
    )
)
_WAITS: Final = ("base_s", "factor", "cap_s")
_DATES: Final = ("StartDate", "EndDate")


@dataclass(frozen=True, slots=True)
class Exported:
    """A job as CreateSchedule's request with its Name, or why it is none. Dates are texts in UTC."""

    job_id: str
    schedule: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""
    notes: tuple[str, ...] = ()


def exported(lines: Iterable[Mapping[str, Any]], role_arn: str | None) -> Iterator[Exported]:
    """Each job of an export with `eventbridge=true`. Jobs without a role get `role_arn`."""
    for line in lines:
        try:
            request = dict(line.get("eventbridge") or _request(line, role_arn))
            check_schedule(request)
            definition_of(request, _ANY_ARN)
        except (Inexpressible, InvalidInput) as error:
            yield Exported(line["job_id"], refusal=str(error))
            continue
        for name in _DATES:
            if name in request:
                request[name] = _written(request[name])
        yield Exported(line["job_id"], request, notes=tuple(sorted(_notes(line))))


def creatable(schedule: Mapping[str, Any], now: float) -> tuple[dict[str, Any], str]:
    """The exported schedule as AWS can create it now, and a note of what was left out; empty if nothing was."""
    start = schedule.get("StartDate")
    if start is None or schedule["ScheduleExpression"].startswith("at(") or moment(start).timestamp() >= now:
        return dict(schedule), ""
    kept = {name: value for name, value in schedule.items() if name != "StartDate"}
    effect = "; the rate counts from the creation" if "rate(" in schedule["ScheduleExpression"] else ""
    return kept, f"StartDate is left out: it is past, and AWS creates no such schedule{effect}"


# Its account is that of names without one, which no schedule has here.
_ANY_ARN: Final = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/any"


def _request(line: Mapping[str, Any], role_arn: str | None) -> dict[str, Any]:
    """CreateSchedule's request for a job that did not come by EventBridge's API."""
    group, name = names_in(line["job_id"])
    if job_id_of(group, name) != line["job_id"]:
        raise Inexpressible("job_id: is a hash; only the schedule itself knows its name")
    request: dict[str, Any] = {"Name": name}
    if group != DEFAULT_GROUP:
        request["GroupName"] = group
    target: dict[str, Any] = {}
    for part, members in request_parts(line).items():
        (target if part in IN_TARGET else request).update(members())
    role = line["target"].get("role_arn") or role_arn
    if not role:
        raise Inexpressible("target.role_arn: AWS calls targets with a role; --role-arn names one")
    request["Target"] = {**target, "RoleArn": role}
    if line.get("state") == "paused":
        request["State"] = "DISABLED"
    return request


def _notes(line: Mapping[str, Any]) -> Iterator[str]:
    usual = _usual()
    for name in line.keys() - _SAID:
        # A field that this version of the command does not know is named if it has any value.
        if (name in usual and line[name] != usual[name]) or (name not in usual and line[name]):
            yield f"{name} is left out: AWS's schedules have no such field"
    waits, usual_waits = line.get("retry") or {}, to_builtins(Retry())
    if any(waits.get(name, usual_waits[name]) != usual_waits[name] for name in _WAITS):
        yield "the waits of retry are left out: AWS chooses its own"


@cache
def _usual() -> dict[str, Any]:
    """The values of a job's fields when nobody set them."""
    return {field.name: field.default for field in sections()["Job"]}


def _written(at: float) -> str:
    """Epoch seconds as a time in UTC, to the millisecond."""
    moment = datetime.fromtimestamp(at, UTC)
    form = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=form).replace("+00:00", "Z")
