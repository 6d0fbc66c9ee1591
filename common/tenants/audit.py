"""The audit: who changed what of a tenant, the values before and after, and when.

An entry is part of the change's own transaction, so neither exists without the other. It holds only the changed fields.
Values of headers and payloads are replaced by an HMAC, and long values by size and hash: both can be compared. What
looks like a credential in plain text is hidden; a job's warnings name it.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from common.clock import Clock, SystemClock
from common.errors import InvalidInput
from common.storage import keys
from common.storage.conflicts import ConditionFailed, retry_on_conflict
from common.storage.expressions import ABSENT
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Item
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S

RETENTION_S: Final = 400 * DAY_S
# The author if no key was used: AWS credentials, or Minute8 itself.
AWS: Final = "aws"
ITSELF: Final = "minute8"
# The action of an entry that cannot be read.
UNREADABLE: Final = "unreadable"
_MAX_VALUE: Final = 1_000
_MAX_WORD: Final = 200
_MAX_ADDRESS: Final = 45
MAX_ENTRIES_READ: Final = 2_000
# Sorts after every entry's id.
_LAST: Final = "~"
# Fields that may be credentials: an entry keeps no value of them, and of headers the names.
_PAYLOAD: Final = "payload"
_PAYLOADS: Final = frozenset({_PAYLOAD, "payload_patch", "parameters"})
_HEADERS: Final = "headers"
_USER: Final = re.compile(r"(?<=://)[^/?#]*(?=@)")

# The HMAC of a text at a time; None without a key.
HmacOf = Callable[[str, float], str | None]


class Author(str):
    """The author of a change, as `by`, with the request that made it: AWS's `operation`, and the `source_address`."""

    __slots__ = ("request",)
    request: Mapping[str, str]

    def __new__(cls, by: str, operation: str, source_address: str) -> Author:
        author = super().__new__(cls, by)
        author.request = {"operation": operation, "source_address": source_address[:_MAX_ADDRESS]}
        return author


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. `by` is a key's id, `operator:` and a key's id, `aws` or `minute8`.

    `subject` is the id of the changed thing, or of the job of a changed run. `before` and `after` hold what differs.
    """

    entry_id: str
    at: float
    by: str
    action: str
    subject: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    # If a job's times changed: the times before (`common/jobs/ledger.py`). Not shown.
    times: str = ""
    # Of a request to EventBridge's API: its operation and source address.
    request: Mapping[str, str] = field(default_factory=dict)
    # The name of the key, if somebody looked it up. Not stored.
    by_name: str = ""

    @property
    def author(self) -> str:
        """Who made the change, for a person: `laptop (929d1989a15d59c8)`."""
        return f"{self.by_name} ({self.by})" if self.by_name else self.by


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter: entries made in [from_at, until_at), about one subject, with one action or kind (`job`)."""

    from_at: int | None = None
    until_at: int | None = None
    subject: str = ""
    action: str = ""

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> EntryFilter:
        """A filter from texts; unknown names are ignored. Raises InvalidInput."""
        for name in ("subject", "action"):
            word = parameters.get(name, "")
            if len(word) > _MAX_WORD:
                raise InvalidInput(
                    name, "is too long", value=word, accepted=f"at most {_MAX_WORD} characters"
                )
        bounds = {
            name: parse_instant(parameters[name], name)
            for name in ("from_at", "until_at")
            if name in parameters
        }
        return cls(**bounds, subject=parameters.get("subject", ""), action=parameters.get("action", ""))

    def matches(self, entry: Entry) -> bool:
        """Whether the filter takes an entry."""
        kind = entry.action.partition(".")[0]
        return self.subject in ("", entry.subject) and self.action in ("", entry.action, kind)


