"""docs/job.md lists every field of a job, with the limits and defaults of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import NODEFAULT, Struct, structs

from common.declared import read, schemas
from common.ids import PACE_KEY_CHARS
from common.jobs.spec import Retry
from common.limits import (
    CRON_CHARS,
    MAX_CALENDARS,
    MAX_EXCLUDED_DATES,
    MAX_PER_SECOND,
    MAX_TOLERANCE_S,
    RENDERED_BYTES,
    URL_CHARS,
)
from common.registration import schedule_definition, schedule_text
from common.registration.definition import (
    JobDefinition,
    Limits,
    parse_definition,
)
from common.registration.schedule_definition import ExcludeDefinition, PaceDefinition, ScheduleDefinition
from common.registration.target_definitions import MODELS
from common.tenants.tenant import Quotas
from common.timing.durations import MAX_DURATION_S
from minute8.api.shapes.definitions import Job
from minute8.client.jobs import definition_to_create

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "job.md").read_text()
SECTIONS: dict[str, type[Struct]] = {
    "Job": JobDefinition,
    "Schedule": ScheduleDefinition,
    "Exclude": ExcludeDefinition,
    "Pace": PaceDefinition,
    "Retry": Retry,
    **{f"Target `{kind}`": model for kind, model in MODELS.items()},
}
# Fields of several kinds, listed once.
SHARED = ("role_arn", "external_id", "schedule_arn", "envelope")
Row = dict[str, str]


def rows(section: str) -> dict[str, Row]:
    """The rows of a section's table, by field."""
    part = re.split(rf"^#+ {re.escape(section)}$", TEXT, flags=re.MULTILINE)[1]
    part = re.split(r"^#", part, flags=re.MULTILINE)[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| ")]
    header, _, *body = [[cell.strip() for cell in line] for line in lines]
    return {cells[0].strip("`"): dict(zip(header, cells, strict=True)) for cells in body}


def fields(model: type[Struct]) -> dict[str, structs.FieldInfo | None]:
    """A model's fields by name; its tag has none."""
    tag = {"kind": None} if model.__struct_config__.tag_field else {}
    return tag | {field.name: field for field in structs.fields(model)}


FIELDS = [(section, field) for section, model in SECTIONS.items() for field in fields(model)]


def documented(section: str, field: str) -> Row:
    """A field's row; those of several kinds are listed once."""
    return rows("Target" if field in SHARED else section)[field]


def schema(section: str, field: str) -> dict[str, Any]:
    _, components = schemas([SECTIONS[section]], "{name}")
    schema: dict[str, Any] = components[SECTIONS[section].__name__]["properties"][field]
    # `x | None`: the constraints are those of x.
    return schema | {key: value for part in schema.get("anyOf", []) for key, value in part.items()}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_has_a_row_and_no_other(section: str) -> None:
    assert sorted(rows(section)) == sorted(set(fields(SECTIONS[section])) - set(SHARED))


@pytest.mark.parametrize(("section", "field"), FIELDS)
def test_the_default_is_the_codes(section: str, field: str) -> None:
    declared = fields(SECTIONS[section])[field]
    documented_default = documented(section, field)["default"]
    if declared is None or declared.required:
        assert documented_default == "required"
    elif field == "retry":
        assert documented_default == "`{}`" and declared.default == Retry()
    else:
        default = declared.default_factory() if declared.default is NODEFAULT else declared.default
        assert json.loads(documented_default.split("`")[1]) == default


@pytest.mark.parametrize(("section", "field"), FIELDS)
def test_the_limits_are_the_codes(section: str, field: str) -> None:
    row, constraints = documented(section, field), schema(section, field)
    limits = row["limits"].replace(",", "")
    constraints |= {f"item {key}": value for key, value in constraints.get("items", {}).items()}
    for name in ("minimum", "maximum", "maxLength", "maxItems", "item minLength", "item maxLength"):
        if name in constraints:
            assert re.search(rf"\b{constraints[name]}\b", limits), f"{field}: {name} {constraints[name]}"
    choices = [constraints["const"]] if "const" in constraints else []
    choices = constraints.get("enum", constraints.get("item enum", choices))
    assert re.findall(r'`"(\w+)"`', row["type"]) == choices


@pytest.mark.parametrize(("section", "field"), FIELDS)
def test_the_example_is_accepted(section: str, field: str) -> None:
    example = json.loads(documented(section, field)["example"].strip("`"))
    read(smallest(section) | {field: example}, SECTIONS[section], section)


def smallest(section: str) -> dict[str, Any]:
    """An object of the section with its required fields, and the fields that its optional ones need."""
    if section == "Job":
        return {name: json.loads(rows("Job")[name]["example"].strip("`")) for name in ("schedule", "target")}
    if not section.startswith("Target"):
        return {"per_second": 5} if section == "Pace" else {}
    model = fields(SECTIONS[section])
    required = {
        name: row for name, row in rows(section).items() if model[name] is None or model[name].required
    }
    # What durable and stop need beside them.
    required |= {name: rows(section)[name] for name in ("invocation", "started") if name in model}
    role = {"role_arn": rows("Target")["role_arn"]} if "role_arn" in model else {}
    return {name: json.loads(row["example"].strip("`")) for name, row in (required | role).items()}


def test_the_limits_that_the_models_do_not_hold() -> None:
    def limits(section: str, field: str) -> str:
        return documented(section, field)["limits"]

    assert f"less {300 - Limits().longest_timeout_s} s ({Limits().longest_timeout_s} " in limits(
        "Job", "timeout_s"
    )
    assert f"({Quotas().payload_bytes:,} at first)" in limits("Job", "payload")
    assert f"{RENDERED_BYTES // 1024} KiB" in limits("Job", "payload")
    assert f"at most {CRON_CHARS} characters" in limits("Schedule", "cron")
    assert f"1 s to {MAX_DURATION_S // 86_400} days" in limits("Schedule", "every")
    assert f"0 to {schedule_definition.MAX_JITTER_S:,}" in limits("Schedule", "jitter_s")
    assert limits("Pace", "per_second") == f"1 to {MAX_PER_SECOND:,}"
    assert limits("Pace", "tolerance_s") == f"1 to {MAX_TOLERANCE_S:,}"
    assert limits("Pace", "key").startswith(f"1 to {PACE_KEY_CHARS} of")
    assert f"at most {MAX_EXCLUDED_DATES}" in limits("Exclude", "dates")
    assert f"at most {MAX_CALENDARS}," in limits("Exclude", "calendars")
    assert f"at most {URL_CHARS:,} characters" in limits("Target `http`", "url")


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
