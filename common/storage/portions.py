"""A text that is too long for one item: some items with portions of it, and a head item that names them.

Portions are never changed. A new version writes its own portions, and then the head, on the condition that the head is
still the one that was read. So a reader never sees portions of two versions.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.storage.expressions import Attribute
from common.storage.keys import Key
from common.storage.table import Table
from common.storage.wire import Item
from common.texts import packed, unpacked


@dataclass(frozen=True, slots=True)
class Portions:
    """The items of one such text. `key` gives the key of a portion by its name; the head's name is empty."""

    table: Table
    key: Callable[[str], Key]

    def head(self) -> Item | None:
        """The head with its attributes; None: there is no text."""
        return self.table.get(self.key(""))

    def read(self, names: Sequence[str]) -> list[str] | None:
        """The texts of some portions, in no order; None if one of them is gone."""
        items = list(self.table.get_many([self.key(name) for name in names]))
        return None if len(items) < len(names) else [unpacked(item["data"]) for item in items]

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
        """Store new portions besides those `kept`, then the head, and remove those `dropped`.

        `replaces` is the token of the head that was read; empty: there was none. Returns the new head; None: another
        was faster, and that one's text stays.
        """
        token = secrets.token_hex(4)
        portions = {f"{token}#{n}": text for n, text in enumerate(texts)}
        for name, text in portions.items():
            self.table.put({**self.key(name), "data": packed(text), "expires_at": expires_at})
        names = [*kept, *portions]
        item: Item = {**self.key(""), **head, "token": token, "portions": names, "expires_at": expires_at}
        as_read = Attribute("token") == replaces if replaces else self.table.absent
        # A refusal may be of our own write, repeated after its answer was lost.
        if not self.table.put_if(item, as_read) and (self.head() or {}).get("token") != token:
            self._remove(portions)
            return None
        self._remove(dropped)
        return item

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.table.delete(self.key(name))