@dataclass(frozen=True, slots=True)
class Audit:
    """The entries of all tenants, in a table of their own: what may write entries cannot write keys or tenants."""

    tenants: Table

    @property
    def table(self) -> Table:
        """The table of the entries."""
        return self.tenants.beside("audit")

    def add(
        self,
        tx: Transaction,
        tenant: str,
        by: str,
        action: str,
        subject: str,
        now: float,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
        times: str = "",
        hmac_of: HmacOf = lambda text, now: None,
    ) -> None:
        """Add an entry to `tx`. `hmac_of` lets hidden values be compared."""
        was, became = (
            {name: _shown(_hidden(name, value, hmac_of, now)) for name, value in side.items()}
            for side in differing(before or {}, after or {})
        )
        item = self._item(tenant, by, action, subject, now, was, became)
        tx.put(self.table, item | ({"times": times} if times else {}), ABSENT)

    def _item(
        self,
        tenant: str,
        by: str,
        action: str,
        subject: str,
        now: float,
        was: Mapping[str, Any],
        became: Mapping[str, Any],
    ) -> Item:
        # The time first, so that entries sort; then random text, for two changes in one millisecond.
        entry_id = f"{time_id(now)}-{secrets.token_hex(4)}"
        return {
            **keys.audit(tenant, entry_id),
            "at": now,
            "by": str(by),
            "action": action,
            "subject": subject,
            "before": _text(was),
            "after": _text(became),
            "expires_at": int(now) + RETENTION_S,
            **({"request": dict(by.request)} if isinstance(by, Author) else {}),
        }

    def newest(self, tenant: str, limit: int) -> Iterator[Entry]:
        """A tenant's entries, newest first."""
        items = self._between(tenant, EntryFilter(), most=limit + 1)
        return (_entry(item) for item in islice(items, limit))

    def all(self, tenant: str, entry_filter: EntryFilter) -> Iterator[Entry]:
        """All entries that a filter takes, newest first, however many are read for it."""
        entries = map(_entry, self._between(tenant, entry_filter))
        return filter(entry_filter.matches, entries)

    def page(
        self, tenant: str, entry_filter: EntryFilter, *, limit: int, before_id: str = ""
    ) -> tuple[list[Entry], str]:
        """The entries, newest first, and the id after which the next page starts; empty at the end.

        A call reads at most MAX_ENTRIES_READ entries, and returns where the next call continues even if it found none.
        """
        entries: list[Entry] = []
        seen_id = before_id
        most = MAX_ENTRIES_READ if entry_filter.subject or entry_filter.action else limit
        for seen, item in enumerate(self._between(tenant, entry_filter, before_id, most + 2)):
            entry = _entry(item)
            if seen == MAX_ENTRIES_READ or (len(entries) == limit and entry_filter.matches(entry)):
                return entries, seen_id
            if entry_filter.matches(entry):
                entries.append(entry)
            seen_id = entry.entry_id
        return entries, ""

    def subjects_since(self, tenant: str, kind: str, since: float, most: int) -> list[str] | None:
        """The subjects of the changes of this kind (`job`) since then; None if there are over `most` of all kinds."""
        items = list(self._between(tenant, EntryFilter(from_at=max(0, int(since))), "", most + 1))
        if len(items) > most:
            return None
        entries = map(_entry, items)
        return [entry.subject for entry in entries if entry.action.partition(".")[0] == kind]

    def stored(self, owner: str, since: str, until: str, most: int | None = None) -> Iterator[Item]:
        """The entries with ids in [since, until) as they are stored, the oldest first. A bound may be a `time_id`."""
        first, last = (keys.audit(owner, bound)["sk"] for bound in (since, until))
        if first >= last:
            return iter(())
        oldest_first = self.table.query(Query(owner, sk_between=(first, last), limit=most))
        return (item for item in oldest_first if item["sk"] != last)

    def _between(
        self, tenant: str, entry_filter: EntryFilter, before_id: str = "", most: int | None = None
    ) -> Iterator[Item]:
        first = time_id(entry_filter.from_at) if entry_filter.from_at is not None else ""
        # An id is longer than its time, so it sorts after the end's own text.
        last = time_id(entry_filter.until_at) if entry_filter.until_at is not None else _LAST
        last = min(last, before_id) if before_id else last
        if first >= last:
            return iter(())
        bounds = tuple(keys.audit(tenant, bound)["sk"] for bound in (first, last))
        newest_first = self.table.query(
            Query(tenant, sk_between=(bounds[0], bounds[1]), newest_first=True, limit=most)
        )
        return (item for item in newest_first if item["sk"] != bounds[1])


