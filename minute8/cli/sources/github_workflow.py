"""The schedules of a GitHub workflow (`on.schedule`): each becomes a job whose payload names the workflow.

https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#schedule
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minute8.cli.sources.crontab import steps_note, vixie_cron
from minute8.cli.sources.source_job import Defaults, NoEquivalent, SourceJob, id_of
from minute8.cli.sources.yaml_text import load_documents


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """A job for each expression, or why there is none."""
    try:
        documents = load_documents(text)
    except ValueError as error:
        yield SourceJob("file", refusal=f"not YAML: {error}")
        return
    for document in documents:
        if isinstance(document, Mapping):
            yield from _jobs(document, defaults)


def schedules_of(document: Mapping[Any, Any]) -> list[Any]:
    """The entries of `on.schedule`. YAML 1.1 reads the key `on` as true."""
    events = document.get("on", document.get(True))
    schedules = events.get("schedule") if isinstance(events, Mapping) else None
    return schedules if isinstance(schedules, list) else []


def _jobs(document: Mapping[Any, Any], defaults: Defaults) -> Iterator[SourceJob]:
    schedules, name = schedules_of(document), str(document.get("name") or "workflow")
    for entry in schedules:
        cron = str(entry.get("cron")) if isinstance(entry, Mapping) else ""
        where = f"on.schedule: {cron}"
        if not defaults.target:
            yield SourceJob(where, refusal="a workflow needs a target that starts it: --target")
            continue
        zone = entry.get("timezone") if isinstance(entry, Mapping) else None
        try:
            schedule = {"cron": (converted := vixie_cron(cron)), "timezone": str(zone or "UTC")}
        except NoEquivalent as refusal:
            yield SourceJob(where, refusal=str(refusal))
            continue
        definition = {"schedule": schedule, "target": defaults.target, "payload": {"workflow": name}}
        starts = "the target gets the workflow's name, and starts it by GitHub's API"
        notes = (starts, *steps_note(cron, converted))
        yield SourceJob(where, id_of(name, cron, len(schedules) > 1), definition, notes=notes)
