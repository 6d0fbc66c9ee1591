"""What is stored as it is declared: one reader and one writer for all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from msgspec import Struct, to_builtins

from common.cache import convert
from common.errors import Damaged
from common.storage.keys import Key
from common.storage.wire import Item

T = TypeVar("T")


class Stored(Struct, frozen=True):
    """An entity with an item of its own. Attributes that it does not declare are passed over.

    `derived` names properties that are stored, too, such as when the table forgets the item.
    """

    derived: ClassVar[tuple[str, ...]] = ()

    @property
    def key(self) -> Key:
        """The key of the item."""
        raise NotImplementedError

    def to_item(self) -> Item:
        """What is stored, with its key."""
        # The API's instants are integers of a class of their own.
        item = {**self.key, **to_builtins(self, enc_hook=int)}
        for name in self.derived:
            item[name] = getattr(self, name)
        return item

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        """The inverse of `to_item`, also of an item without its key. Raises Damaged: also of another entity's item."""
        entity = read(item, cls)
        key = entity.key
        if item.get("pk", key["pk"]) != key["pk"] or item.get("sk", key["sk"]) != key["sk"]:
            raise Damaged(
                f"the item {item.get('pk')} {item.get('sk')} is damaged: it says that it is another"
            )
        return entity


def read(item: Mapping[str, Any], kind: type[T]) -> T:
    """What a stored item is. Raises Damaged, which names the item and says why."""
    try:
        return convert(item, kind)
    except ValueError as error:
        raise Damaged(f"the item {item.get('pk')} {item.get('sk')} is damaged: {error}") from error
