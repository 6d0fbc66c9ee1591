"""A field that is added to the declaration of a job is everywhere."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import pytest
from msgspec import Meta, Struct, defstruct, structs

from common.declared import faults, schemas
from common.registration.definition import JobDefinition
from common.registration.schedule_definition import ScheduleDefinition
from minute8.cli.job_fields import Field, fields, sections
from minute8.cli.job_options import options_of_fields
from scripts import console_fields
from scripts.tables import rows_of_fields

MOODS = Annotated[Literal["calm", "wild"], Meta(description="How it feels.")]
DEPTH_S = Annotated[Annotated[int, Meta(ge=1, le=9)] | None, Meta(description="How deep it goes.")]


@pytest.fixture(scope="module")
def extended() -> type[Struct]:
    """The declaration with a field of the job, and one of its schedule."""
    schedule = defstruct(
        "Schedule", [("depth_s", DEPTH_S, None)], bases=(ScheduleDefinition,), frozen=True, kw_only=True
    )
    return defstruct(
        "Job",
        [("mood", MOODS, "calm"), ("schedule", Annotated[schedule, Meta(description="When.")])],
        bases=(JobDefinition,),
        frozen=True,
        kw_only=True,
    )


def field(path: str, declaration: type[Struct]) -> Field:
    return next(known for known in fields(declaration) if known.path == path)


def names(option: Any) -> list[str]:
    """As typer reads them: in an annotation the place of a default has the first."""
    return [option.default, *option.param_decls]


def test_a_new_field_is_refused_outside_its_bounds(extended: type[Struct]) -> None:
    target = {"kind": "http", "url": "https://hooks.example.com/x"}
    job = {"mood": "sad", "schedule": {"cron": "* * * * *", "depth_s": 10}, "target": target}
    refusals = {(fault.field, fault.accepted) for fault in faults(job, extended)}
    assert refusals == {("mood", "calm or wild"), ("schedule.depth_s", "1 to 9")}


def test_a_new_field_is_in_the_schema(extended: type[Struct]) -> None:
    _, components = schemas([extended], "{name}")
    assert components["Job"]["properties"]["mood"]["enum"] == ["calm", "wild"]
    assert components["Schedule"]["properties"]["depth_s"]["description"] == "How deep it goes."


def test_a_new_field_has_an_option(extended: type[Struct]) -> None:
    options = options_of_fields(fields(extended))
    kind, option = get_args(options["schedule_depth_s"])
    assert (kind, names(option), option.help) == (int | None, ["--depth"], "How deep it goes.")
    _, option = get_args(options["mood"])
    assert (names(option), option.help) == (["--mood"], "How it feels: calm or wild.")


def test_a_new_field_has_a_row_in_docs_job(extended: type[Struct]) -> None:
    rows = rows_of_fields(extended)
    assert '| `mood` | How it feels | calm or wild | `"calm"` |' in rows["Job"]
    assert "| `depth_s` | How deep it goes | 1 to 9 | `null` |" in rows["Schedule"]


def test_a_new_field_has_a_box_in_the_editor(extended: type[Struct]) -> None:
    boxes = console_fields.generated(extended)
    feels = 'default: "calm", words: ["calm", "wild"]'
    assert f'  mood: {{ path: "mood", kind: "choice", {feels} }},\n' in boxes
    assert '  depth_s: { path: "schedule.depth_s", kind: "integer" },\n' in boxes


def test_a_new_field_has_its_default_where_exports_leave_it_out(extended: type[Struct]) -> None:
    defaults = {known.name: known.default for known in sections(extended)["Job"]}
    assert defaults["mood"] == "calm"
    assert defaults.keys() == {known.name for known in structs.fields(extended)}


def test_all_fields_are_described_and_say_what_they_accept() -> None:
    nameless = [known.path for known in fields() if not known.description or not known.accepted]
    assert nameless == []
    assert [known.path for known in fields() if "text that matches" in known.accepted] == []


def test_each_option_has_its_own_name() -> None:
    every = [name for kind in options_of_fields(fields()).values() for name in names(get_args(kind)[-1])]
    assert len(every) > 50
    assert sorted(set(every)) == sorted(every)
