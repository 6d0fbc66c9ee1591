"""A value is refused with every fault it has: where it is, what was sent, what would be accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from common.declared import Check, faults, read, schemas
from common.errors import InvalidInput


def refuse_admin(path: str, name: str) -> None:
    if name == "admin":
        raise InvalidInput(path, "is reserved", value=name, accepted="another name")


class Queue(Struct, tag_field="kind", tag="queue"):
    """Where messages go."""

    arn: Annotated[str, Meta(pattern="^arn:[a-z]+$", extra={"accepted": "arn:<queue>"})]


class Page(Struct, tag_field="kind", tag="page"):
    """What is called."""

    url: str
    headers: dict[str, str] = {}


class Window(Struct):
    """Since when, until when."""

    from_s: Annotated[int, Meta(ge=0, le=60)] = 0
    until_s: Annotated[int, Meta(ge=0)] | None = None

    def contradictions(self) -> Iterator[InvalidInput]:
        if self.until_s is not None and self.until_s < self.from_s:
            yield InvalidInput("until_s", "is before from_s", value=self.until_s)


class Even(int):
    @classmethod
    def of_client(cls, path: str, value: object) -> Even:
        if value not in ("2", "4"):
            raise InvalidInput(path, "must be even", value=value, accepted="2 or 4")
        return cls(str(value))


class Sample(Struct):
    """All of it."""

    target: Queue | Page
    name: Annotated[str, Meta(max_length=5), Check(refuse_admin)] = ""
    tags: Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(max_length=2)] = []
    every: str | int | None = None
    factor: Annotated[float, Meta(ge=1, le=10)] = 2
    mode: Literal["slow", "fast", "also"] = "slow"
    again: bool = False
    window: Window | None = None
    windows: list[Window] | None = None
    timezone: str = "UTC"
    payload: Any = None
    even: Even | None = None
    odd: int | UnsetType = UNSET


class Shown(Struct):
    """What is in a schema."""

    target: Queue | Page
    mode: Literal["slow", "fast", "also"] = "slow"
    window: Window | None = None


QUEUE = {"kind": "queue", "arn": "arn:a"}
THING: dict[str, Any] = {"target": QUEUE}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "alice", "tags": ["a", "b"], "every": "5m", "factor": 2, "mode": "also", "again": True},
        {"every": 5, "window": {"from_s": 3}, "windows": [{}, {"until_s": 4}], "payload": [1, {"a": None}]},
        {"even": "4"},
        {"every": None, "window": None, "target": {"kind": "page", "url": "x", "headers": {"a": "b"}}},
    ],
)
def test_what_fits_is_read(fields: dict[str, Any]) -> None:
    sample = read(THING | fields, Sample, "thing")
    assert isinstance(sample, Sample) and sample.odd is UNSET
    assert not list(faults(THING | fields, Sample))


@pytest.mark.parametrize(
    ("fields", "field", "message", "accepted"),
    [
        ({"name": 5}, "name", "must be a text", "a text of at most 5 characters"),
        ({"name": "abcdef"}, "name", "is too long", "a text of at most 5 characters"),
        ({"name": "\ud800"}, "name", "must be a text in Unicode", "a text of at most 5 characters"),
        ({"name": "admin"}, "name", "is reserved", "another name"),
        ({"name": None}, "name", "must be a text", "a text of at most 5 characters"),
        ({"tags": "a"}, "tags", "must be a list", "a list of at most 2 entries"),
        ({"tags": ["a", ""]}, "tags.1", "is too short", "a text of at least 1 characters"),
        ({"tags": ["a", "b", "c"]}, "tags", "has too many entries", "a list of at most 2 entries"),
        ({"every": 5.5}, "every", "must be a text or a whole number", ""),
        ({"every": True}, "every", "must be a text or a whole number", ""),
        ({"factor": "2"}, "factor", "must be a number", "1 to 10"),
        ({"factor": 11}, "factor", "is too large", "1 to 10"),
        ({"factor": float("nan")}, "factor", "must be a number", "1 to 10"),
        ({"factor": float("inf")}, "factor", "must be a number", "1 to 10"),
        ({"mode": "quick"}, "mode", "must be one of a few words", "slow, fast or also"),
        ({"mode": 1}, "mode", "must be one of a few words", "slow, fast or also"),
        ({"mode": ["slow"]}, "mode", "must be one of a few words", "slow, fast or also"),
        ({"again": 1}, "again", "must be a boolean", "true or false"),
        ({"window": []}, "window", "must be an object", ""),
        ({"window": {"from_s": -1}}, "window.from_s", "is too small", "0 to 60"),
        ({"window": {"from_s": "5m"}}, "window.from_s", "must be a whole number", "the number of seconds, 300"),
        ({"window": {"until_s": -1}}, "window.until_s", "is too small", "at least 0"),
        ({"window": {"from_s": 5, "until_s": 4}}, "window.until_s", "is before from_s", ""),
        ({"windows": [{}, {"from_s": 2.0}]}, "windows.1.from_s", "must be a whole number", "0 to 60"),
        ({"windows": [{"form_s": 2}]}, "windows.0.form_s", "is not a known field",
         "from_s, perhaps; the fields from_s, until_s"),
        ({"tz": "UTC"}, "tz", "is not a known field",
         "timezone, perhaps; the fields target, name, tags, every, factor, mode, again, window, windows, timezone, "
         "payload, even, odd"),
        ({"even": 3}, "even", "must be even", "2 or 4"),
        ({"odd": None}, "odd", "must be a whole number", ""),
        ({"target": None}, "target", "must be an object", "an object of the kind queue or page"),
        ({"target": {}}, "target.kind", "is missing", "queue or page"),
        ({"target": {"kind": "topic"}}, "target.kind", "must be one of a few words", "queue or page"),
        ({"target": {"kind": ["queue"]}}, "target.kind", "must be one of a few words", "queue or page"),
        ({"target": {"kind": "queue"}}, "target.arn", "is missing", "arn:<queue>"),
        ({"target": {"kind": "queue", "arn": "x"}}, "target.arn", "has the wrong form", "arn:<queue>"),
        ({"target": {"kind": "queue", "arn": "arn:a\n"}}, "target.arn", "has the wrong form", "arn:<queue>"),
        ({"target": {"kind": "page", "url": "x", "headers": {"a": 1}}}, "target.headers.a", "must be a text", ""),
    ],
)  # fmt: skip
def test_a_fault_has_its_place_and_what_is_accepted(
    fields: dict[str, Any], field: str, message: str, accepted: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(THING | fields, Sample, "thing")
    assert (refused.value.field, refused.value.message, refused.value.accepted) == (field, message, accepted)
    assert not refused.value.also


def test_the_whole_has_a_name_of_its_own() -> None:
    assert [(fault.field, fault.message) for fault in faults([], Sample, "thing")] == [
        ("thing", "must be an object")
    ]


def test_all_faults_are_named_at_once() -> None:
    fields = {"name": 1, "tags": ["", 2], "windows": [{"from_s": 99, "x": 1}], "target": {"kind": "page"}}
    assert sorted(fault.field for fault in faults(fields, Sample)) == [
        *("name", "tags.0", "tags.1", "target.url", "windows.0.from_s", "windows.0.x")
    ]


def test_faults_are_made_as_they_are_asked_for() -> None:
    first = next(faults(THING | {"tags": [], "windows": [{"from_s": 99}] * 100_000}, Sample))
    assert first.field == "windows.0.from_s"


def test_the_words_of_a_schema_have_the_order_of_their_declaration() -> None:
    (schema,), components = schemas([Shown], "#/components/schemas/{name}")
    assert schema == {"$ref": "#/components/schemas/Shown"}
    assert components["Shown"]["properties"]["mode"] == {"enum": ["slow", "fast", "also"], "default": "slow"}
    assert components["Window"]["properties"]["from_s"] == {
        "type": "integer", "minimum": 0, "maximum": 60, "default": 0
    }  # fmt: skip
    assert set(components) == {"Shown", "Queue", "Page", "Window"}
