"""docs/job.md beside its tables, which scripts/tables.py writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from common.registration import schedule_text
from common.registration.definition import JobDefinition, Limits, parse_definition
from minute8.api.shapes.definitions import Job
from minute8.client.jobs import definition_to_create

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "job.md").read_text()


def test_the_whole_example_is_accepted() -> None:
    example, several = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    raw = json.loads(example)
    definition = parse_definition(raw, Limits())
    assert schedule_text.parse_schedule(raw["schedule"], job_key="a/b", now=0)
    assert definition.retry.base_s == 60
    written = parse_definition({**raw, "schedule": json.loads(several)}, Limits()).schedule.written()
    assert len(schedule_text.parse_schedule(written, job_key="a/b", now=0).parts) == 2


def test_fields_that_answers_add_are_listed() -> None:
    part = TEXT.split("## What answers add")[1]
    added = set(Job.__struct_fields__) - set(JobDefinition.__struct_fields__)
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.*?)\|", part, re.MULTILINE)))) == added


def test_a_shown_job_is_sent_back_without_what_answers_add() -> None:
    """The Python client leaves exactly these fields out. (The console's are compared by its compiler.)"""
    fields_of_answer = dict.fromkeys(Job.__struct_fields__)
    assert set(definition_to_create(fields_of_answer)) == set(JobDefinition.__struct_fields__)
