"""What an operation of EventBridge Scheduler's API is, and one request for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from api.services import Services
from common.errors import InvalidInput
from common.platform.credential import Role
from eventbridge.names import Place
from eventbridge.shapes import Listed, Number, check

Query = Mapping[str, Any]
_SORTED: Final = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `label` is the name or ARN in its path. The query is checked; the body is any object.

    `signature` is different for each request, and the same if one is sent twice.
    """

    operation: str
    tenant: str
    now: float
    label: str
    query: Query
    body: Mapping[str, Any]
    place: Place
    signature: str

    def token(self, given: str | None) -> str:
        """The hash of the request, by its client token or else its signature: the same when it is repeated."""
        body = {name: value for name, value in self.body.items() if name != "ClientToken"}
        text = _SORTED.encode([self.operation, self.label, given or self.signature, body])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, for credentials with at least this role. `query` has the shapes of its parameters."""

    method: str
    collection: str
    name: str
    role: Role
    answer: Callable[[Services, Asked], Mapping[str, Any]]
    has_label: bool = True
    takes_body: bool = False
    query: Mapping[str, Any] = field(default_factory=dict)

    def read_query(self, sent: Sequence[tuple[str, str]]) -> Query:
        """The parameters by their names; those of a list as a list. Raises InvalidInput."""
        found: dict[str, Any] = {}
        for name, text in sent:
            shape = self.query.get(name)
            if shape is None:
                accepted = ", ".join(self.query) or "none"
                raise InvalidInput(name, "is not a known parameter", value=text, accepted=accepted)
            if isinstance(shape, Listed):
                found.setdefault(name, []).append(text)
            elif name in found:
                raise InvalidInput(name, "is given twice", value=text, accepted="one value")
            else:
                found[name] = _number(text) if isinstance(shape, Number) else text
        for name, value in found.items():
            check(self.query[name], value, name)
        return found


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
