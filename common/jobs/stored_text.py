"""JSON of a job, such as its payload: in the job's item if it is small, else an immutable item of its own.

The job's item names a large text by its size and a hash of what it contains. So a text is read late, eventually, or
from a cache. `large_texts.py` reads and writes the items.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

# Measured in docs/decisions/platform.md#0021-payload-items.
INLINE_BYTES: Final = 1024

_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_SORTED: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, sort_keys=True)


class Reference(NamedTuple):
    """Which large text is stored, and how many bytes it has in UTF-8."""

    bytes: int
    sha256: str


@dataclass(frozen=True, eq=False)
class StoredText:
    """JSON as compact text. `text` is None if it is large and was not read.

    `reference` is set if it comes from an item of its own.
    """

    text: str | None
    reference: Reference | None = None

    @classmethod
    def of(cls, value: Any) -> StoredText:
        """As text: DynamoDB's numbers differ from JSON's, and a payload must arrive as the tenant sent it."""
        return cls(_JSON.encode(value))

    @classmethod
    def from_attribute(cls, attribute: str | Mapping[str, Any]) -> StoredText:
        """The inverse of `attribute`."""
        if isinstance(attribute, str):
            return cls(attribute)
        return cls(None, Reference(int(attribute["bytes"]), attribute["sha256"]))

    @property
    def attribute(self) -> str | dict[str, Any]:
        """In the job's item: the text, or a map."""
        if self.text is not None and not self.is_large:
            return self.text
        return {"bytes": self.bytes, "sha256": self.sha256}

    @property
    def bytes(self) -> int:
        """Its size in UTF-8."""
        if self.reference:
            return self.reference.bytes
        return len((self.text or "").encode(errors="replace"))

    @property
    def is_large(self) -> bool:
        """Whether it has an item of its own."""
        return self.bytes > INLINE_BYTES

    @cached_property
    def sha256(self) -> str:
        """Of its JSON with sorted names: the same JSON has the same hash."""
        if self.reference:
            return self.reference.sha256
        return hashlib.sha256(_SORTED.encode(self.value).encode(errors="surrogatepass")).hexdigest()

    @property
    def value(self) -> Any:
        """What the JSON means. Raises LookupError if it was not read."""
        if self.text is None:
            raise LookupError("this text has an item of its own, and was not read")
        return json.loads(self.text)

    def __eq__(self, other: object) -> bool:
        """Whether both are the same JSON. Unlike Python's ==, true is not 1, and 1 is not 1.0."""
        if not isinstance(other, StoredText):
            return NotImplemented
        if self.text is not None and self.text == other.text:
            return True
        return self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)


def is_whole(item: Mapping[str, Any]) -> bool:
    """Whether the item of a large text has a text. Its hash is compared by `hash_fits`, which costs more."""
    return isinstance(item.get("text"), str)


def hash_fits(item: Mapping[str, Any]) -> bool:
    """Whether the item of a large text has the text of its key."""
    try:
        return is_whole(item) and StoredText(item["text"]).sha256 == item["sk"]
    except ValueError:
        return False
