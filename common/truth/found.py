"""The list of contradictions that ticks have found and that are still there, in the due table.

What somebody has damaged of the list itself is left out: the walk finds again what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item
from common.texts import UNREADABLE
from common.timing.instants import DAY_S
from common.truth.contradiction import Contradiction, Subject

# Enough to act; ticks find the others when these are repaired.
MAX_LISTED: Final = 500
_RETENTION_S: Final = 30 * DAY_S
_ABOUT_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Listed:
    """A contradiction as it is listed: its name, what it is about, and when a tick found it.

    `looked_at` is what was examined when it was found.
    """

    name: str
    about: Subject
    detail: str
    found_at: int
    looked_at: Subject


class FoundContradictions:
    """The list."""

    def __init__(self, due: Table) -> None:
        self._due = due

    def all(self) -> list[Listed]:
        """The whole list."""
        return list(_read(self._due.query(Query(keys.CONTRADICTIONS, limit=MAX_LISTED))))

    def put(
        self,
        looked_at: Subject,
        contradictions: Sequence[Contradiction],
        before: Sequence[Listed],
        now: float,
    ) -> None:
        """List what looking at this subject has found; `before` is the list. What is not found any more leaves it."""
        old = {
            _sort_key(listed.name, listed.about): listed for listed in before if listed.looked_at == looked_at
        }
        new = {_sort_key(each.name, each.subject): each for each in contradictions}
        self._due.delete_many([_key(sort_key) for sort_key in old if sort_key not in new])
        added = [each for sort_key, each in new.items() if sort_key not in old]
        changed = [
            _item(each, looked_at, old[sort_key].found_at)
            for sort_key, each in new.items()
            if sort_key in old and old[sort_key].detail != _detail(each)
        ]
        room = max(0, MAX_LISTED - len(before))
        self._due.put_many([*changed, *(_item(each, looked_at, now) for each in added[:room])])

    def suspect(self, contradictions: Iterable[Contradiction], now: float) -> None:
        """List these until the next look at them, which is soon."""
        items = {
            _sort_key(each.name, each.subject): _item(each, each.subject, now) for each in contradictions
        }
        self._due.put_many(list(items.values()))


def _sort_key(name: str, about: Subject) -> str:
    return f"{name}#{about.kind}#{about.name}"


def _key(sort_key: str) -> keys.Key:
    return {"pk": keys.CONTRADICTIONS, "sk": sort_key}


def _item(contradiction: Contradiction, looked_at: Subject, now: float) -> Item:
    return {
        **_key(_sort_key(contradiction.name, contradiction.subject)),
        "name": contradiction.name,
        "about": list(contradiction.subject),
        "looked_at": list(looked_at),
        "detail": _detail(contradiction),
        "found_at": int(now),
        "expires_at": int(now) + _RETENTION_S,
    }


def _detail(contradiction: Contradiction) -> str:
    return contradiction.detail[:_ABOUT_CHARS]


def _read(items: Iterable[Item]) -> Iterator[Listed]:
    for item in items:
        with suppress(*UNREADABLE):
            about, looked_at = Subject(*item["about"]), Subject(*item["looked_at"])
            listed = Listed(item["name"], about, item["detail"], item["found_at"], looked_at)
            if not all(isinstance(text, str) for text in (listed.name, listed.detail, *about, *looked_at)):
                raise TypeError(f"not a contradiction: {item['sk']}")
            yield listed
