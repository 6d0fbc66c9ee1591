"""The schedules of a serverless.yml: each `schedule` event of a function becomes a job that calls the function.

https://www.serverless.com/framework/docs/providers/aws/events/schedule
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from minute8.cli.sources.source_job import Defaults, NoEquivalent, SourceJob, id_of, payload_of
from minute8.cli.sources.yaml_text import load_documents

_RATE: Final = re.compile(r"rate\(\s*(\d+)\s+(minute|hour|day)s?\s*\)")
_READ: Final = ("rate", "enabled", "input", "name", "description", "timezone", "method")


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """A job for each expression of each event, or why there is none."""
    try:
        documents = load_documents(text)
    except ValueError as error:
        yield SourceJob("file", refusal=f"not YAML: {error}")
        return
    for document in documents:
        functions = document.get("functions") if isinstance(document, Mapping) else None
        for name, function in (functions if isinstance(functions, Mapping) else {}).items():
            events = function.get("events") if isinstance(function, Mapping) else None
            schedules = [
                event["schedule"]
                for event in events or ()
                if isinstance(event, Mapping) and "schedule" in event
            ]
            yield from _jobs(str(name), schedules, defaults)


def _jobs(function: str, schedules: list[Any], defaults: Defaults) -> Iterator[SourceJob]:
    """The id is the function's name, with a digest of the expression if it has several: none depends on its place."""
    several = [(fields, rate) for schedule in schedules for fields, rate in _expressions(schedule)]
    for fields, rate in several:
        where = f"functions.{function}: {rate}"
        try:
            yield _job(where, id_of(function, rate, len(several) > 1), rate, fields, defaults)
        except NoEquivalent as refusal:
            yield SourceJob(where, refusal=str(refusal))


def _expressions(schedule: Any) -> Iterator[tuple[Mapping[str, Any], str]]:
    fields = schedule if isinstance(schedule, Mapping) else {"rate": schedule}
    rates = fields.get("rate")
    for rate in rates if isinstance(rates, list) else [rates]:
        yield fields, str(rate)


def _job(where: str, job_id: str, rate: str, fields: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    if not defaults.target:
        raise NoEquivalent("the function's ARN is not in the file: name it with --target")
    if "${" in rate:
        raise NoEquivalent(f"{rate!r} is a variable of the tool: write its value in its place")
    zone = fields.get("timezone") or defaults.timezone
    notes = [f"{name} is left out" for name in fields if name not in _READ]
    if zone and not fields.get("timezone") and not rate.startswith("rate("):
        notes.append(f"the times are read in {zone}; the source names no zone, which is UTC")
    schedule = _schedule(rate, zone, notes)
    definition: dict[str, Any] = {"schedule": schedule, "target": defaults.target}
    if fields.get("description"):
        definition["name"] = str(fields["description"])[:200]
    if "input" in fields:
        definition["payload"] = payload_of(fields["input"], where="input")
    return SourceJob(where, job_id, definition, notes=tuple(notes), suspended=fields.get("enabled") is False)


def _schedule(rate: str, zone: str | None, notes: list[str]) -> dict[str, str]:
    """`rate(5 minutes)`, `at(…)` or `cron(…)` of AWS as a schedule. Raises NoEquivalent."""
    if every := _RATE.fullmatch(rate):
        notes.append("rate counts from the first import on, not from the deployment")
        return {"every": f"{every[1]}{every[2][0]}"}
    if rate.startswith("rate("):
        raise NoEquivalent(f"{rate!r} is no rate of AWS, such as rate(5 minutes) or rate(7 days)")
    if rate.startswith("at("):
        return {"at": rate[3:].rstrip(") ").strip(), "timezone": zone or "UTC"}
    cron = rate.removeprefix("cron(").removesuffix(")")
    return {"cron": cron, "dialect": "eventbridge"} | ({"timezone": zone} if zone else {})