@dataclass(frozen=True, slots=True)
class AuditedCommit:
    """Commits changes together with their audit entries."""

    audit: Audit
    by: str = AWS
    clock: Clock = field(default_factory=SystemClock)

    def commit(
        self,
        tx: Transaction,
        tenant: str,
        action: str,
        subject: str,
        now: float,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises ConditionFailed, Busy."""
        self.audit.add(tx, tenant, self.by, action, subject, now, before=before, after=after)
        retry_on_conflict(tx.commit, repr(subject), sleep=self.clock.sleep)

    def try_commit(self, tx: Transaction, *change: Any, **states: Any) -> ConditionFailed | None:
        """As `commit`, but returns a condition that did not hold; None: written. Raises Busy."""
        try:
            self.commit(tx, *change, **states)
        except ConditionFailed as refused:
            return refused
        return None


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that differ, with the values of each side. Pure."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return (
        {name: before[name] for name in names if before.get(name) is not None},
        {name: after[name] for name in names if after.get(name) is not None},
    )


def time_id(at: float) -> str:
    """What the id of an entry of this time begins with: milliseconds as 13 digits, which sort until the year 2286."""
    return f"{min(max(int(at * 1000), 0), 10**13 - 1):013d}"


def _hidden(name: str, value: Any, hmac_of: HmacOf, now: float) -> Any:
    """The value of a field without what may be a credential in it."""
    if name in _PAYLOADS:
        return {"hmac": hmac_of(_text(value), now)}
    if isinstance(value, dict):
        fields = ((key, _PAYLOAD if name == _HEADERS else key) for key in value)
        return {key: _hidden(field_name, value[key], hmac_of, now) for key, field_name in fields}
    if isinstance(value, list):
        return [_hidden("", each, hmac_of, now) for each in value]
    return hidden(_USER.sub("…", value)) if isinstance(value, str) else value


def _shown(value: Any) -> Any:
    text = _text(value)
    if len(text) <= _MAX_VALUE:
        return value
    data = text.encode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _entry(item: Item) -> Entry:
    """The entry. One that somebody has damaged keeps its place, with the action UNREADABLE and what is wrong."""
    entry_id = item["sk"].removeprefix(keys.AUDIT_PREFIX)
    try:
        entry = Entry(
            entry_id=entry_id,
            at=item["at"],
            by=item["by"],
            action=item["action"],
            subject=item["subject"],
            before=json.loads(item["before"]),
            after=json.loads(item["after"]),
            times=item.get("times", ""),
            request=item.get("request", {}),
        )
        texts = (entry.by, entry.action, entry.subject, entry.times)
        maps = (entry.before, entry.after, entry.request)
        are_texts = all(isinstance(text, str) for text in texts)
        if are_texts and all(isinstance(fields, dict) for fields in maps) and type(entry.at) in (int, float):
            return entry
        problem = "an attribute has another type"
    except (KeyError, TypeError, ValueError) as error:
        problem = repr(error)[:300]
    milliseconds = entry_id.partition("-")[0]
    at = int(milliseconds) / 1_000 if milliseconds.isdecimal() else 0.0
    return Entry(entry_id, at, "", UNREADABLE, "", {}, {"problem": problem}, "", {})


# Each with what it is called. What precedes the credential itself is `kept`.
CREDENTIALS: Final = (
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), "a key that begins with sk-"),
    (re.compile(r"\bAKIA[0-9A-Z]{16}\b"), "an access key of AWS"),
    (re.compile(r"(?P<kept>://)[^/\s:@]+:[^/\s@]+(?=@)"), "a password in a URL"),
    (
        re.compile(
            r"(?i)(?P<kept>[?&](?:[a-z_-]*token|(?:api|access)?[_-]?key|secret|password|sig|signature)=)"
            r"(?!secret://)[^&#\s\"]+"
        ),
        "a credential in a URL's query",
    ),
    # Words of prose have no digit.
    (re.compile(r"\b(?P<kept>Bearer\s+)(?=\S*\d)[A-Za-z0-9._~+/=-]{6,}"), "a bearer token"),
    # A field or header of JSON, also of JSON in a string of JSON. Tokens of pages and of requests are no secrets.
    (
        re.compile(
            r'(?i)(?P<kept>"(?P<name>(?![\w.-]*(?:next|page|client|request|continuation)[_-]?token\\*")[\w.-]{0,60}?'
            r"(?:authorization|passwo?r?d|passphrase|pwd|secret|token|cookie|credentials?"
            r"|(?:api|access|secret|private|signing|account)[_-]?key))"
            r'\\*"\s*:\s*\\*")(?![^"\\]*secret://|arn:|\{\{)[^"\\]+'
        ),
        "a value named {name}",
    ),
)


def credentials_in(value: object) -> list[str]:
    """What in a text, or in a value of JSON, looks like a credential: what each is called."""
    text = value if isinstance(value, str) else json.dumps(value)
    matches = ((match, words) for look, words in CREDENTIALS for match in look.finditer(text))
    return list(dict.fromkeys(words.format(**match.groupdict()) for match, words in matches))


def hidden(text: str) -> str:
    """The text with `…` in place of credentials."""
    for look, _ in CREDENTIALS:
        text = look.sub(lambda match: (match.groupdict().get("kept") or "") + "…", text)
    return text
