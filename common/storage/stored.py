"""What is stored as it is declared: one reader and one writer for all of it."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, ClassVar, Self, TypeVar

from msgspec import Struct, json, structs, to_builtins

from common.cache import convert, decoder
from common.errors import Damaged
from common.storage.keys import Key
from common.storage.wire import DAMAGE, Item

T = TypeVar("T")


def packed(text: str) -> str:
    """Compressed, as text."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()


def unpacked(data: str) -> str:
    """The inverse of `packed`."""
    return zlib.decompress(base64.b64decode(data)).decode()


class Stored(Struct, frozen=True):
    """An entity with an item of its own. Attributes that it does not declare are passed over.

    `derived` names properties that are stored, too, such as when the table forgets the item. `texts` names fields that
    are stored as one text of JSON each, since the table would round their numbers; `packed`, as a compressed text. Such
    a field is not stored while it has its default.
    """

    derived: ClassVar[tuple[str, ...]] = ()
    texts: ClassVar[tuple[str, ...]] = ()
    packed: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> Key:
        """The key of the item."""
        raise NotImplementedError

    def to_item(self) -> Item:
        """What is stored, with its key."""
        texts = {}
        if self.texts or self.packed:
            for name, default, write, _ in _text_fields(type(self)):
                if (value := getattr(self, name)) != default:
                    texts[name] = write(json.encode(value).decode())
        item = {**self.key, **to_builtins(structs.replace(self, **texts) if texts else self)}
        for name in self.derived:
            item[name] = getattr(self, name)
        return item

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        """The inverse of `to_item`, also of an item without its key. Raises Damaged: also of another entity's item."""
        try:
            texts = {}
            if cls.texts or cls.packed:
                texts = {name: read(item[name]) for name, _, _, read in _text_fields(cls) if name in item}
            entity = convert({**item, **texts} if texts else item, cls)
            key = entity.key
        except DAMAGE as error:
            raise _damaged(item, error) from error
        if item.get("pk", key["pk"]) != key["pk"] or item.get("sk", key["sk"]) != key["sk"]:
            raise _damaged(item, "it says that it is another")
        return entity


@cache
def _text_fields(
    kind: type[Stored],
) -> list[tuple[str, object, Callable[[str], str], Callable[[str], object]]]:
    """The fields that are stored as texts: name, default, and how each is written and read."""
    fields: list[tuple[str, object, Callable[[str], str], Callable[[str], object]]] = []
    for field in structs.fields(kind):
        if field.name in kind.texts:
            fields.append((field.name, field.default, str, decoder(field.type).decode))
        if field.name in kind.packed:
            fields.append((field.name, field.default, packed, partial(_unpacked, decoder(field.type))))
    return fields


def _unpacked(of_text: json.Decoder[Any], text: str) -> object:
    return of_text.decode(unpacked(text))


def read(item: Mapping[str, Any], kind: type[T]) -> T:
    """What a stored item is. Raises Damaged, which names the item and says why."""
    try:
        return convert(item, kind)
    except ValueError as error:
        raise _damaged(item, error) from error


def _damaged(item: Mapping[str, Any], why: object) -> Damaged:
    return Damaged(f"the item {item.get('pk')} {item.get('sk')} is damaged: {why}")
