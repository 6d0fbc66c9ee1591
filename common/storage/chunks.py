"""A text that is too long for one item: some items with chunks of it, and a head item that names them.

Chunks are never changed. A new version writes its own chunks, and then the head, on the condition that the head is
still the one that was read. So a reader never sees chunks of two versions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from msgspec import Struct, ValidationError

from common import telemetry
from common.cache import convert
from common.storage.conflicts import ConditionFailed
from common.storage.expressions import Attribute, unchanged
from common.storage.keys import Key
from common.storage.stored import packed, unpacked
from common.storage.table import Table
from common.storage.wire import DAMAGE, Item


class Head(Struct, frozen=True):
    """A head. Each kind of text has its own, with more attributes."""

    token: str = ""
    chunks: tuple[str, ...] = ()
    expires_at: int = 0


HeadOf = TypeVar("HeadOf", bound=Head)


@dataclass(frozen=True, slots=True)
class Chunks(Generic[HeadOf]):
    """The items of one such text. `key` gives the key of a chunk by its name; the head's name is empty."""

    table: Table
    key: Callable[[str], Key]
    kind: type[HeadOf]

    def head(self) -> HeadOf | None:
        """The head; None: there is no text, or somebody has damaged the head, and `store` replaces it."""
        item = self.table.get(self.key(""))
        return self._readable(item) if item else None

    def read(self, names: Sequence[str]) -> list[str] | None:
        """The texts of some chunks, in no order; None if one of them is gone or damaged."""
        items = list(self.table.get_many([self.key(name) for name in names]))
        try:
            return None if len(items) < len(names) else [unpacked(item["data"]) for item in items]
        except DAMAGE:
            return None

    def store(
        self,
        head: Mapping[str, Any],
        texts: Iterable[str],
        expires_at: int,
        *,
        replaces: str,
        kept: Sequence[str] = (),
        dropped: Sequence[str] = (),
    ) -> Item | None:
        """Store new chunks besides those `kept`, then the head, and remove those `dropped`.

        `replaces` is the token of the head that was read; empty: there was none. Returns the new head; None: another
        was faster, and that one's text stays.
        """
        token = secrets.token_hex(4)
        chunks = {f"{token}#{n}": text for n, text in enumerate(texts)}
        for name, text in chunks.items():
            self.table.put({**self.key(name), "data": packed(text), "expires_at": expires_at})
        names = [*kept, *chunks]
        item: Item = {**self.key(""), **head, "token": token, "chunks": names, "expires_at": expires_at}
        as_read = Attribute("token") == replaces if replaces else self.table.absent
        try:
            self.table.put(item, as_read)
        except ConditionFailed as refused:
            if not refused.is_of("token", token) and not self._replace_damaged(refused.existing, item):
                self._remove(chunks)
                return None
        self._remove(dropped)
        return item

    def _replace_damaged(self, existing: Item | None, item: Item) -> bool:
        """Whether a head that nobody can read was there, and is replaced."""
        if existing is None or self._readable(existing):
            return False
        telemetry.logger().error("damaged, written anew", pk=existing["pk"], sk=existing["sk"])
        return self.table.put_if(item, unchanged(existing, "token"))

    def _readable(self, item: Item) -> HeadOf | None:
        try:
            return convert(item, self.kind)
        except ValidationError:
            return None

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.table.delete(self.key(name))
