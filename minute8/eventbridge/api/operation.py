"""An operation of EventBridge Scheduler's API, and a request for an operation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from common.errors import InvalidInput
from common.platform.api_keys import Role
from minute8.api.http.paging import read_key
from minute8.api.services import Services
from minute8.eventbridge.names import AwsAccount
from minute8.eventbridge.shapes import Integer, ListOf, check

# The members of requests whose names in the query differ.
_MEMBERS: Final[Mapping[str, str]] = {"ScheduleGroup": "GroupName"}

Query = Mapping[str, Any]
_SORTED: Final = json.JSONEncoder(sort_keys=True)


@dataclass(frozen=True, slots=True)
class SchedulerRequest:
    """One request. `label` is the name or ARN in its path. The query is checked; the body is any object.

    Two copies of one request have the same `signature`.
    """

    operation: str
    tenant: str
    now: float
    label: str
    query: Query
    body: Mapping[str, Any]
    account: AwsAccount
    signature: str

    def token(self, client_token: str | None) -> str:
        """A hash of the request by its client token, or else by its signature. Copies of the request have it, too."""
        body = {name: value for name, value in self.body.items() if name != "ClientToken"}
        text = _SORTED.encode([self.operation, self.label, client_token or self.signature, body])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def after(self, list_name: str) -> str:
        """The last entry of the page before, of this list. Raises InvalidInput."""
        token = self.query.get("NextToken")
        try:
            return read_key(self.tenant, list_name, token)
        except InvalidInput:
            accepted = "the NextToken of an earlier answer to the same request"
            raise InvalidInput("NextToken", "is not of this list", value=token, accepted=accepted) from None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, for credentials with at least this role. `query` has the shapes of its parameters."""

    method: str
    collection: str
    name: str
    role: Role
    answer: Callable[[Services, SchedulerRequest], Mapping[str, Any]]
    has_label: bool = True
    takes_body: bool = False
    query: Mapping[str, Any] = field(default_factory=dict)

    def read_query(self, raw_parameters: Sequence[tuple[str, str]]) -> Query:
        """The parameters by their names. Raises InvalidInput."""
        parameters: dict[str, Any] = {}
        for name, text in raw_parameters:
            shape = self.query.get(name)
            if shape is None:
                accepted = ", ".join(self.query) or "none"
                raise InvalidInput(name, "is not a known parameter", value=text, accepted=accepted)
            if isinstance(shape, ListOf):
                parameters.setdefault(name, []).append(text)
            elif name in parameters:
                raise InvalidInput(name, "is given twice", value=text, accepted="one value")
            else:
                parameters[name] = _number(text) if isinstance(shape, Integer) else text
        for name, value in parameters.items():
            check(self.query[name], value, _MEMBERS.get(name, name))
        return parameters


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
