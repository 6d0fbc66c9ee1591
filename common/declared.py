"""Declared types: what is wrong with a value that does not fit, what would, and their JSON Schema. Pure.

A declared type is a hint that msgspec reads: Structs, unions of tagged ones, lists, dicts with texts as keys, texts,
numbers, booleans, `Literal` and Any. `Meta` bounds them: at a member of a union, not around it. Its `extra` may have
`accepted`, the words of what is accepted. Three things are Minute8's own: `Check`, for what a type cannot say of a
value; a Struct's method `contradictions`, which yields what its fields cannot say alone; and a class with a method
`of_client(path, value)`, which makes its instances of what a client writes or raises InvalidInput.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from common.cache import convert
from common.errors import InvalidInput, together
from common.hints import meant_key, seconds_hint

_NOUNS: Final = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "a boolean",
    list: "a list",
    dict: "an object",
    Any: "any JSON",
}
_OF_OBJECTS: Final = {"properties", "additionalProperties", "$ref"}
_BOUNDS: Final = ("ge", "le", "min_length", "max_length", "pattern")

Declared = TypeVar("Declared")


@dataclass(frozen=True, slots=True)
class Check:
    """Among a type's notes, what it cannot say: `refuse(path, value)` raises InvalidInput."""

    refuse: Callable[[str, Any], object]


@dataclass(frozen=True)
class Option:
    """A member of a union, or the whole type: what it is, of what, and its notes."""

    base: Any
    # The options of what a list or a dict holds; the words of a Literal.
    inner: tuple[Any, ...] = ()
    bounds: Mapping[str, Any] = field(default_factory=dict)
    accepted: str = ""
    checks: tuple[Check, ...] = ()

    @cached_property
    def is_struct(self) -> bool:
        return isinstance(self.base, type) and issubclass(self.base, msgspec.Struct)

    @cached_property
    def tag_field(self) -> str | None:
        return self.base.__struct_config__.tag_field if self.is_struct else None

    @cached_property
    def tag(self) -> str | int | None:
        return self.base.__struct_config__.tag if self.is_struct else None

    @cached_property
    def reads(self) -> bool:
        return hasattr(self.base, "of_client")

    def takes(self, value: object) -> bool:
        """Whether the value is of this kind, whatever its bounds."""
        if self.reads:
            return value is not None
        if self.base is Literal:
            return any(type(value) is type(word) for word in self.inner)
        if self.base is dict or self.is_struct:
            return isinstance(value, Mapping)
        if self.base is float:
            return type(value) is int or (type(value) is float and math.isfinite(value))
        if self.base is list:
            return isinstance(value, list | tuple)
        return self.base in (Any, type(value))


def read(value: object, hint: type[Declared], root: str) -> Declared:
    """The value as its declared type. `root` names it in a refusal of all of it.

    Raises InvalidInput: the first fault, with the others in `also`.
    """
    if refusal := together(faults(value, hint, root)):
        raise refusal
    return convert(value, hint, _read)


def _read(kind: Any, value: object) -> Any:
    return kind.of_client("", value)


def faults(value: object, hint: Any, root: str = "") -> Iterator[InvalidInput]:
    """Everything that is wrong with a value, each with its path; also names that the type does not have."""
    yield from _faults(value, options_of(hint), "", root)


