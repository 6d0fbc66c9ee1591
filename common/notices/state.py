"""What a subscription knows: problems that wait, problems that were reported, and the message on its way.

Stored as one text of JSON with the subscription. Old texts must stay readable (tests/golden).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeVar

FAILED: Final = "failed"
OVERDUE: Final = "overdue"

Stored = TypeVar("Stored")


@dataclass(frozen=True, slots=True)
class Problem:
    """A job that fails or is overdue.

    `last_at` is the end of the last failed run, or the due instant of an overdue one. `run_name` is the part of the
    execution id that names the run, or the beginning of that part. A run `by_hand` is not of the schedule: only its own
    retry ends the problem.
    """

    kind: str
    job_id: str
    first_at: float
    last_at: float
    run_name: str
    runs: int = 1
    by_hand: bool = False
    reported_at: float | None = None
    recovered_at: float | None = None

    @property
    def key(self) -> str:
        return f"{self.kind}#{self.job_id}{'#by_hand' if self.by_hand else ''}"


@dataclass(frozen=True, slots=True)
class Notice:
    """A message on its way. Each try sends the same id and body."""

    message_id: str
    body: str
    made_at: float
    tries: int = 0
    next_at: float = 0.0


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of one try."""

    at: float
    ok: bool
    error: str = ""


@dataclass(slots=True)
class SubscriptionState:
    """All that a subscription knows. Instants are epoch seconds.

    Failures before `looked_at` are known. The search for overdue jobs began at `searched_at`; an unfinished search
    continues after the job `searched_after`. `complete` is false if more has happened than was read or kept.
    """

    looked_at: float
    searched_at: float = 0.0
    searched_after: str = ""
    waiting: dict[str, Problem] = field(default_factory=dict)
    reported: dict[str, Problem] = field(default_factory=dict)
    over: dict[str, Problem] = field(default_factory=dict)
    complete: bool = True
    quiet_until: float = 0.0
    message: Notice | None = None
    test: Notice | None = None
    last_sent: DeliveryResult | None = None
    last_test: DeliveryResult | None = None
    delivered_at: float | None = None
    failing_since: float | None = None
    disabled_at: float | None = None

    def to_text(self) -> str:
        """JSON without absent values."""
        problems = {
            name: [_without_defaults(problem) for problem in getattr(self, name).values()]
            for name in _PROBLEMS
        }
        records = {name: asdict(value) for name in _RECORDS if (value := getattr(self, name)) is not None}
        plain = {
            field.name: value
            for field in fields(self)
            if field.name not in (*_PROBLEMS, *_RECORDS) and (value := getattr(self, field.name)) is not None
        }
        return json.dumps({**plain, **problems, **records}, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> SubscriptionState:
        """The inverse of `to_text`. Ignores fields of later versions."""
        stored: dict[str, Any] = json.loads(text)
        for name in _PROBLEMS:
            problems = (_read(Problem, problem) for problem in stored.get(name, ()))
            stored[name] = {problem.key: problem for problem in problems}
        for name, kind in _RECORDS.items():
            if stored.get(name) is not None:
                stored[name] = _read(kind, stored[name])
        return _read(cls, stored)


_PROBLEMS: Final = ("waiting", "reported", "over")
_RECORDS: Final[dict[str, type]] = {
    "message": Notice,
    "test": Notice,
    "last_sent": DeliveryResult,
    "last_test": DeliveryResult,
}


def _without_defaults(problem: Problem) -> dict[str, Any]:
    return {
        name: value for name, value in asdict(problem).items() if value is not None and value is not False
    }


def _read(kind: type[Stored], stored: dict[str, Any]) -> Stored:
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in stored.items() if name in known})
