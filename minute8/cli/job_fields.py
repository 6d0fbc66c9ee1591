"""The fields of a job one by one, from their declaration.

The command's options, the editor's boxes and the tables of docs/job.md are made from them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct, structs

from common.declared import Option, accepted_words, options_of
from common.registration.definition import JobDefinition

Kind = Literal["object", "text", "duration", "integer", "number", "flag", "choice", "list", "map", "json"]
_KINDS: Final[dict[Any, Kind]] = {
    str: "text", int: "integer", float: "number", bool: "flag", Literal: "choice", list: "list", dict: "map"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its path, such as `schedule.exclude.dates`, and what people are told of it.

    An `object` has fields of its own; `words` are those of a choice. `default` is NODEFAULT if the field is required.
    `page` is a place in docs/.
    """

    path: str
    kind: Kind
    accepted: str
    default: Any
    description: str
    words: tuple[str, ...] = ()
    page: str = ""

    @property
    def name(self) -> str:
        """The name in its object."""
        return self.path.rpartition(".")[2]


def fields(definition: type[Struct] = JobDefinition) -> list[Field]:
    """All of them without objects. What several kinds of target have is there once."""
    every = [field for section in sections(definition).values() for field in section]
    return list({field.path: field for field in every if field.kind != "object"}.values())


def sections(definition: type[Struct] = JobDefinition) -> dict[str, list[Field]]:
    """The fields by the headings of docs/job.md. What kinds of target have in common is below `Target`."""
    return dict(_sections("Job", "", definition))


def _sections(heading: str, at: str, struct: type[Struct]) -> Iterator[tuple[str, list[Field]]]:
    declared = structs.fields(struct)
    yield heading, [_field(at, field, "object") for field in declared]
    for field in declared:
        inner = [option.base for option in options_of(field.type) if option.is_struct]
        below, path = field.name.capitalize(), f"{at}{field.name}."
        if len(inner) == 1:
            yield from _sections(below, path, inner[0])
        elif inner:
            yield from _of_kinds(below, path, inner)


def _of_kinds(heading: str, at: str, kinds: list[type[Struct]]) -> Iterator[tuple[str, list[Field]]]:
    common = {base for base in kinds[0].__mro__[1:] if issubclass(base, Struct)}
    shared = {field.name: _field(at, field, "json") for base in common for field in structs.fields(base)}
    yield heading, list(shared.values())
    for kind in kinds:
        tag, summary = str(kind.__struct_config__.tag), (kind.__doc__ or "").split("\n")[0]
        own = [_field(at, field, "json") for field in structs.fields(kind) if field.name not in shared]
        yield f"{heading} `{tag}`", [Field(f"{at}kind", "choice", tag, NODEFAULT, summary, (tag,)), *own]


def _field(at: str, field: structs.FieldInfo, of_struct: Kind) -> Field:
    options = [option for option in options_of(field.type) if option.base is not NoneType]
    notes = list(_notes(field.type))
    return Field(
        f"{at}{field.name}",
        _kind(options, of_struct),
        accepted_words(options),
        field.default if field.default_factory is NODEFAULT else field.default_factory(),
        next((note.description for note in notes if note.description), ""),
        tuple(str(word) for option in options if option.base is Literal for word in option.inner),
        next((note.extra["page"] for note in notes if note.extra and "page" in note.extra), ""),
    )


def _notes(hint: Any) -> Iterator[Meta]:
    """Those of a type, the outermost first, and of the members of a union."""
    inner, *notes = get_args(hint) or (None,)
    if get_origin(hint) is Annotated:
        yield from (note for note in reversed(notes) if isinstance(note, Meta))
        yield from _notes(inner)
    elif NoneType in notes:
        yield from _notes(inner)


def _kind(options: list[Option], of_struct: Kind) -> Kind:
    option = options[0]
    if option.is_struct:
        return of_struct
    is_of_json = option.base in (list, dict) and any(
        part.is_struct or part.base is Any for part in option.inner[-1]
    )
    if {str, int} <= {option.base for option in options}:
        return "duration"
    return "json" if is_of_json else _KINDS.get(option.base, "json")