def schemas(types: Iterable[Any], ref_template: str) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The JSON Schemas of types and of the Structs in them. Words have the order of their declaration."""
    references, components = msgspec.json.schema_components(types, ref_template=ref_template)
    orders: dict[frozenset[Any], list[Any]] = {}
    seen: set[Any] = set()
    for hint in types:
        _collect_orders(options_of(hint), orders, seen)
    _complete([references, components], orders)
    return references, components


def options_of(hint: Any) -> list[Option]:
    """The members of a union, or the type alone, with their notes."""
    base, arguments = get_origin(hint), get_args(hint)
    if base is Annotated:
        return [_with_notes(option, arguments[1:]) for option in options_of(arguments[0])]
    if base in (Union, UnionType):
        members = [argument for argument in arguments if argument is not msgspec.UnsetType]
        return [option for member in members for option in options_of(member)]
    inner = arguments if base is Literal else tuple(map(options_of, arguments))
    return [Option(base or hint, inner)]


def _with_notes(option: Option, notes: tuple[Any, ...]) -> Option:
    bounds, accepted = dict(option.bounds), option.accepted
    for note in notes:
        if isinstance(note, msgspec.Meta):
            bounds |= {name: bound for name in _BOUNDS if (bound := getattr(note, name)) is not None}
            accepted = (note.extra or {}).get("accepted", accepted)
    checks = (*option.checks, *(note for note in notes if isinstance(note, Check)))
    return Option(option.base, option.inner, bounds, accepted, checks)


@cache
def _fields(struct: type[msgspec.Struct]) -> dict[str, tuple[bool, list[Option]]]:
    """By name, whether a field is required and what it takes; a tag is a field, too."""
    config = struct.__struct_config__
    tag = {config.tag_field: (False, [Option(Literal, (config.tag,))])} if config.tag_field else {}
    known = {
        known.encode_name: (known.required, options_of(known.type))
        for known in msgspec.structs.fields(struct)
    }
    return tag | known


def _faults(value: Any, options: list[Option], at: str, root: str = "") -> Iterator[InvalidInput]:
    kinds = [option for option in options if option.takes(value)]
    tagged = [option for option in kinds if option.tag_field]
    if tagged:
        kinds = [option for option in tagged if option.tag == value.get(option.tag_field)]
    if kinds:
        yield from _faults_of(value, kinds[0], at, root)
    elif tagged:
        yield _no_tag(value, tagged, at)
    else:
        nouns, accepted = _nouns(options), accepted_words(options)
        if int in [option.base for option in options]:
            accepted = seconds_hint(value) or accepted
        accepted = "" if accepted == nouns else accepted
        yield InvalidInput(at or root, f"must be {nouns}", value=value, accepted=accepted)


def _no_tag(value: Mapping[str, Any], tagged: list[Option], at: str) -> InvalidInput:
    field = str(tagged[0].tag_field)
    message = "must be one of a few words" if field in value else "is missing"
    tags = _either([str(option.tag) for option in tagged])
    return InvalidInput(_path(at, field), message, value=value.get(field), accepted=tags)


def _faults_of(value: Any, option: Option, at: str, root: str) -> Iterator[InvalidInput]:
    """What is wrong with a value of the right kind; checks are for what fits its type."""
    if message := _out_of_bounds(value, option):
        yield InvalidInput(at or root, message, value=value, accepted=accepted_words([option]))
        return
    fits = True
    for fault in _faults_of_parts(value, option, at):
        fits = False
        yield fault
    if fits:
        yield from _checked(value, option, at, root)


def _faults_of_parts(value: Any, option: Option, at: str) -> Iterator[InvalidInput]:
    if option.is_struct:
        yield from _faults_of_fields(value, option.base, at)
    elif option.base is list and option.inner:
        for place, part in enumerate(value):
            yield from _faults(part, option.inner[0], _path(at, place))
    elif option.base is dict and option.inner:
        for name, part in value.items():
            yield from _faults(name, option.inner[0], _path(at, name))
            yield from _faults(part, option.inner[1], _path(at, name))


def _faults_of_fields(value: Mapping[str, Any], struct: Any, at: str) -> Iterator[InvalidInput]:
    fields = _fields(struct)
    for name, (is_required, options) in fields.items():
        if name in value:
            yield from _faults(value[name], options, _path(at, name))
        elif is_required:
            yield InvalidInput(_path(at, name), "is missing", accepted=accepted_words(options))
    for name in value:
        if name not in fields:
            meant = meant_key(str(name), fields)
            accepted = (f"{meant}, perhaps; " if meant else "") + "the fields " + ", ".join(fields)
            yield InvalidInput(_path(at, name), "is not a known field", value=value[name], accepted=accepted)


def _checked(value: Any, option: Option, at: str, root: str) -> Iterator[InvalidInput]:
    """What the checks of a type refuse, and what contradicts itself in a Struct."""
    refusers = [check.refuse for check in option.checks] + ([option.base.of_client] if option.reads else [])
    for refuse in refusers:
        try:
            refuse(at or root, value)
        except InvalidInput as refused:
            yield refused
    if option.is_struct and hasattr(option.base, "contradictions"):
        for refusal in convert(value, option.base, _read).contradictions():
            refusal.field = _path(at, refusal.field) if refusal.field else at or root
            yield refusal


def _out_of_bounds(value: Any, option: Option) -> str:
    """What is wrong with a value of the right kind by itself; empty if nothing is."""
    bounds = option.bounds
    if option.base is Literal:
        return "" if value in option.inner else "must be one of a few words"
    if isinstance(value, str) and (message := _wrong_text(value, bounds.get("pattern", ""))):
        return message
    if isinstance(value, str | list | tuple | Mapping):
        few, many = (
            ("is too short", "is too long")
            if isinstance(value, str)
            else ("has too few entries", "has too many entries")
        )
        if len(value) < bounds.get("min_length", 0):
            return few
        return many if len(value) > bounds.get("max_length", len(value)) else ""
    if "ge" in bounds and value < bounds["ge"]:
        return "is too small"
    return "is too large" if "le" in bounds and value > bounds["le"] else ""


def _wrong_text(text: str, pattern: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write and UTF-8 cannot
        return "must be a text in Unicode"
    # `$` also matches before a final line break.
    fits = re.search(pattern, text) and not (pattern.endswith("$") and text.endswith("\n"))
    return "" if fits else "has the wrong form"


def accepted_words(options: list[Option]) -> str:
    """What fits, as refusals say it."""
    if accepted := [option.accepted for option in options if option.accepted]:
        return accepted[0]
    tags = [str(option.tag) for option in options if option.tag_field]
    parts = [_words_of(option) for option in options if not option.tag_field and option.base is not NoneType]
    return " or ".join(parts + ([f"an object of the kind {_either(tags)}"] if tags else []))


def _words_of(option: Option) -> str:
    bounds = option.bounds
    if option.base is Literal:
        return _either([str(word) for word in option.inner])
    if option.base is bool:
        return "true or false"
    if option.is_struct:
        required = [name for name, (is_required, _) in _fields(option.base).items() if is_required]
        return f"an object with {', '.join(required)}" if required else "an object"
    if "pattern" in bounds:
        return f"a text that matches {bounds['pattern']}"
    noun = _NOUNS.get(option.base, "")
    if option.base in (int, float):
        return _range(bounds.get("ge"), bounds.get("le"), "") or noun
    unit = "characters" if option.base is str else "entries"
    lengths = _range(bounds.get("min_length"), bounds.get("max_length"), f" {unit}")
    return f"{noun} of {lengths}" if lengths else noun


def _range(least: Any, most: Any, unit: str) -> str:
    if least is None and most is None:
        return ""
    if least is None or most is None:
        return f"at least {least}{unit}" if most is None else f"at most {most}{unit}"
    return f"{least} to {most}{unit}"


def _nouns(options: list[Option]) -> str:
    """What a value of another kind must be."""
    nouns = [
        _NOUNS.get(option.base, "one of a few words" if option.base is Literal else "an object")
        for option in options
        if option.base is not NoneType
    ]
    return " or ".join(dict.fromkeys(nouns))


def _either(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _path(at: str, name: object) -> str:
    return f"{at}.{name}" if at else str(name)


def _collect_orders(options: list[Option], orders: dict[frozenset[Any], list[Any]], seen: set[Any]) -> None:
    """The words of each `Literal` in a type, in their order: msgspec sorts them."""
    for option in options:
        if option.base is Literal:
            orders[frozenset(option.inner)] = list(option.inner)
        elif option.is_struct and option.base not in seen:
            seen.add(option.base)
            for _, inner in _fields(option.base).values():
                _collect_orders(inner, orders, seen)
        else:
            for inner in option.inner:
                _collect_orders(inner, orders, seen)


def _complete(schema: Any, orders: Mapping[frozenset[Any], list[Any]]) -> None:
    if isinstance(schema, dict) and isinstance(schema.get("enum"), list):
        schema["enum"] = orders.get(frozenset(schema["enum"]), schema["enum"])
    # msgspec writes no more of an object with any fields, which generators of clients take for one without fields.
    if isinstance(schema, dict) and schema.get("type") == "object" and not _OF_OBJECTS & schema.keys():
        schema["additionalProperties"] = True
    if isinstance(schema, dict) and schema.get("items") is False:
        del schema["items"]  # maxItems says the same, and openapi-python-client refuses this
    for part in list(schema.values()) if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list | tuple):
            _complete(part, orders)
